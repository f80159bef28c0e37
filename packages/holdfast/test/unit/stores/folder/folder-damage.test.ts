import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { isHoldfastError, newId } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import type { JournalStore, Summariser } from "holdfast/store";
import { describe, expect, test } from "vitest";
import { place, treeOf } from "../../../place.ts";

const counting: Summariser = {
  add: (row, record) => ({ records: ((row as { records?: number } | null)?.records ?? 0) + 1, last: record.kind }),
  carries: () => false,
};

/** A session with `count` messages, closed in order. Returns its id and the path of its newest segment. */
async function session(store: JournalStore, root: string, count: number): Promise<{ id: string; segment: string }> {
  const id = newId();
  const journal = await store.create(id, [{ kind: "session", title: "damage" }]);
  for (let i = 0; i < count; i++) await journal.append({ kind: "message", n: i, text: `message ${i} 🙂` });
  await journal.close();
  return { id, segment: join(root, "sessions", id, "000001.jsonl") };
}

async function numbers(store: JournalStore, id: string): Promise<number[]> {
  const found: number[] = [];
  for await (const record of store.history(id)) if (record.kind === "message") found.push(record["n"] as number);
  return found;
}

const lines = (path: string): string[] => readFileSync(path, "utf8").split("\n");

describe("C20: damage costs one record at most, is reported with its place, and everything after it is read", () => {
  const damages: [
    name: string,
    damage: (path: string) => void,
    lost: number[],
    why: "corrupt" | "foreign",
    reports: number,
  ][] = [
    [
      "a run of NUL bytes over one line",
      (path) => rewriteLine(path, 6, (line) => "\0".repeat(line.length)),
      [3],
      "corrupt",
      1,
    ],
    [
      "a flipped bit",
      (path) => rewriteLine(path, 6, (line) => line.replace("message 3", "messagf 3")),
      [3],
      "corrupt",
      1,
    ],
    [
      "a line that someone edited",
      (path) => rewriteLine(path, 6, (line) => line.replace('"n":3', '"n":33')),
      [3],
      "corrupt",
      1,
    ],
    [
      "a line of somebody else's",
      (path) => rewriteLine(path, 6, () => '{"role":"user","content":"hi"}'),
      [3],
      "foreign",
      1,
    ],
    [
      "a NUL run glued before a whole line",
      (path) => rewriteLine(path, 6, (line) => "\0".repeat(99) + line),
      [],
      "corrupt",
      1,
    ],
    ["a byte-order mark", (path) => writeFileSync(path, `\ufeff${readFileSync(path, "utf8")}`), [], "corrupt", 1],
    ["a blank line", (path) => rewriteLine(path, 6, (line) => `\n${line}`), [], "corrupt", 1],
    ["a line that stands there twice", (path) => rewriteLine(path, 6, (line) => `${line}\n${line}`), [], "corrupt", 1],
  ];
  test.each(damages)("%s", async (_name, damage, lost, why, reports) => {
    using here = place();
    await using store = await openFolderStore(here.path);
    const { id, segment } = await session(store, here.path, 8);
    damage(segment);
    const damaged = readFileSync(segment);
    const expected = [0, 1, 2, 3, 4, 5, 6, 7].filter((n) => !lost.includes(n));

    expect(await numbers(store, id)).toEqual(expected);
    const verified = await store.verify(id);
    expect(verified.damaged.map((found) => found.why)).toEqual(Array(reports).fill(why));
    expect(verified.damaged[0]).toMatchObject({ segment: "000001.jsonl" });
    expect(verified.cutBytes).toBe(0);
    expect(readFileSync(segment), "verify and read change nothing").toEqual(damaged);

    const { journal, recovery } = await store.open(id);
    expect(recovery.damaged).toHaveLength(reports);
    await journal.append({ kind: "message", n: 100 });
    await journal.close();
    expect(await numbers(store, id)).toEqual([...expected, 100]);
    expect(readFileSync(segment).subarray(0, damaged.length), "the damage stays in place").toEqual(damaged);
  });

  test("CRLF line ends cost nothing", async () => {
    using here = place();
    await using store = await openFolderStore(here.path);
    const { id, segment } = await session(store, here.path, 4);
    writeFileSync(segment, readFileSync(segment, "utf8").replaceAll("\n", "\r\n"));
    expect(await numbers(store, id)).toEqual([0, 1, 2, 3]);
    expect((await store.verify(id)).damaged).toEqual([]);
  });

  test("the header of the newest segment: the current epoch is still the current epoch", async () => {
    using here = place();
    await using store = await openFolderStore(here.path);
    const { id } = await session(store, here.path, 3);
    const { journal } = await store.open(id);
    await journal.epoch(() => [
      { kind: "epoch", reason: "compaction" },
      { kind: "message", n: 50 },
    ]);
    await journal.append({ kind: "message", n: 51 });
    await journal.close();
    rewriteLine(join(here.path, "sessions", id, "000002.jsonl"), 0, (line) => line.replace("segment", "sEgment"));
    const reopened = await store.open(id);
    expect(reopened.records.filter(({ kind }) => kind === "message").map((record) => record["n"])).toEqual([50, 51]);
    expect(reopened.recovery.damaged).toMatchObject([{ segment: "000002.jsonl", offset: 0, why: "corrupt" }]);
    await reopened.journal.append({ kind: "message", n: 52 });
    await reopened.journal.close();
    expect(await numbers(store, id)).toEqual([0, 1, 2, 50, 51, 52]);
  });

  test("one line of a new epoch rots before anything follows it: that record alone is lost, and its number is not used again", async () => {
    using here = place();
    await using store = await openFolderStore(here.path);
    const { id } = await session(store, here.path, 1);
    const { journal } = await store.open(id);
    const { last } = await journal.epoch(() => [
      { kind: "epoch", reason: "clear" },
      { kind: "message", n: 50 },
      { kind: "message", n: 51 },
    ]);
    await journal.close();
    const path = join(here.path, "sessions", id, "000002.jsonl");
    // As a process that was killed right after the epoch leaves it: no `closed`.
    truncateSync(path, Buffer.byteLength(lines(path).slice(0, 4).join("\n")) + 1);
    rewriteLine(path, 3, (line) => line.replace('"n":51', '"n":99'));
    const reopened = await store.open(id);
    expect(reopened.recovery).toMatchObject({ cutBytes: 0, damaged: [{ seq: last, why: "corrupt" }] });
    // Behind the header of its own segment, and `opened`.
    expect((await reopened.journal.append({ kind: "message", n: 52 })).seq).toBe(last + 3);
    await reopened.journal.close();
  });
});

describe("P2: what was never acknowledged is cut off, and kept", () => {
  test("a torn tail goes to quarantine, byte for byte, before the journal goes on", async () => {
    using here = place();
    await using store = await openFolderStore(here.path);
    const { id, segment } = await session(store, here.path, 2);
    const whole = readFileSync(segment);
    const torn = '{"seq":99,"at":"2026-11-15T00:00:00.000Z","kind":"message","text":"never acknow';
    appendFileSync(segment, torn);
    expect((await store.read(id)).recovery).toMatchObject({ unclean: true, cutBytes: torn.length });
    expect(readFileSync(segment).length, "reading heals nothing").toBe(whole.length + torn.length);

    const { journal, recovery } = await store.open(id);
    expect(recovery.cutBytes).toBe(torn.length);
    expect(readFileSync(recovery.quarantine!, "utf8")).toBe(torn);
    expect(readdirSync(join(here.path, "sessions", id, "quarantine"))).toHaveLength(1);
    expect(readFileSync(segment).toString(), "a writer that lives on may still append to it").toBe(whole + torn);
    await journal.append({ kind: "message", n: 2 });
    await journal.close();
    expect(await numbers(store, id)).toEqual([0, 1, 2]);
    expect(await store.verify(id)).toMatchObject({ damaged: [], missing: [], cutBytes: 0, segments: 2 });
  });

  test("a whole last record without its newline is kept, and ended", async () => {
    using here = place();
    await using store = await openFolderStore(here.path);
    const { id, segment } = await session(store, here.path, 2);
    truncateSync(segment, readFileSync(segment).length - 1);
    const { journal, recovery } = await store.open(id);
    expect(recovery).toMatchObject({ unclean: false, cutBytes: 0 });
    await journal.append({ kind: "message", n: 2 });
    await journal.close();
    expect(await numbers(store, id)).toEqual([0, 1, 2]);
  });
});

describe("C21: the future can read it, and we can read a little of the future", () => {
  test("a newer major format is refused in words, and not written to", async () => {
    using here = place();
    await using store = await openFolderStore(here.path);
    const { id, segment } = await session(store, here.path, 1);
    await rewriteHeader(segment, '"format":"1.1"', '"format":"2.0"');
    const before = treeOf(join(here.path, "sessions"));
    for (const look of [() => store.open(id), () => store.read(id), () => store.verify(id), () => numbers(store, id)]) {
      const error = await look().then(
        () => null,
        (reason: unknown) => reason,
      );
      expect(isHoldfastError(error, "FORMAT_NEWER"), String(error)).toBe(true);
    }
    expect(treeOf(join(here.path, "sessions"))).toEqual(before);
    expect(await store.holder(id), "the lease was given back").toBeNull();
  });

  test("a newer minor format is read, and written to in a segment of our own", async () => {
    using here = place();
    await using store = await openFolderStore(here.path);
    const { id, segment } = await session(store, here.path, 2);
    await rewriteHeader(segment, '"format":"1.1"', '"format":"1.7"');
    const { journal, records } = await store.open(id);
    expect(records.filter(({ kind }) => kind === "message")).toHaveLength(2);
    await journal.append({ kind: "message", n: 2 });
    await journal.close();
    expect(lines(segment), "a blank line behind its tail tells lists that it goes on").toHaveLength(8);
    expect((await store.verify(id)).damaged).toEqual([]);
    expect(JSON.parse(lines(join(here.path, "sessions", id, "000002.jsonl"))[0]!)).toMatchObject({
      kind: "segment",
      format: "1.1",
      epoch: 1,
    });
    expect(await numbers(store, id)).toEqual([0, 1, 2]);
  });
});

describe("C22: every derived file deleted or filled with garbage", () => {
  const harms: [name: string, harm: (root: string) => void][] = [
    ["deleted", (root) => eachDerived(root, (path) => rmSync(path))],
    ["garbage", (root) => eachDerived(root, (path) => writeFileSync(path, "not a database at all".repeat(500)))],
    ["emptied", (root) => eachDerived(root, (path) => writeFileSync(path, ""))],
    ["a folder in its place", (root) => eachDerived(root, replaceByFolder)],
  ];
  test.each(harms)("%s: the list answers as before", async (_name, harm) => {
    using here = place();
    const options = { summariser: counting };
    const first = await openFolderStore(here.path, options);
    for (let i = 0; i < 5; i++) await session(first, here.path, i);
    const before = await first.list();
    expect(before.sessions).toHaveLength(5);
    await first.close();
    harm(here.path);
    await using second = await openFolderStore(here.path, options);
    expect(await second.list()).toEqual(before);
    expect(await second.list(), "and once more, from what it made anew").toEqual(before);
  });
});

test("a list sees what another process did: a changed session, a deleted one, a new one", async () => {
  using here = place();
  let now = Date.now();
  const options = { summariser: counting, clock: () => ++now };
  await using mine = await openFolderStore(here.path, options);
  await using theirs = await openFolderStore(here.path, options);
  const a = await session(mine, here.path, 1);
  const b = await session(mine, here.path, 1);
  expect((await mine.list()).sessions.map(({ id }) => id)).toEqual([b.id, a.id]);
  const { journal } = await theirs.open(a.id);
  await journal.append({ kind: "message", n: 1 });
  const listed = (await mine.list()).sessions;
  expect(listed.map(({ id, closed, head }) => [id, closed, head])).toEqual([
    [a.id, false, journal.head],
    [b.id, true, 5],
  ]);
  await journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
  expect((await mine.list()).sessions[0]).toMatchObject({ id: a.id, head: journal.head, summary: { last: "epoch" } });
  await journal.close();
  await theirs.delete(b.id);
  const c = await session(theirs, here.path, 1);
  expect((await mine.list()).sessions.map(({ id, closed }) => [id, closed])).toEqual([
    [c.id, true],
    [a.id, true],
  ]);
});

function eachDerived(root: string, harm: (path: string) => void): void {
  const derived = readdirSync(root).filter((name) => name.startsWith("catalog.sqlite"));
  expect(derived).toContain("catalog.sqlite");
  for (const name of derived) harm(join(root, name));
}

function rewriteLine(path: string, index: number, change: (line: string) => string): void {
  const all = lines(path);
  const before = all[index]!;
  all[index] = change(before);
  expect(all[index], "the damage did something").not.toBe(before);
  writeFileSync(path, all.join("\n"));
}

/** Changes the header and makes its checksum right: as another version of the library would have written it. */
async function rewriteHeader(path: string, from: string, to: string): Promise<void> {
  const { crc32 } = await import("node:zlib");
  rewriteLine(path, 0, (line) => {
    const covered = line.slice(0, line.lastIndexOf(',"crc":"')).replace(from, to);
    return `${covered},"crc":"${crc32(covered).toString(16).padStart(8, "0")}"}`;
  });
}

function replaceByFolder(path: string): void {
  rmSync(path);
  mkdirSync(path);
}

test("C22: one unreadable row in the catalogue does not end the list", async () => {
  using here = place();
  const first = await openFolderStore(here.path, { summariser: counting });
  await session(first, here.path, 1);
  const before = await first.list();
  await first.close();
  const catalogue = new DatabaseSync(join(here.path, "catalog.sqlite"));
  catalogue.exec("UPDATE sessions SET summary = '{\"rec'");
  catalogue.close();
  await using second = await openFolderStore(here.path, { summariser: counting });
  expect(await second.list()).toEqual(before);
});

test("P9: a session whose newest segment holds no whole record is still listed", async () => {
  using here = place();
  await using store = await openFolderStore(here.path, { segmentBytesMax: 300, summariser: counting });
  const id = newId();
  const journal = await store.create(id, []);
  for (let n = 0; n < 4; n++) await journal.append({ kind: "message", n });
  await journal.close();
  const segments = readdirSync(join(here.path, "sessions", id)).sort();
  const newest = join(here.path, "sessions", id, segments.at(-1)!);
  writeFileSync(newest, "\0".repeat(200));
  expect((await store.list()).sessions).toMatchObject([{ id, closed: false }]);
});

test("a list sees that a session goes on, also when its newest segment was full", async () => {
  using here = place();
  await using store = await openFolderStore(here.path, { segmentBytesMax: 300, durability: "process" });
  await using reader = await openFolderStore(here.path);
  const { id } = await session(store, here.path, 1);
  await reader.list();
  const { journal } = await store.open(id);
  for (let n = 0; n < 4; n++) await journal.append({ kind: "message", n });
  expect((await reader.list()).sessions).toMatchObject([{ id, closed: false, head: journal.head }]);
  await journal.close();
});

test("a writer without a summariser leaves the row of the list as it was", async () => {
  using here = place();
  await using store = await openFolderStore(here.path, { summariser: counting });
  const { id } = await session(store, here.path, 1);
  const [before] = (await store.list()).sessions;
  await using plain = await openFolderStore(here.path);
  const { journal } = await plain.open(id);
  await journal.append({ kind: "message" });
  await journal.close();
  expect((await plain.list()).sessions[0]?.summary).toEqual(before?.summary);
});

test("P9: a mark that is cut off with torn bytes is written again at once, so that damage stays damage for the next one who looks", async () => {
  using here = place();
  await using store = await openFolderStore(here.path);
  const { id, segment } = await session(store, here.path, 8);
  const all = lines(segment);
  // Only the very last record says that all before it were durable, and it is cut off behind lines that never were.
  const unmarked = await Promise.all(all.slice(1, -2).map((line) => withChecksum(line.replace(/"synced":\d+,/, ""))));
  const torn = "\0".repeat(20);
  unmarked[4] = torn;
  const last = unmarked.length + 1;
  const marked = await withChecksum(
    `{"seq":${last + 4},"synced":${last},"at":"2026-11-15T00:00:00.000Z","kind":"x","crc":""}`,
  );
  writeFileSync(segment, [all[0], ...unmarked, torn, torn, marked, ""].join("\n"));
  const before = (await store.read(id)).records.map(({ seq }) => seq);
  const first = await store.open(id);
  expect(first.recovery.cutBytes).toBeGreaterThan(0);
  expect(first.records.map(({ seq }) => seq)).toEqual(before);
  await first.journal.close();
  const second = await store.open(id);
  expect(second.records.map(({ seq }) => seq).slice(0, before.length)).toEqual(before);
  expect(second.recovery.cutBytes).toBe(0);
  await second.journal.close();
});

async function withChecksum(line: string): Promise<string> {
  const { crc32 } = await import("node:zlib");
  const covered = line.slice(0, line.lastIndexOf(',"crc":"'));
  return `${covered},"crc":"${crc32(covered).toString(16).padStart(8, "0")}"}`;
}

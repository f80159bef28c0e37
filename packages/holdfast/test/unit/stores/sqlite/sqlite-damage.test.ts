import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type JournalRecord, newId, openStore } from "holdfast";
import { openFolderStore, openSqliteStore, RECORD_BYTES_MAX } from "holdfast/internal";
import type { JournalStore } from "holdfast/store";
import { describe, expect, test } from "vitest";
import { place } from "../../../place.ts";
import { line, sealedLine, withoutNewline } from "../../journal/journals.ts";

const note = (text: string) => ({ kind: "note", text });
const textsOf = (records: readonly JournalRecord[]) =>
  records.filter((record) => record.kind === "note").map((record) => record["text"]);

async function all(records: AsyncIterable<JournalRecord>): Promise<JournalRecord[]> {
  const found: JournalRecord[] = [];
  for await (const record of records) found.push(record);
  return found;
}

/** The lines of the only session in a file, as somebody with a tool for SQLite sees them. */
function tamper<T>(file: string, work: (sqlite: DatabaseSync) => T): T {
  const sqlite = new DatabaseSync(file);
  try {
    return work(sqlite);
  } finally {
    sqlite.close();
  }
}

function linesOf(file: string): Buffer[] {
  return tamper(file, (sqlite) =>
    sqlite
      .prepare("SELECT line FROM lines ORDER BY place")
      .all()
      .map((row) => Buffer.from(row["line"] as Uint8Array)),
  );
}

function setLine(file: string, seq: number, bytes: Buffer): void {
  tamper(file, (sqlite) => {
    const set = sqlite.prepare("UPDATE lines SET line = ? WHERE place & 0xffffffff = ?");
    expect(set.run(bytes, seq).changes).toBe(1);
  });
}

/** segment, a, b, opened, c, d, e, closed: seqs 1 to 8. */
async function write(store: JournalStore): Promise<string> {
  const id = newId();
  const journal = await store.create(id, [note("a"), note("b")]);
  await journal.append(note("c"));
  await journal.append([note("d"), note("e")]);
  await journal.close();
  return id;
}

async function written(file: string): Promise<string> {
  await using store = await openSqliteStore(file);
  return await write(store);
}

test("S21: the rows are byte for byte the lines of the folder store, without the newline", async () => {
  using here = place();
  const options = { clock: () => 1_800_000_000_000 };
  const file = join(here.path, "store.db");
  const id = newId();
  for (const store of [
    await openSqliteStore(file, options),
    await openFolderStore(join(here.path, "folder"), options),
  ]) {
    const journal = await store.create(id, [note('a ü 🦀 \n ,"crc":"00000000"}')]);
    await journal.append(note("one"), { key: "k" });
    await journal.append([note("two"), note("three")]);
    await journal.close();
    await store.close();
  }
  const rows = Buffer.concat(linesOf(file).flatMap((row) => [row, Buffer.from("\n")]));
  expect(rows.toString()).toBe(readFileSync(join(here.path, "folder", "sessions", id, "000001.jsonl"), "utf8"));
});

describe("P9, C20: damage to a row costs that record alone, and is reported with its place", () => {
  const cases: [name: string, seq: number, change: (row: Buffer) => Buffer, why: "corrupt" | "foreign"][] = [
    ["a flipped bit in the middle", 3, (row) => flip(row, row.indexOf('"b"') + 1), "corrupt"],
    ["a flipped bit in the checksum", 5, (row) => flip(row, row.length - 5), "corrupt"],
    ["a flipped bit in the first of a unit", 6, (row) => flip(row, 40), "corrupt"],
    ["a flipped bit in the last of a unit", 7, (row) => flip(row, 40), "corrupt"],
    ["NULs", 5, (row) => Buffer.alloc(row.length), "corrupt"],
    ["no bytes", 5, () => Buffer.alloc(0), "corrupt"],
    ["the bytes cut short", 5, (row) => row.subarray(0, -1), "corrupt"],
    ["a whole record of another seq", 5, () => withoutNewline(line(99)), "corrupt"],
    ["JSON that is not ours", 5, () => Buffer.from('{"hello":1}'), "foreign"],
    ["the header", 1, (row) => flip(row, 40), "corrupt"],
  ];

  test.each(cases)("%s", async (_, seq, change, why) => {
    using here = place();
    const file = join(here.path, "store.db");
    const id = await written(file);
    const before = linesOf(file);
    setLine(file, seq, change(before[seq - 1]!));
    const damaged = linesOf(file);

    await using store = await openSqliteStore(file);
    const expected = before.flatMap((row, i) => (i + 1 === seq ? [] : [JSON.parse(row.toString()) as JournalRecord]));
    const { records, recovery } = await store.read(id);
    expect(records).toEqual(expected);
    const offset = before.slice(0, seq - 1).reduce((sum, row) => sum + row.length + 1, 0);
    const found = [{ segment: "000001", offset, bytes: damaged[seq - 1]!.length + 1, seq, why }];
    expect(recovery).toEqual({ unclean: false, cutBytes: 0, damaged: found, missing: [] });
    expect(await all(store.history(id))).toEqual(expected);
    expect((await store.verify(id)).damaged).toEqual(found);
    expect((await store.verify(id)).records).toBe(7);

    const { journal, records: opened } = await store.open(id);
    expect(opened).toEqual(expected);
    await journal.append(note("goes on"));
    await journal.close();
    const added = (await store.read(id)).records.slice(expected.length);
    // After a damaged header nobody knows the format of its segment, so a new one is begun.
    const kinds = seq === 1 ? ["segment", "opened", "note", "closed"] : ["opened", "note", "closed"];
    expect(added.map((record) => [record.seq, record.kind])).toEqual(kinds.map((kind, i) => [9 + i, kind]));
    await store.close();
    expect(linesOf(file).slice(0, 8)).toEqual(damaged);
  });

  test("the last row: its seq is not used again, and the end counts as unclean", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const id = await written(file);
    setLine(file, 8, flip(linesOf(file)[7]!, 40));
    await using store = await openSqliteStore(file);
    const { journal, recovery } = await store.open(id);
    expect(recovery).toMatchObject({ unclean: true, damaged: [{ seq: 8, why: "corrupt" }] });
    expect(await journal.append(note("next"))).toEqual({ seq: 10, last: 10 });
  });

  test("rows that were deleted are missing, at the end too, and their seqs are not used again", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const id = await written(file);
    tamper(file, (sqlite) => sqlite.exec("DELETE FROM lines WHERE place & 0xffffffff IN (3, 5, 7, 8)"));
    await using store = await openSqliteStore(file);
    const { records, recovery, journal } = await store.open(id);
    expect(textsOf(records)).toEqual(["a", "d"]);
    expect(recovery.missing).toEqual([
      { from: 3, to: 3 },
      { from: 5, to: 5 },
      { from: 7, to: 8 },
    ]);
    expect(recovery.unclean).toBe(true);
    expect((await journal.append(note("next"))).seq).toBe(10);
    expect((await store.verify(id)).missing).toHaveLength(3);
  });

  test("in an older epoch: not seen by a reader of the current one, and named by verify", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    let id: string;
    {
      await using store = await openSqliteStore(file);
      id = await write(store);
      const { journal } = await store.open(id);
      await journal.epoch(() => [{ kind: "epoch" }, note("carried")]);
      await journal.append(note("new"));
    }
    const lines = linesOf(file);
    const flipped = lines.findIndex((row) => row.includes('"new"'));
    for (const seq of [3, flipped + 1]) setLine(file, seq, flip(lines[seq - 1]!, 40));
    await using store = await openSqliteStore(file);
    const { records, recovery } = await store.read(id);
    expect(textsOf(records)).toEqual(["carried"]);
    expect(recovery.damaged.map(({ segment, seq }) => [segment, seq])).toEqual([["000002", flipped + 1]]);
    const { damaged, segments } = await store.verify(id);
    expect(damaged.map(({ segment, seq }) => [segment, seq])).toEqual([
      ["000001", 3],
      ["000002", flipped + 1],
    ]);
    expect(segments).toBe(2);
    const offsetOf = (index: number, first: number) =>
      lines.slice(first, index).reduce((sum, row) => sum + row.length + 1, 0);
    const header = lines.findIndex((row) => row.includes('"segment":2'));
    expect(damaged[1]!.offset).toBe(offsetOf(flipped, header));
  });

  test("a follower passes a damaged row over, and goes on", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const id = await written(file);
    setLine(file, 5, Buffer.from("rot"));
    await using store = await openSqliteStore(file);
    const seen: number[] = [];
    for await (const { seq } of store.follow(id)) {
      seen.push(seq);
      if (seq === 8) break;
    }
    expect(seen).toEqual([1, 2, 3, 4, 6, 7, 8]);
  });
});

test("P9: a damaged page of the database costs the records that lie on it, and no others", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  const id = newId();
  {
    await using store = await openSqliteStore(file);
    const journal = await store.create(id, []);
    for (let i = 0; i < 40; i++) await journal.append(note(`${i} ${"x".repeat(1500)}`), { durability: "process" });
    await journal.close();
  }
  const bytes = readFileSync(file);
  const page = Math.floor(bytes.indexOf('"text":"20 ') / 4096);
  // The head of a leaf: nothing on this page can be found any more.
  bytes.fill(0xff, page * 4096, page * 4096 + 8);
  writeFileSync(file, bytes);
  await using store = await openSqliteStore(file);
  const { records, recovery } = await store.read(id);
  const lost = recovery.damaged.map(({ seq }) => seq!);
  expect(lost.length).toBeGreaterThan(0);
  expect(lost.length).toBeLessThan(5);
  expect([...records.map(({ seq }) => seq), ...lost].sort((a, b) => a - b)).toEqual(
    Array.from({ length: 43 }, (_, i) => i + 1),
  );
  const verified = (await store.verify(id)).damaged;
  expect(verified.filter(({ seq }) => seq !== undefined)).toHaveLength(lost.length);
  // Whatever else is on such a page.
  expect(verified.at(-1)).toEqual({ segment: "database", offset: 0, bytes: 0, why: "corrupt" });
  const { journal } = await store.open(id);
  await journal.append(note("goes on"));
  await journal.close();
  expect((await store.read(id)).records.at(-2)).toMatchObject({ text: "goes on" });
});

describe("C22: the catalogue is derived", () => {
  test("a row whose summary is garbage is listed without one", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const id = await written(file);
    tamper(file, (sqlite) => sqlite.exec("UPDATE sessions SET summary = '{rot'"));
    await using store = await openSqliteStore(file);
    expect((await store.list()).sessions).toMatchObject([{ id, head: 8, closed: true, summary: null }]);
  });

  test("rows that are behind their journals are carried on over the lines that came later", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const summariser = {
      add: (row: unknown) => ((row as number | null) ?? 0) + 1,
      carries: () => false,
    };
    const ids: string[] = [];
    {
      await using store = await openSqliteStore(file, { summariser });
      for (let i = 0; i < 3; i++) ids.push(await write(store));
    }
    // As a writer leaves it that is killed in its first second.
    tamper(file, (sqlite) => {
      sqlite.exec("DELETE FROM lines WHERE place & 0xffffffff = 8 AND place >> 32 < 3");
      sqlite.exec("UPDATE sessions SET head = 2, closed = 0, summary = '2', at = '2020' WHERE key < 3");
    });
    await using store = await openSqliteStore(file, { summariser });
    const { sessions } = await store.list();
    expect(sessions.map(({ id }) => id)).toEqual([...ids].reverse());
    expect(sessions.map(({ head, closed, summary }) => [head, closed, summary])).toEqual([
      [8, true, 8],
      [7, false, 7],
      [7, false, 7],
    ]);
    const first = await store.list({ limit: 1 });
    const second = await store.list({ limit: 1, after: first.next! });
    const third = await store.list({ limit: 1, after: second.next! });
    expect([...first.sessions, ...second.sessions, ...third.sessions]).toEqual(sessions);
    expect(third.next).toBeUndefined();
    expect((await store.list({ after: second.next! })).sessions).toEqual(third.sessions);
  });
});

describe("P9: what is read is bounded, and of its type", () => {
  test("a line that is larger than any record is not read, and costs that record alone", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const id = await written(file);
    tamper(file, (sqlite) =>
      sqlite.exec(`UPDATE lines SET line = zeroblob(${RECORD_BYTES_MAX}) WHERE place & 0xffffffff = 5`),
    );
    await using store = await openSqliteStore(file);
    const { records, recovery } = await store.read(id);
    expect(textsOf(records)).toEqual(["a", "b", "d", "e"]);
    // It was not even looked at, so its length is not known.
    expect(recovery.damaged).toEqual([expect.objectContaining({ seq: 5, bytes: 1, why: "corrupt" })]);
    expect((await store.verify(id)).damaged).toEqual(recovery.damaged);
    expect(textsOf(await all(store.history(id)))).toEqual(["a", "b", "d", "e"]);
  });

  test.each([
    ["a number", "42"],
    ["a text", '"text"'],
    ["a list", "[1,2]"],
    ["nothing", "null"],
    ["an object of other things", '{"title":7,"turns":"many","queue":{},"labels":[],"parent":3,"state":"x"}'],
    ["nested very deep", `${"[".repeat(200_000)}${"]".repeat(200_000)}`],
    ["very long", `"${"x".repeat(2 * 1024 * 1024)}"`],
    ["no JSON", "{rot"],
  ])("a summary that is %s: the session is listed, and goes on", async (_, summary) => {
    using here = place();
    const file = join(here.path, "store.db");
    const id = await written(file);
    const other = await written(file);
    tamper(file, (sqlite) => sqlite.prepare("UPDATE sessions SET summary = ? WHERE id = ?").run(summary, id));
    await using store = await openStore(`sqlite:${file}`);
    const listed = (await store.list({ empty: true })).sessions.map((session) => session.id);
    expect(listed.sort()).toEqual([id, other].sort());
    await using journals = await openSqliteStore(file);
    expect((await journals.list({ where: { title: "x" } })).sessions).toEqual([]);
    const { journal } = await journals.open(id);
    await journal.append(note("goes on"));
    await journal.close();
  });
});

describe("C21, S16: formats", () => {
  const header = (id: string, format: string) =>
    withoutNewline(
      sealedLine(
        JSON.stringify({
          seq: 1,
          at: "2026-11-15T02:30:00.123Z",
          kind: "segment",
          format,
          session: id,
          segment: 1,
          epoch: 1,
        }).slice(0, -1),
      ),
    );

  test("a newer major version is refused in words, by every way in, and not written to", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const id = await written(file);
    setLine(file, 1, header(id, "2.0"));
    const before = linesOf(file);
    await using store = await openSqliteStore(file);
    for (const call of [
      () => store.open(id),
      () => store.read(id),
      () => all(store.history(id)),
      () => store.verify(id),
    ])
      await expect(call()).rejects.toMatchObject({ code: "FORMAT_NEWER" });
    expect(await store.holder(id)).toBeNull();
    await store.close();
    expect(linesOf(file)).toEqual(before);
  });

  test("a newer minor version is read, and a writer of this one begins a segment of its own", async () => {
    using here = place();
    const file = join(here.path, "store.db");
    const id = await written(file);
    setLine(file, 1, header(id, "1.9"));
    await using store = await openSqliteStore(file);
    const { journal } = await store.open(id);
    await journal.append(note("f"));
    await journal.close();
    const { records } = await store.read(id);
    expect(textsOf(records)).toEqual(["a", "b", "c", "d", "e", "f"]);
    const headers = records.filter(({ kind }) => kind === "segment");
    expect(headers.map((found) => [found.seq, found["format"], found["segment"], found["epoch"]])).toEqual([
      [1, "1.9", 1, 1],
      [9, "1.1", 2, 1],
    ]);
    expect((await store.verify(id)).segments).toBe(2);
  });
});

function flip(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at] = copy[at]! ^ 0x01;
  return copy;
}

import { cpSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newId } from "holdfast";
import { type Disk, nodeDisk } from "holdfast/disk";
import { lineOf, openFolderStore, openMemoryStore } from "holdfast/internal";
import type { VerbatimLine } from "holdfast/store";
import { expect, test } from "vitest";
import { SEGMENT_BYTES_MAX } from "../../../../../src/journal/record.ts";
import { adoptSession } from "../../../../../src/stores/folder/care/adopt.ts";
import { place } from "../../../../place.ts";

/** The lines of a session of two segments, written in the year 2029. */
async function linesOf(id: string): Promise<VerbatimLine[]> {
  const store = await openMemoryStore({ clock: () => Date.parse("2029-05-05T05:05:05.005Z") });
  const journal = await store.create(id, [{ kind: "session" }]);
  await journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
  await journal.close();
  return (await Array.fromAsync(store.history(id))).map((record) => lineOf(record)!);
}

async function* all(lines: readonly VerbatimLine[]): AsyncGenerator<readonly VerbatimLine[]> {
  yield lines;
}

test("a segment may be as large as the limit, newlines included, and not a byte larger; the limit is what readers read", async () => {
  using here = place();
  const id = newId();
  const lines = await linesOf(id);
  const sizes = [0, 0];
  let segment = 0;
  for (const { record, bytes } of lines) {
    if (record.kind === "segment") segment = Number(record["segment"]);
    sizes[segment - 1]! += bytes.length + 1;
  }
  expect(sizes[1]).toBeGreaterThan(0);
  const target = { disk: nodeDisk, incoming: join(here.path, "incoming"), sessions: here.path, id };
  const limit = Math.max(...sizes);
  await expect(adoptSession(target, all(lines), limit - 1)).rejects.toMatchObject({
    code: "RECORD_TOO_LARGE",
    facts: { segment: 1 + sizes.indexOf(limit), limitBytes: SEGMENT_BYTES_MAX },
  });
  expect(existsSync(join(here.path, id))).toBe(false);
  await adoptSession(target, all(lines), limit);
  expect(readdirSync(join(here.path, id)).map((name) => statSync(join(here.path, id, name)).size)).toEqual(sizes);
});

test("C23: a session that is created after an adopted one comes before it in lists", async () => {
  using here = place();
  await using store = await openFolderStore(here.path);
  const [before, adopted, after] = [newId(), newId(), newId()];
  await (await store.create(before, [])).close();
  await store.adopt!(adopted, all(await linesOf(adopted)));
  await (await store.create(after, [])).close();
  expect((await store.list()).sessions.map(({ id }) => id)).toEqual([after, adopted, before]);
});

test.each([
  [{}, "holdfast"],
  [{ app: "copier" }, "copier"],
])("P6: the lease of a session that is being adopted names who does it: %j", async (options, app) => {
  using here = place();
  await using store = await openFolderStore(here.path, options);
  await using other = await openFolderStore(here.path);
  const id = newId();
  const lines = await linesOf(id);
  const holders: unknown[] = [];
  async function* watched(): AsyncGenerator<readonly VerbatimLine[]> {
    holders.push(await other.holder(id));
    yield lines;
  }
  await store.adopt!(id, watched());
  expect(holders).toMatchObject([{ app, pid: process.pid }]);
  expect(await other.holder(id)).toBeNull();
});

test("what an earlier attempt left in `incoming`, and a folder that never became a session, are not adopted with it", async () => {
  using here = place();
  await using store = await openFolderStore(here.path);
  const id = newId();
  const lines = await linesOf(id);
  for (const [folder, name] of [
    [join(here.path, "incoming", id), "000001.jsonl"],
    [join(here.path, "incoming", id, "quarantine"), "000009.jsonl"],
    [join(here.path, "sessions", id), "000001.jsonl.0123456789ab.tmp"],
    [join(here.path, "sessions", id, "quarantine"), "torn"],
  ] as const) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, name), "left by another");
  }
  await store.adopt!(id, all(lines));
  expect(readdirSync(join(here.path, "sessions", id)).sort()).toEqual(["000001.jsonl", "000002.jsonl"]);
  expect(readdirSync(join(here.path, "incoming"))).toEqual([]);
  expect((await Array.fromAsync(store.history(id))).length).toBe(lines.length);
});

test.each(["ENOTEMPTY", "EEXIST"])("a session that was created meanwhile stays: the rename says %s", async (errno) => {
  using here = place();
  const rename = (from: string, to: string): void => {
    if (from.includes("incoming")) throw Object.assign(new Error(errno), { code: errno });
    nodeDisk.rename(from, to);
  };
  await using store = await openFolderStore(here.path, { disk: { ...nodeDisk, rename } });
  const id = newId();
  await expect(store.adopt!(id, all(await linesOf(id)))).rejects.toMatchObject({ code: "SESSION_EXISTS" });
  expect(readdirSync(join(here.path, "incoming"))).toEqual([]);
});

test("a large session is written in pieces, and is not held in memory as a whole", async () => {
  using here = place();
  const id = newId();
  const memory = await openMemoryStore();
  const journal = await memory.create(id, []);
  const text = "x".repeat(300_000);
  for (let n = 0; n < 20; n++) await journal.append({ kind: "message", n, text });
  await journal.close();
  const records = await Array.fromAsync(memory.history(id));
  const writes: number[] = [];
  const open: Disk["open"] = (path, mode) => {
    const file = nodeDisk.open(path, mode);
    const write = file.write.bind(file);
    return Object.assign(file, {
      write: (bytes: Uint8Array) => {
        if (path.includes("incoming")) writes.push(bytes.length);
        return write(bytes);
      },
    });
  };
  await using store = await openFolderStore(here.path, { disk: { ...nodeDisk, open } });
  await store.adopt!(id, all(records.map((record) => lineOf(record)!)));
  expect(Math.max(...writes)).toBeLessThan(2 * 1024 * 1024);
  expect(await Array.fromAsync(store.history(id))).toEqual(records);
});

test("P1: a session whose writer was killed, and which another one continued, is adopted with every record", async () => {
  using here = place();
  const id = newId();
  const [live, killed, copy] = ["live", "killed", "copy"].map((name) => join(here.path, name));
  await using first = await openFolderStore(live!, { durability: "process" });
  const journal = await first.create(id, [{ kind: "session" }]);
  for (let n = 0; n < 5; n++) await journal.append({ kind: "note", name: "n", value: n });
  // What a power cut would leave of it, at best.
  cpSync(join(live!, "sessions"), join(killed!, "sessions"), { recursive: true });
  await using second = await openFolderStore(killed!);
  const { journal: again } = await second.open(id);
  await again.append({ kind: "note", name: "n", value: "after" });
  await again.close();
  const files = readdirSync(join(killed!, "sessions", id));
  expect(
    files.filter((name) => /\.tail-\d+$/.test(name) && statSync(join(killed!, "sessions", id, name)).size > 0),
  ).toHaveLength(1);
  const original = await Array.fromAsync(second.history(id));
  await using target = await openFolderStore(copy!);
  await target.adopt!(id, all(original.map((record) => lineOf(record)!)));
  expect(await Array.fromAsync(target.history(id))).toEqual(original);
  expect((await target.verify(id)).damaged).toEqual([]);
  const { journal: goesOn, records } = await target.open(id);
  expect(records.map(({ seq }) => seq)).toEqual(original.map(({ seq }) => seq));
  await goesOn.close();
});

import { join } from "node:path";
import { newId } from "holdfast";
import { lineOf, openMemoryStore, openSqliteStore } from "holdfast/internal";
import type { VerbatimLine } from "holdfast/store";
import { expect, test, vi } from "vitest";
import { Database } from "../../../../src/stores/sqlite/database/database.ts";
import { Rows } from "../../../../src/stores/sqlite/rows/rows.ts";
import { place } from "../../../place.ts";

/** More lines than one transaction takes. */
const COUNT = 700;

async function linesOf(id: string): Promise<VerbatimLine[]> {
  await using store = await openMemoryStore();
  const journal = await store.create(id, []);
  await journal.append(Array.from({ length: COUNT }, (_, i) => ({ kind: "note", text: `${i}` })));
  await journal.close();
  return (await Array.fromAsync(store.history(id))).map((record) => lineOf(record)!);
}

test("gc leaves a session alone that is being adopted", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  await using store = await openSqliteStore(file);
  await using other = await openSqliteStore(file, { clock: () => Date.now() + 60_000 });
  const id = newId();
  const lines = await linesOf(id);
  async function* interrupted() {
    yield lines.slice(0, 600);
    expect(await other.gc({ graceMs: 0 })).toEqual({ removed: [] });
    yield lines.slice(600);
  }
  await store.adopt!(id, interrupted());
  expect(await store.verify(id)).toMatchObject({ records: lines.length, damaged: [], missing: [] });
});

test.each([1, 2, 511, 512, 513, 1024, 1025])("a session of %i lines is adopted as a whole", async (count) => {
  using here = place();
  await using store = await openSqliteStore(join(here.path, "store.db"));
  await using memory = await openMemoryStore();
  const id = newId();
  const notes = Array.from({ length: count - 1 }, (_, i) => ({ kind: "note", text: `${i}` }));
  await memory.create(id, notes);
  const records = await Array.fromAsync(memory.history(id));
  expect(records).toHaveLength(count);
  async function* lines() {
    yield records.map((record) => lineOf(record)!);
  }
  await store.adopt!(id, lines());
  expect(await Array.fromAsync(store.history(id))).toEqual(records);
  expect(await store.verify(id)).toMatchObject({ records: count, damaged: [], missing: [] });
  expect((await store.list()).sessions).toMatchObject([{ id, head: count, closed: false }]);
});

test("lines that are out of order are refused, and nothing of them is seen; gc removes what was copied", async () => {
  using here = place();
  await using store = await openSqliteStore(join(here.path, "store.db"), { clock: () => 1_900_000_000_000 });
  const id = newId();
  const lines = await linesOf(id);
  async function* reversed() {
    yield lines.slice(0, 600);
    yield lines.slice(0, 1);
  }
  async function* none() {}
  for (const given of [reversed, none])
    await expect(store.adopt!(id, given())).rejects.toMatchObject({ code: "RECORD_INVALID", facts: { session: id } });
  expect([await store.has(id), (await store.list()).sessions, await store.holder(id)]).toEqual([false, [], null]);
  expect((await store.gc({ graceMs: 0 })).removed).toEqual([id, id]);
  expect((await store.gc({ graceMs: 0 })).removed).toEqual([]);
});

test.each([
  ["512 lines", 1030, "x", [512, 512, 6]],
  ["a megabyte", 6, "x".repeat(400_000), [5, 1]],
])("an adoption writes at most %s at once, so that no writer waits long", async (_, count, text, expected) => {
  using here = place();
  await using store = await openSqliteStore(join(here.path, "store.db"));
  await using memory = await openMemoryStore();
  const id = newId();
  const journal = await memory.create(id, []);
  for (let i = 2; i < count; i++) await journal.append({ kind: "note", text });
  const records = await Array.fromAsync(memory.history(id));
  async function* lines() {
    for (const record of records) yield [lineOf(record)!];
  }
  const sizes: number[] = [];
  const { transaction } = Database.prototype;
  const insertLine = vi.spyOn(Rows.prototype, "insertLine");
  const transactions = vi.spyOn(Database.prototype, "transaction").mockImplementation(function <T>(
    this: Database,
    work: () => T,
  ): T {
    const before = insertLine.mock.calls.length;
    const result = transaction.call(this, work) as T;
    const inserted = insertLine.mock.calls.length - before;
    if (inserted > 0) sizes.push(inserted);
    return result;
  });
  try {
    await store.adopt!(id, lines());
  } finally {
    transactions.mockRestore();
    insertLine.mockRestore();
  }
  expect(sizes).toEqual(expected);
});

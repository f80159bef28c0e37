import { join } from "node:path";
import { newId } from "holdfast";
import { lineOf, openMemoryStore, openSqliteStore, type VerbatimLine } from "holdfast/store";
import { expect, test } from "vitest";
import { place } from "../place.ts";

/** More lines than one transaction takes. */
const COUNT = 700;

async function linesOf(id: string): Promise<VerbatimLine[]> {
  await using store = await openMemoryStore();
  const journal = await store.create(id, []);
  await journal.append(Array.from({ length: COUNT }, (_, i) => ({ kind: "note", text: `${i}` })));
  await journal.close();
  return (await Array.fromAsync(store.history(id))).map((record) => lineOf(record)!);
}

test("an adoption whose first lines gc has taken fails as a whole, and succeeds when it is repeated", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  await using store = await openSqliteStore(file);
  await using other = await openSqliteStore(file, { clock: () => Date.now() + 60_000 });
  const id = newId();
  const lines = await linesOf(id);
  async function* interrupted() {
    yield lines.slice(0, 600);
    await other.gc({ graceMs: 0 });
    yield lines.slice(600);
  }
  await expect(store.adopt!(id, interrupted())).rejects.toMatchObject({ code: "STORE_IO", message: /Try again/ });
  expect(await store.has(id)).toBe(false);
  async function* whole() {
    yield lines;
  }
  await store.adopt!(id, whole());
  expect(await store.verify(id)).toMatchObject({ records: lines.length, damaged: [], missing: [] });
});

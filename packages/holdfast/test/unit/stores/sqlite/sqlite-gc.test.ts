import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { newId } from "holdfast";
import { openSqliteStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { place } from "../../../place.ts";

const note = (text: string) => ({ kind: "note", text });

const TABLES = ["lines", "segments", "sessions"];

/** How many rows each table of a closed store has. */
function counts(file: string): number[] {
  const sqlite = new DatabaseSync(file, { readOnly: true });
  try {
    return TABLES.map((table) => Number(sqlite.prepare(`SELECT count(*) AS count FROM ${table}`).get()!["count"]));
  } finally {
    sqlite.close();
  }
}

async function collect(file: string, graceMs: number): Promise<readonly string[]> {
  await using store = await openSqliteStore(file);
  return (await store.gc({ graceMs })).removed;
}

test("gc removes every line, segment and row of what was deleted, and nothing else", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  const [gone, kept] = [newId(), newId()];
  {
    await using store = await openSqliteStore(file);
    for (const id of [gone, kept]) {
      const journal = await store.create(id, []);
      // More than one transaction removes.
      await journal.append(Array.from({ length: 600 }, (_, i) => note(`${i}`)));
      await journal.epoch(() => [{ kind: "epoch" }]);
      await journal.close();
    }
    await store.delete(gone);
    expect((await store.list()).sessions.map(({ id }) => id)).toEqual([kept]);
  }
  const before = counts(file);
  expect(await collect(file, 60_000)).toEqual([]);
  expect(counts(file)).toEqual(before);
  expect(await collect(file, -60_000)).toEqual([gone]);
  expect(counts(file)).toEqual(before.map((all) => all / 2));
  await using store = await openSqliteStore(file);
  expect(await store.has(gone)).toBe(false);
  expect(await store.verify(kept)).toMatchObject({ damaged: [], missing: [], unclean: false });
  // The id can be used again.
  await (await store.create(gone, [note("again")])).close();
});

test("gc leaves alone what only a row calls deleted, and a row that has another session's journal", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  const [first, second] = [newId(), newId()];
  {
    await using store = await openSqliteStore(file);
    for (const id of [first, second]) await (await store.create(id, [note(id)])).close();
    await store.delete(second);
  }
  const sqlite = new DatabaseSync(file);
  // A damaged row that was deleted under another id: its journal says whose it is.
  sqlite.prepare("UPDATE sessions SET id = ? WHERE id = ?").run(newId(), second);
  sqlite.exec("INSERT INTO sessions (key, id, at, head, closed, summary, trashed) VALUES (9, 'x', '', 0, 0, '', 1)");
  sqlite.close();
  expect(await collect(file, -60_000)).toEqual(["x"]);
  expect(counts(file)[TABLES.indexOf("sessions")]).toBe(2);
  await using store = await openSqliteStore(file);
  expect(await store.has(first)).toBe(true);
});

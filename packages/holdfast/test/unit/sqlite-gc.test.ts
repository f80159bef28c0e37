import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { newId } from "holdfast";
import { openSqliteStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { place } from "../place.ts";

const note = (text: string) => ({ kind: "note", text });

function count(file: string, table: string): number {
  const sqlite = new DatabaseSync(file, { readOnly: true });
  try {
    return Number(sqlite.prepare(`SELECT count(*) AS count FROM ${table}`).get()!["count"]);
  } finally {
    sqlite.close();
  }
}

test("gc removes every line, segment and row of what was deleted, and its lease, and nothing else", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  await using store = await openSqliteStore(file);
  const [gone, kept] = [newId(), newId()];
  for (const id of [gone, kept]) {
    const journal = await store.create(id, []);
    // More than one transaction removes.
    await journal.append(Array.from({ length: 600 }, (_, i) => note(`${i}`)));
    await journal.epoch(() => [{ kind: "epoch" }]);
    await journal.close();
  }
  await store.delete(gone);
  expect((await store.list()).sessions.map(({ id }) => id)).toEqual([kept]);
  const before = ["lines", "segments", "sessions"].map((table) => count(file, table));
  expect((await store.gc({ graceMs: 60_000 })).removed).toEqual([]);
  expect(["lines", "segments", "sessions"].map((table) => count(file, table))).toEqual(before);
  expect((await store.gc({ graceMs: -60_000 })).removed).toEqual([gone]);
  expect(["lines", "segments", "sessions"].map((table) => count(file, table))).toEqual(before.map((all) => all / 2));
  expect([existsSync(join(`${file}-leases`, gone)), await store.has(gone)]).toEqual([false, false]);
  expect(await store.verify(kept)).toMatchObject({ damaged: [], missing: [], unclean: false });
  // The id can be used again.
  await (await store.create(gone, [note("again")])).close();
});

test("gc leaves alone what only a row calls deleted, and a row that has another session's journal", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  await using store = await openSqliteStore(file);
  const [first, second] = [newId(), newId()];
  for (const id of [first, second]) await (await store.create(id, [note(id)])).close();
  await store.delete(second);
  const sqlite = new DatabaseSync(file);
  // A damaged row that was deleted under another id: its journal says whose it is.
  sqlite.prepare("UPDATE sessions SET id = ? WHERE id = ?").run(newId(), second);
  sqlite.exec("INSERT INTO sessions (key, id, at, head, closed, summary, trashed) VALUES (9, 'x', '', 0, 0, '', 1)");
  sqlite.close();
  expect((await store.gc({ graceMs: -60_000 })).removed).toEqual(["x"]);
  expect(count(file, "sessions")).toBe(2);
  expect(await store.has(first)).toBe(true);
});

test("gc keeps the leases of sessions that exist, and those that somebody holds", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  await using store = await openSqliteStore(file);
  const [open, closed, stale] = [newId(), newId(), newId()];
  const journal = await store.create(open, []);
  await (await store.create(closed, [])).close();
  for (const name of [stale, `${stale}.json`]) writeFileSync(join(`${file}-leases`, name), "");
  await store.gc();
  const there = [open, closed, stale, `${stale}.json`].map((name) => existsSync(join(`${file}-leases`, name)));
  expect(there).toEqual([true, true, false, false]);
  await journal.append(note("still mine"));
});

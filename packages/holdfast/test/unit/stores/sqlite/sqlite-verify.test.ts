import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { newId } from "holdfast";
import { openSqliteStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { place } from "../../../place.ts";

test("P9: verify names the rows that are missing at the end", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  const id = newId();
  {
    await using store = await openSqliteStore(file);
    await using journal = await store.create(id, []);
    for (let i = 0; i < 5; i++) await journal.append({ kind: "note", i });
  }
  const sqlite = new DatabaseSync(file);
  sqlite.exec("DELETE FROM lines WHERE place & 0xffffffff >= 6");
  sqlite.close();
  await using store = await openSqliteStore(file);
  expect(await store.verify(id)).toMatchObject({ records: 5, missing: [{ from: 6, to: 8 }], unclean: true });
});

test("pack is refused, and says what there is not", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  await using store = await openSqliteStore(file);
  await expect(store.pack(newId())).rejects.toMatchObject({
    code: "NOT_SUPPORTED",
    facts: { call: "pack", url: store.url },
  });
});

test("P9: a list goes by the table of sessions where the index has as many entries and another order", async () => {
  using here = place();
  const file = join(here.path, "store.db");
  const [older, newer] = [newId(), newId()];
  {
    await using store = await openSqliteStore(file);
    for (const id of [older, newer]) await (await store.create(id, [{ kind: "session" }])).close();
  }
  const sqlite = new DatabaseSync(file, { readOnly: true });
  const { root, bytes } = sqlite
    .prepare(
      "SELECT rootpage AS root, page_size AS bytes FROM sqlite_schema, pragma_page_size WHERE name = 'sessions_by_time'",
    )
    .get() as { root: number; bytes: number };
  const { at } = sqlite.prepare("SELECT at FROM sessions WHERE id = ?").get(older) as { at: string };
  sqlite.close();
  const database = readFileSync(file);
  const entry = database.indexOf(`${at}${older}`, (root - 1) * bytes);
  expect(entry).toBeLessThan(root * bytes);
  database.write("9", entry);
  writeFileSync(file, database);
  await using store = await openSqliteStore(file);
  const first = await store.list({ limit: 1 });
  const second = await store.list({ limit: 1, after: first.next! });
  expect([...first.sessions, ...second.sessions].map(({ id }) => id)).toEqual([newer, older]);
});

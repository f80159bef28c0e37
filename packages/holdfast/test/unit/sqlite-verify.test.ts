import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { newId, openSqliteStore } from "holdfast";
import { expect, test } from "vitest";
import { place } from "../place.ts";

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

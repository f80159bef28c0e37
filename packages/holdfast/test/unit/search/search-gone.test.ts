import { setTimeout as sleep } from "node:timers/promises";
import { openMemoryStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { findDialect } from "../../../src/dialects/index.ts";
import { DerivedDatabase } from "../../../src/disk/derived-database.ts";
import type { TextTables } from "../../../src/journal/texts.ts";
import { SearchIndex } from "../../../src/search/search-index.ts";
import { SCHEMA, Tables } from "../../../src/search/tables.ts";
import { found, said, session } from "./search-stores.ts";

test("an index inside a store that answers later has forgotten a deleted session before it is searched", async () => {
  await using store = await openMemoryStore();
  const database = DerivedDatabase.inMemory(SCHEMA);
  const tables = new Tables(database);
  const answersLater: TextTables = {
    marks: async () => tables.marks(),
    mark: async (id) => tables.mark(id),
    behind: async function* () {
      const { sessions } = await store.list();
      const there = new Set(sessions.map(({ id }) => id));
      const marks = tables.marks();
      yield {
        progress: null,
        finish: async () => undefined,
        sessions: sessions.filter(({ id }) => !marks.has(id)).map(({ id, at, head }) => ({ id, at, head })),
        gone: [...marks.keys()].filter((id) => !there.has(id)),
      };
    },
    cut: async () => tables.cut(),
    add: async (...change) => tables.add(...change),
    forget: async (id) => {
      await sleep(20);
      tables.forget(id);
    },
    sweep: async () => tables.sweep(),
    sessionsWith: async (query) => tables.sessionsWith(query),
    hits: async (...query) => tables.hits(...query),
  };
  Object.assign(store, { texts: answersLater });
  const index = new SearchIndex(store, { dialectNamed: findDialect });
  const id = await session(store, [said("m", "a walrus")]);
  expect(await found(index, "walrus")).toEqual(["m"]);
  await store.delete(id);
  expect(await found(index, "walrus")).toEqual([]);
  await index.close();
  database.close();
});

import type { JournalStore } from "holdfast/store";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findDialect } from "../../../holdfast/src/dialects/index.ts";
import { SearchIndex, type SearchIndexOptions } from "../../../holdfast/src/search/search-index.ts";
import { describeSearch } from "../../../holdfast/test/unit/search/search-cases.ts";
import { clock, found, type SearchSite, said, session } from "../../../holdfast/test/unit/search/search-stores.ts";
import { openPostgresStore } from "../../src/index.ts";
import { type Server, startServer } from "../server/server.ts";

let server: Server;
let schemas = 0;

beforeAll(async () => {
  server = await startServer(["fsync=off"]);
});
afterAll(() => server.stop());

/** A schema of its own, which goes with the server. */
class PostgresSite implements SearchSite {
  readonly schema = `search_${++schemas}`;
  readonly #open: { close(): Promise<void> }[] = [];

  async store(url = server.url): Promise<JournalStore> {
    const options = { clock, durability: "process", connections: 2, schema: this.schema, directUrl: null } as const;
    const store = await openPostgresStore(url, options);
    this.#open.push(store);
    return store;
  }

  index(store: JournalStore, options: Partial<SearchIndexOptions> = {}): SearchIndex {
    const index = new SearchIndex(store, { dialectNamed: findDialect, delayMs: 0, ...options });
    this.#open.push(index);
    return index;
  }

  async query(text: string): Promise<Record<string, unknown>[]> {
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    try {
      return (await client.query(text)).rows;
    } finally {
      await client.end();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const opened of this.#open.reverse()) await opened.close();
  }
}

describeSearch("postgres", () => new PostgresSite());

describe("search in the database", () => {
  test("the words are there for all who search; a turn that ends is indexed without a search", async () => {
    await using site = new PostgresSite();
    const store = await site.store();
    const index = site.index(store);
    const id = await session(store, [said("m1", "needle")]);
    index.note(id);
    await index.settled();
    expect(index.failure).toBe(null);
    expect(await site.query(`SELECT text FROM ${site.schema}.texts`)).toEqual([{ text: "needle" }]);
    expect(await found(site.index(await site.store()), "needle")).toEqual(["m1"]);
  });

  test("C22: it is derived: emptied under a search, it is filled by the next", async () => {
    await using site = new PostgresSite();
    const store = await site.store();
    await session(store, [said("m1", "needle")]);
    const index = site.index(store);
    expect(await found(index, "needle")).toEqual(["m1"]);
    const tables = ["texts", "texts_sessions", "texts_messages", "texts_gone"];
    await site.query(`TRUNCATE ${tables.map((table) => `${site.schema}.${table}`).join(", ")}`);
    expect(await found(site.index(store), "needle")).toEqual(["m1"]);
  });

  test("several who index the same session at once add nothing twice", async () => {
    await using site = new PostgresSite();
    const store = await site.store();
    const many = Array.from({ length: 1500 }, (_, i) => said(`m${i}`, `needle ${i}`));
    await session(store, many);
    const indexes = [site.index(store), site.index(await site.store()), site.index(await site.store())];
    for (const hits of await Promise.all(indexes.map((index) => found(index, "needle"))))
      expect(hits).toHaveLength(1500);
    expect(await site.query(`SELECT count(*)::int AS rows FROM ${site.schema}.texts`)).toEqual([{ rows: 1500 }]);
  });

  test("ids and words as long and as strange as they may be", async () => {
    await using site = new PostgresSite();
    const store = await site.store();
    const word = "x".repeat(5000);
    const ids = ["nul \0", "half \ud83d", "i".repeat(10_000), `'"\\`];
    await session(store, [...ids.map((id) => said(id, `needle ${word} ${id}`)), said("other", `${word}y`)]);
    const index = site.index(store);
    expect(await found(index, "needle")).toEqual(ids.toReversed());
    expect(await found(index, `${word} needle`)).toEqual(ids.toReversed());
    expect(await found(index, word)).toEqual(["other", ...ids.toReversed()]);
    expect(await found(index, `${word}z`)).toEqual([]);
  });

  test.each([
    ["a role that may only read", ""],
    ["a database that is read-only, as a standby is", "SET default_transaction_read_only = on"],
  ])("%s: finds the same, and writes nothing", async (_, setting) => {
    await using site = new PostgresSite();
    const store = await site.store();
    await session(store, [said("m1", "needle")]);
    await site.query(`CREATE ROLE reader_${site.schema} LOGIN PASSWORD 'secret';
      GRANT USAGE ON SCHEMA ${site.schema} TO reader_${site.schema};
      GRANT ${setting === "" ? "SELECT" : "ALL"} ON ALL TABLES IN SCHEMA ${site.schema} TO reader_${site.schema}`);
    if (setting !== "") await site.query(`ALTER ROLE reader_${site.schema} ${setting}`);
    const reader = await site.store(server.url.replace("postgres:secret", `reader_${site.schema}:secret`));
    expect(await found(site.index(reader), "needle")).toEqual(["m1"]);
    expect(await site.query(`SELECT * FROM ${site.schema}.texts`)).toEqual([]);
  });
});

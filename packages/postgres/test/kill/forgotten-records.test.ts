import type { Finish, Session } from "holdfast";
import { newId } from "holdfast";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { findDialect } from "../../../holdfast/src/dialects/index.ts";
import { SearchIndex } from "../../../holdfast/src/search/search-index.ts";
import { hitsOf } from "../../../holdfast/test/unit/search/search-stores.ts";
import { openPostgresStore, openStore, type PostgresSessions } from "../../src/index.ts";
import { Network } from "../proxy/network.ts";
import { type Server, startServer } from "../server/server.ts";

/** A server that crashes forgets what was written with `process` just before. No row of a list may be ahead of it. */

let server: Server;
let schemas = 0;
let schema = "";

beforeAll(async () => {
  // What nobody waits for is not on the disk for ten seconds.
  server = await startServer(["wal_writer_delay=10s"]);
});
afterAll(() => server.stop());
beforeEach(() => {
  schema = `forgotten_${++schemas}`;
});

async function open(options: object = {}): Promise<PostgresSessions> {
  const store = await openStore(server.url, { schema, monthsAhead: 0, connections: 2, ...options });
  onTestFinished(() => store.close().catch(() => undefined));
  return store;
}

async function begun(store: PostgresSessions): Promise<Session<unknown>> {
  const session = await store.create<unknown>({ dialect: "anthropic" });
  await session.startTurn({ role: "user", content: "needle" });
  return session;
}

const finish: Finish<unknown> = async (session) => {
  const turn = await session.resumeTurn();
  await turn.append({ role: "assistant", content: [{ type: "text", text: "done" }] }, { end: true });
};

async function one(text: string): Promise<Record<string, unknown>> {
  return (await server.query(text))[0]!;
}

const heads = (): Promise<Record<string, unknown>[]> =>
  server.query(`SELECT h.id, h.head::int, greatest(c.head, c.live_head)::int AS listed
    FROM ${schema}.heads AS h JOIN ${schema}.catalogue AS c USING (place) ORDER BY h.place`);

/** The worker is gone: its leases are free. */
const dies = (): Promise<unknown> =>
  server.query(`UPDATE ${schema}.heads SET owner = NULL, fence = fence + 1 WHERE owner IS NOT NULL`);

describe("a server that crashes within a moment of streamed text", () => {
  test("the row is not ahead of the journal, and the fleet finishes the turn", async () => {
    const store = await open({ draftMs: 0 });
    const [streaming, other] = [await begun(store), await begun(store)];
    const before = (await heads()).find(({ id }) => id === streaming.id)!["head"] as number;
    const { draft } = streaming.turn!.request();
    draft.push({ text: "The answer is" });
    await expect
      .poll(async () => (await heads()).find(({ id }) => id === streaming.id)!["head"])
      .toBeGreaterThan(before);
    await server.crash();
    expect((await heads()).find(({ id }) => id === streaming.id)!["head"]).toBe(before);
    // The row of what is written afterwards is saved after the first one's.
    await other.turn!.append({ role: "assistant", content: [{ type: "text", text: "still here" }] });
    const isSaved = async (): Promise<boolean> => {
      const row = (await heads()).find(({ id }) => id === other.id)!;
      return row["listed"] === row["head"];
    };
    await expect.poll(isSaved, { timeout: 20_000 }).toBe(true);
    expect((await heads()).find(({ id }) => id === streaming.id)!["listed"]).toBeLessThanOrEqual(before);
    await dies();
    const claimed: (string | undefined)[] = [];
    const fleet = await open();
    for (let i = 0; i < 2; i++) claimed.push((await fleet.claimNext({}, finish))?.session);
    expect(claimed.sort()).toEqual([streaming.id, other.id].sort());
  });
});

describe("a row that a worker of an earlier version left ahead of the journal", () => {
  /** As such a worker did it. */
  async function leftAhead(): Promise<string> {
    const { id } = await begun(await open());
    await dies();
    await server.query(
      `UPDATE ${schema}.catalogue AS c SET live_head = h.head + 2, live_at = c.at, live_summary = c.summary || '{"state":"idle","turns":7}'
      FROM ${schema}.heads AS h WHERE h.place = c.place`,
    );
    return id;
  }

  test("the fleet finishes the turn", async () => {
    const id = await leftAhead();
    expect(await (await open()).claimNext({}, finish)).toMatchObject({ session: id, outcome: "finished" });
  });

  test("lists show what the journal has, and so does `resumeLatest`", async () => {
    const id = await leftAhead();
    const store = await open();
    expect((await store.list()).sessions).toMatchObject([{ id, status: "interrupted", turns: 1 }]);
    await using latest = await store.resumeLatest();
    expect(latest).toMatchObject({ id, interruption: { turn: 1 } });
  });

  test("a search finds it, and brings the row up to date", async () => {
    await leftAhead();
    const store = await openPostgresStore(server.url, { schema, monthsAhead: 0 });
    onTestFinished(() => store.close());
    const index = new SearchIndex(store, { dialectNamed: findDialect, delayMs: 0 });
    onTestFinished(() => index.close());
    expect(await hitsOf(index, "needle")).toHaveLength(1);
    const [row] = await heads();
    expect(row!["listed"]).toBe(row!["head"]);
  });

  test("the next writer does not take it for the row of its own records", async () => {
    const id = await leftAhead();
    const session = await (await open()).resume(id);
    await session.resumeTurn();
    const { head, ahead } = await one(
      `SELECT h.head::int, c.live_head::int AS ahead FROM ${schema}.heads AS h JOIN ${schema}.catalogue AS c USING (place)`,
    );
    expect(ahead).not.toBe(head);
    // It dies before it saves the row itself.
    await dies();
    expect((await (await open()).list()).sessions).toMatchObject([{ id, status: "interrupted", turns: 1 }]);
  });
});

test("a list that has read records which the server then forgets saves no row with them", async () => {
  const network = await Network.open(server.port);
  onTestFinished(() => network.close());
  const options = { schema, monthsAhead: 0, connections: 2 };
  const store = await openPostgresStore(server.url, options);
  onTestFinished(() => store.close().catch(() => undefined));
  const journal = await store.create(newId(), [{ kind: "note" }]);
  await journal.append({ kind: "note" });
  const reader = await openPostgresStore(network.through(server.url), { ...options, directUrl: null });
  onTestFinished(() => reader.close());
  const save = network.holdStatement("FOR UPDATE OF catalogue SKIP LOCKED");
  const listing = reader.list();
  await save.held;
  await server.query(`DELETE FROM ${schema}.lines WHERE seq = $1`, [journal.head]);
  await server.query(`UPDATE ${schema}.heads SET head = head - 1`);
  await save.goOn();
  await listing;
  const [row] = await heads();
  expect(row!["listed"]).toBeLessThanOrEqual(row!["head"] as number);
});

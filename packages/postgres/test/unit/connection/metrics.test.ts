import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { Metrics } from "../../../src/connection/metrics.ts";
import { openStore, type PostgresSessions, prometheusText } from "../../../src/index.ts";
import { OUTCOME_COUNTERS } from "../../../src/sessions.ts";
import type { WriteBatch } from "../../../src/writing/session-batch.ts";
import { type Server, startServer } from "../../server/server.ts";

let server: Server;

beforeAll(async () => {
  server = await startServer(["fsync=off"]);
});
afterAll(() => server.stop());

async function open(schema: string): Promise<PostgresSessions> {
  const store = await openStore(server.url, { schema, monthsAhead: 0 });
  onTestFinished(() => store.close().catch(() => undefined));
  return store;
}

test("what a store does is counted and timed", async () => {
  const store = await open("counted");
  const session = await store.create<unknown>({ dialect: "anthropic" });
  const turn = await session.startTurn({ role: "user", content: "hello" });
  await Promise.all([1, 2, 3].map((n) => session.note(`n${n}`, n)));
  const { counters, gauges, latencies } = store.metrics();
  expect(counters).toMatchObject({ appends: 4, appendsFailed: 0, appendsInDoubt: 0, leasesLost: 0, directLost: 0 });
  // `opened`, the start of the turn with its prompt, and the notes.
  expect(counters.records).toBe(1 + 2 + 3);
  expect(counters.bytes).toBeGreaterThan(500);
  expect(gauges).toMatchObject({ sessionsOpen: 1, directConnected: 1, connectionsWaiting: 0 });
  expect(latencies.append.count).toBe(4);
  expect(latencies.append.buckets.at(-1)).toEqual({ le: Number.POSITIVE_INFINITY, count: 4 });
  expect(latencies.statement.count).toBe(counters.statements);

  await server.query("UPDATE counted.heads SET owner = gen_random_uuid(), fence = fence + 1");
  await expect(turn.end()).rejects.toMatchObject({ code: "LEASE_LOST" });
  await server.query("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'");
  await expect.poll(() => store.metrics().counters.directLost).toBe(1);
  expect(store.metrics().counters.leasesLost).toBe(1);
});

test("a refused append is counted as failed", async () => {
  const store = await open("refused");
  const session = await store.create({ dialect: "anthropic" });
  await session.note("before", 1);
  await server.query("ALTER TABLE refused.lines ADD CONSTRAINT small CHECK (length(line) < 1000)");
  await expect(session.note("large", "x".repeat(2000))).rejects.toMatchObject({ code: "STORE_IO" });
  expect(store.metrics().counters).toMatchObject({ appends: 1, appendsFailed: 1 });
});

test("Prometheus can read it", async () => {
  const store = await open("printed");
  const session = await store.create({ dialect: "anthropic" });
  await session.note("a", 1);
  const lines = prometheusText(store.metrics(), { worker: 'a "b"\n' }).split("\n");
  expect(lines).toContain('holdfast_appends_total{worker="a \\"b\\"\\n"} 1');
  expect(lines).toContain('holdfast_append_seconds_bucket{worker="a \\"b\\"\\n",le="+Inf"} 1');
  expect(lines).toContain('holdfast_sessions_open{worker="a \\"b\\"\\n"} 1');
  expect(lines.at(-1)).toBe("");
  // https://prometheus.io/docs/instrumenting/exposition_formats
  const sample = /^[a-z_]+(\{([a-z]+="([^"\\\n]|\\[\\"n])*",?)*\})? [0-9.e+-]+$/;
  for (const line of lines.slice(0, -1))
    expect(line).toMatch(line.startsWith("#") ? /^# (HELP|TYPE) [a-z_]+ / : sample);
  expect(prometheusText(store.metrics())).toContain("\nholdfast_records_total 2\n");
});

describe("by itself", () => {
  const pool = { totalCount: 5, idleCount: 3, waitingCount: 2 } as Pool;

  test("every outcome of a claim has its counter", () => {
    const metrics = new Metrics();
    const outcomes = ["finished", "waiting", "paused", "ended", "failed", "failed", "gave-up", "given-back"] as const;
    for (const outcome of outcomes) metrics.count(OUTCOME_COUNTERS[outcome]);
    const { counters } = metrics.snapshot(pool, 0, false);
    expect(Object.fromEntries(Object.entries(counters).filter(([, count]) => count > 0))).toEqual({
      claimsFinished: 4,
      claimsFailed: 2,
      claimsGivenUp: 1,
      claimsGivenBack: 1,
    });
  });

  test("a statement counts and takes time, and fails with its own error", async () => {
    const metrics = new Metrics();
    expect(await metrics.statement(async () => "answer")).toBe("answer");
    const refused = new Error("refused");
    await expect(metrics.statement(() => Promise.reject(refused))).rejects.toBe(refused);
    const { counters, latencies } = metrics.snapshot(pool, 0, false);
    expect([counters.statements, counters.statementsFailed, latencies.statement.count]).toEqual([2, 1, 2]);
  });

  test("an append is in the bucket of its time, and in every larger one", () => {
    const metrics = new Metrics();
    const waits = [0.2, 1, 1.1, 10_000, 10_001];
    const batch = { units: 5, records: 7, bytes: 900, transaction: null, waitedMs: () => waits };
    metrics.appended(batch as unknown as WriteBatch);
    const { counters, latencies, gauges } = metrics.snapshot(pool, 4, true);
    expect(counters).toMatchObject({ appends: 5, records: 7, bytes: 900, transactions: 0 });
    const { buckets, count, sum } = latencies.append;
    const counts = Object.fromEntries(buckets.map(({ le, count }) => [le, count]));
    expect(counts).toMatchObject({ 0.001: 2, 0.0025: 3, 5: 3, 10: 4, Infinity: 5 });
    expect(buckets.map(({ le }) => le)).toEqual(buckets.map(({ le }) => le).sort((a, b) => a - b));
    expect([count, sum]).toEqual([5, expect.closeTo(20.0033, 6)]);
    expect(gauges).toEqual({
      sessionsOpen: 4,
      connections: 5,
      connectionsIdle: 3,
      connectionsWaiting: 2,
      directConnected: 1,
    });
    metrics.appended({ ...batch, transaction: {} } as unknown as WriteBatch);
    const again = metrics.snapshot(pool, 0, false);
    expect([again.counters.transactions, again.gauges.directConnected]).toEqual([1, 0]);
    // What was given out does not change any more.
    expect(counters.appends).toBe(5);
  });

  test("Prometheus gets every number, under its name, with its type in front", () => {
    const metrics = new Metrics();
    metrics.count("leasesLost", 3);
    metrics.count("directLost");
    const snapshot = metrics.snapshot(pool, 4, true);
    const lines = prometheusText(snapshot, { path: "a\\b" }).split("\n");
    const names = { counters: "counter", gauges: "gauge", latencies: "histogram" } as const;
    const types = lines.filter((line) => line.startsWith("# TYPE ")).map((line) => line.split(" ").at(-1));
    for (const [group, type] of Object.entries(names))
      expect(types.filter((one) => one === type)).toHaveLength(Object.keys(Reflect.get(snapshot, group)).length);
    const at = lines.indexOf('holdfast_leases_lost_total{path="a\\\\b"} 3');
    expect(lines.slice(at - 2, at)).toEqual([
      "# HELP holdfast_leases_lost_total Sessions that another worker has taken over (LEASE_LOST).",
      "# TYPE holdfast_leases_lost_total counter",
    ]);
    const gauge = lines.indexOf("# TYPE holdfast_connections_idle gauge");
    expect(lines[gauge + 1]).toBe('holdfast_connections_idle{path="a\\\\b"} 3');
    const plain = prometheusText(snapshot).split("\n");
    expect(plain).toContain("holdfast_direct_lost_total 1");
    expect(plain).toContain('holdfast_statement_seconds_bucket{le="0.001"} 0');
    expect(plain).toContain("holdfast_statement_seconds_sum 0");
    expect(plain).toContain("holdfast_statement_seconds_count 0");
  });
});

import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { openStore, type PostgresSessions, prometheusText } from "../../src/index.ts";
import { type Server, startServer } from "../server/server.ts";

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

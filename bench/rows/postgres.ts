import { once } from "node:events";
import { openPostgresStore } from "@holdfast/postgres";
import { newId } from "holdfast";
import { lineOf, openFolderStore } from "holdfast/internal";
import type { JournalStore, VerbatimLine } from "holdfast/store";
import pg from "pg";
import { startServer } from "../../packages/postgres/test/server/server.ts";
import type { Bench } from "../bench.ts";
import type { Results } from "../figure.ts";
import { summariser } from "../fixtures.ts";
import type { Entry } from "../messages.ts";
import { makeSession } from "../sessions.ts";
import { median, quantile } from "../statistics.ts";

/** As many as the store takes by default. */
const CONNECTIONS = 6;
const MESSAGES = 10_000;
const PAGE = 50;
const FOLLOWED_PER_ROUND = 50;

/** A real server with its own settings, for the length of a row. */
async function withServer(work: (url: string, raw: pg.Pool) => Promise<void>): Promise<void> {
  const server = await startServer();
  const raw = new pg.Pool({ connectionString: server.url, max: CONNECTIONS });
  raw.on("error", () => undefined);
  try {
    await work(server.url, raw);
  } finally {
    await raw.end();
    await server.stop();
  }
}

/**
 * Appends to 1, 8 and 64 sessions, each as soon as its last one is acknowledged, against an INSERT of the same message
 * by as many callers over as many connections.
 */
export async function postgresAppendRow(bench: Bench, { figures }: Results): Promise<void> {
  await withServer(async (url, raw) => {
    await raw.query("CREATE TABLE raw (session integer, seq integer, line text NOT NULL, PRIMARY KEY (session, seq))");
    await using store = await openPostgresStore(url, { connections: CONNECTIONS });
    const numbers = Array.from({ length: 64 }, () => 0);
    for (const sessions of [1, 8, 64]) {
      const journals = await Promise.all(Array.from({ length: sessions }, () => store.create(newId(), [])));
      const perRound = bench.size(sessions === 1 ? 1500 : 6000, sessions === 1 ? 400 : 1500);
      const sides = [
        (session: number, entry: Entry) => journals[session]!.append(entry.record),
        (session: number, entry: Entry) =>
          raw.query("INSERT INTO raw (session, seq, line) VALUES ($1, $2, $3)", [
            sessions * 100 + session,
            ++numbers[session]!,
            JSON.stringify(entry.message),
          ]),
      ] as const;
      const ratios: number[] = [];
      const rates: [number[], number[]] = [[], []];
      for (let round = -1; round < bench.size(9, 5); round++) {
        const spent: [number, number] = [0, 0];
        for (const which of (round % 2 === 0 ? [0, 1] : [1, 0]) as (0 | 1)[])
          spent[which] = await drive(bench.entries, sessions, perRound, sides[which]);
        // The first round warms both up.
        if (round < 0) continue;
        for (const which of [0, 1] as const) rates[which].push((perRound / spent[which]) * 1000);
        ratios.push(spent[1] / spent[0]);
      }
      figures.push({
        row: "postgres-append",
        what: `PostgreSQL store: appends to ${sessions === 1 ? "one session" : `${sessions} sessions`}, per second`,
        bound: { atLeast: sessions === 1 ? 0.75 : 0.6 },
        unit: "×",
        rounds: ratios,
        note: `${median(rates[0]).toFixed(0)} against ${median(rates[1]).toFixed(0)} raw INSERTs/s`,
      });
      await Promise.all(journals.map((journal) => journal.close()));
    }
  });
}

/** Milliseconds for `count` messages, one caller for each session. */
async function drive(
  entries: readonly Entry[],
  sessions: number,
  count: number,
  append: (session: number, entry: Entry) => Promise<unknown>,
): Promise<number> {
  let next = 0;
  const caller = async (session: number): Promise<void> => {
    while (next < count) await append(session, entries[next++ % entries.length]!);
  };
  const start = performance.now();
  await Promise.all(Array.from({ length: sessions }, (_, session) => caller(session)));
  return performance.now() - start;
}

interface Opening {
  readonly ms: number;
  readonly records: number;
}

/**
 * `store.resume` and the first look at `messages`, against a SELECT of the same lines and their parse. Each in a new
 * process that is connected.
 */
export async function postgresResumeRow(bench: Bench, { figures }: Results): Promise<void> {
  await withServer(async (url) => {
    for (const dialect of ["anthropic", "ai-sdk"] as const) {
      const { root, id } = await makeSession(bench.path("postgres-resume"), dialect, MESSAGES);
      await copyTo(url, root, id);
      const tasks = [
        ["resume", url, id],
        ["select", url, id],
      ] as const;
      const pairs: [Opening, Opening][] = [];
      for (let round = -1; round < bench.size(11, 5); round++) {
        const pair: Opening[] = [];
        for (const which of round % 2 === 0 ? [0, 1] : [1, 0])
          pair[which] = (await bench.child(tasks[which]!)) as Opening;
        const [ours, theirs] = pair as [Opening, Opening];
        if (ours.records !== MESSAGES) throw new Error(`resumed with ${ours.records} messages`);
        if (theirs.records < MESSAGES) throw new Error(`selected ${theirs.records} records`);
        if (round >= 0) pairs.push([ours, theirs]);
      }
      const middle = (which: 0 | 1): string => median(pairs.map((pair) => pair[which].ms)).toFixed(0);
      figures.push({
        row: "postgres-resume",
        what: `PostgreSQL store: resume 10,000 messages against SELECT and parse, ${dialect}`,
        bound: { atMost: 1.3 },
        unit: "×",
        rounds: pairs.map(([ours, theirs]) => ours.ms / theirs.ms),
        note: `${middle(0)} against ${middle(1)} ms`,
      });
    }
  });
}

async function copyTo(url: string, root: string, id: string): Promise<void> {
  await using from = await openFolderStore(root);
  await using to = await openPostgresStore(url);
  async function* lines(): AsyncGenerator<readonly VerbatimLine[]> {
    for await (const record of from.history(id)) yield [lineOf(record)!];
  }
  await to.adopt!(id, lines());
}

/** How long after a writer in another process called `append` a follower has the record. */
export async function postgresFollowRow(bench: Bench, { figures }: Results): Promise<void> {
  await withServer(async (url) => {
    await using store = await openPostgresStore(url);
    const id = newId();
    const rounds = bench.size(9, 5);
    const count = rounds * FOLLOWED_PER_ROUND;
    const writer = bench.spawnChild(["write", url, id, String(count)]);
    const stop = new AbortController();
    const ended = once(writer, "exit");
    void ended.then(([status]) => {
      if (status !== 0) stop.abort(new Error(`the writer ended with ${status}`));
    });
    await once(writer.stdout!, "data", { signal: stop.signal });
    const delaysMs: number[] = [];
    setImmediate(() => writer.stdin!.write("go\n"));
    for await (const record of store.follow(id, { signal: stop.signal })) {
      const now = process.hrtime.bigint();
      if (typeof record["sentNs"] !== "string") continue;
      delaysMs.push(Number(now - BigInt(record["sentNs"])) / 1e6);
      if (delaysMs.length === count) stop.abort();
    }
    const [status] = await ended;
    if (status !== 0) throw new Error(`the writer ended with ${status}`);
    figures.push({
      row: "postgres-follow",
      what: "PostgreSQL store: a follower's delay behind a writer in another process, p50",
      bound: { under: 100 },
      unit: "ms",
      rounds: Array.from({ length: rounds }, (_, round) =>
        quantile(delaysMs.slice(round * FOLLOWED_PER_ROUND, (round + 1) * FOLLOWED_PER_ROUND), 0.5),
      ),
      note: `p99 ${quantile(delaysMs, 0.99).toFixed(1)} ms; from before the append to the record in hand`,
    });
  });
}

/**
 * A page of 50 of 10,000 sessions: the first, one in the middle, and one of those that a filter finds; against a raw
 * SELECT of a page of rows. No record is read, which is asserted: the lines are gone.
 */
export async function postgresListRow(bench: Bench, { figures, peers }: Results): Promise<void> {
  await withServer(async (url, raw) => {
    const count = bench.size(10_000, 2000);
    await using store = await openPostgresStore(url, { summariser });
    await makeSessions(bench, store, count);
    await raw.query("TRUNCATE holdfast.lines");
    await raw.query("CREATE TABLE raw AS SELECT id, at, summary FROM holdfast.catalogue");
    await raw.query("CREATE INDEX ON raw (at DESC, id DESC)");
    await raw.query("ANALYZE");
    const middle = (await store.list({ limit: count / 2 })).next!;
    const [at, id] = middle.split("_");
    const plans = [
      {
        what: "the first page",
        ours: () => store.list({ limit: PAGE }),
        theirs: () => raw.query("SELECT id, at, summary FROM raw ORDER BY at DESC, id DESC LIMIT $1", [PAGE + 1]),
      },
      {
        what: "a page in the middle",
        ours: () => store.list({ limit: PAGE, after: middle }),
        theirs: () =>
          raw.query("SELECT id, at, summary FROM raw WHERE (at, id) < ($1, $2) ORDER BY at DESC, id DESC LIMIT $3", [
            at,
            id,
            PAGE + 1,
          ]),
      },
      {
        what: "a page of those of one folder",
        ours: () => store.list({ limit: PAGE, where: { cwd: "/home/me/project-7" } }),
        theirs: () =>
          raw.query("SELECT id, at, summary FROM raw WHERE summary ->> 'cwd' = $1 ORDER BY at DESC, id DESC LIMIT $2", [
            "/home/me/project-7",
            PAGE + 1,
          ]),
      },
    ];
    for (const { what, ours, theirs } of plans) {
      const ms: [number[], number[]] = [[], []];
      for (let round = -3; round < bench.size(41, 15); round++) {
        for (const which of (round % 2 === 0 ? [0, 1] : [1, 0]) as (0 | 1)[]) {
          const start = performance.now();
          await (which === 0 ? ours() : theirs());
          if (round >= 0) ms[which].push(performance.now() - start);
        }
      }
      const name = `PostgreSQL store: ${what} of ${count.toLocaleString("en")} sessions`;
      figures.push({
        row: "postgres-list",
        what: `${name}, p50`,
        bound: { under: 50 },
        unit: "ms",
        rounds: ms[0],
        note: `a raw SELECT of as many rows: ${median(ms[1]).toFixed(1)} ms`,
      });
    }
    const start = performance.now();
    let pages = 0;
    for (let after: string | undefined; ; pages++) {
      const page = await store.list(after === undefined ? { limit: 500 } : { limit: 500, after });
      after = page.next;
      if (after === undefined) break;
    }
    peers.push({
      what: `holdfast: all ${count.toLocaleString("en")} sessions of a PostgreSQL store, in pages of 500`,
      unit: "ms",
      rounds: [performance.now() - start],
      note: `${pages + 1} pages`,
    });
  });
}

/** Closed sessions of two messages each, several at a time. */
async function makeSessions(bench: Bench, store: JournalStore, count: number): Promise<void> {
  let made = 0;
  const maker = async (): Promise<void> => {
    while (made < count) {
      const i = made++;
      const session = { kind: "session", title: `Session ${i}`, cwd: `/home/me/project-${i % 50}` };
      const journal = await store.create(newId(), [session, bench.entries[i % bench.entries.length]!.record]);
      await journal.close();
      if (made % 2000 === 0) bench.say(`made ${made} sessions`);
    }
  };
  await Promise.all(Array.from({ length: 16 }, maker));
}

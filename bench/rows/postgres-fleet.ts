import { setTimeout as sleep } from "node:timers/promises";
import { openPostgresStore, openStore } from "@holdfast/postgres";
import { newId, type Store } from "holdfast";
import type { JournalStore, TextTables } from "holdfast/store";
import pg from "pg";
import { type Server, startServer } from "../../packages/postgres/test/server/server.ts";
import type { Bench } from "../bench.ts";
import type { Results } from "../figure.ts";
import type { Entry } from "../messages.ts";
import { median } from "../statistics.ts";

const SESSIONS = 20_000;
const LINES_PER_SESSION = 50;
const PAGE = 20;
const APPENDING = 50;
const IDLE = 100;
/** How many of the sessions have the word that is searched for. */
const WITH_WORD = 20;

/** A store at the size of a fleet: 20,000 sessions that were never closed, with a million lines, all indexed. */
interface Fleet {
  readonly url: string;
  /** The same number of sessions, all of them closed. */
  readonly closedUrl: string;
  readonly emptyUrl: string;
}

export async function postgresFleetRow(bench: Bench, results: Results): Promise<void> {
  const server = await startServer(["max_connections=400"]);
  try {
    const fleet = await makeFleet(bench, server);
    await listRow(bench, results, fleet);
    await searchRow(bench, results, fleet);
    await appendRow(bench, results, fleet);
    await idleRow(bench, results, fleet);
  } finally {
    await server.stop();
  }
}

async function makeFleet(bench: Bench, server: Server): Promise<Fleet> {
  const urls = ["fleet", "closed", "empty"].map((name) => server.url.replace(/\/postgres$/, `/${name}`));
  const [url, closedUrl, emptyUrl] = urls as [string, string, string];
  for (const name of ["fleet", "closed", "empty"]) await server.query(`CREATE DATABASE ${name}`);
  const sessions = bench.size(SESSIONS, SESSIONS / 10);
  for (const [place, isClosed] of [
    [url, false],
    [closedUrl, true],
  ] as const) {
    await using store = await openStore(place, { app: "bench" });
    const id = await makeTemplate(store);
    for await (const _ of store.search("template")) break;
    await copies(place, id, sessions, isClosed);
  }
  bench.say(`made ${sessions} sessions with ${sessions * LINES_PER_SESSION} lines`);
  return { url, closedUrl, emptyUrl };
}

/** A session of 50 lines as an application writes them. */
async function makeTemplate(store: Store): Promise<string> {
  const session = await store.create({ dialect: "anthropic", title: "The template", cwd: "/home/me" });
  const turn = await session.startTurn({ role: "user", content: "Say something, please." });
  // Beside the messages: header, opened, session, turn and end of turn, closed.
  for (let i = 0; i < LINES_PER_SESSION - 7; i++)
    await turn.append({ role: "assistant", content: `Answer ${i}: the file and its test were read and changed.` });
  await turn.end();
  await session.close();
  return session.id;
}

/** Copies the rows of the template in the database: a million appends would take an hour. */
async function copies(url: string, id: string, count: number, isClosed: boolean): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`
      CREATE TEMP TABLE new AS SELECT n, (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint + n), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid AS id
        FROM generate_series(1, ${count - 1}) AS n;
      INSERT INTO holdfast.heads (place, id, head, fence) SELECT new.id, new.id, h.head, 1 FROM new, holdfast.heads AS h WHERE h.id = '${id}';
      INSERT INTO holdfast.segments SELECT new.id, s.number, s.epoch, s.first FROM new, holdfast.segments AS s WHERE s.place = '${id}';
      INSERT INTO holdfast.catalogue (place, id, at, head, closed, summary)
        SELECT new.id, new.id, to_char(now() + n * interval '1 millisecond', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), c.head, ${isClosed}, c.summary FROM new, holdfast.catalogue AS c WHERE c.id = '${id}';`);
    if (!isClosed)
      await client.query(`
      INSERT INTO holdfast.lines SELECT new.id, l.seq, l.line FROM new, holdfast.lines AS l WHERE l.place = '${id}';
      INSERT INTO holdfast.texts_sessions (id, seq, crc, head, at, dialect, blind, cut)
        SELECT new.id, t.seq, t.crc, t.head, c.at, t.dialect, t.blind, t.cut FROM holdfast.texts_sessions AS t, new JOIN holdfast.catalogue AS c USING (id) WHERE t.id = '${id}';
      INSERT INTO holdfast.texts (session, seq, stretch, said, message, text, words)
        SELECT s.key, t.seq, t.stretch, t.said, t.message, t.text, t.words
        FROM holdfast.texts AS t, new JOIN holdfast.texts_sessions AS s USING (id)
        WHERE t.session = (SELECT key FROM holdfast.texts_sessions WHERE id = '${id}') AND (t.seq + n) % 10 = 0;
      INSERT INTO holdfast.texts (session, seq, stretch, said, message, text, words)
        SELECT s.key, 1, 0, 'w', '"w"', 'The needle is here', ' the needle is here '
        FROM new JOIN holdfast.texts_sessions AS s USING (id) WHERE n <= ${WITH_WORD};
      DELETE FROM holdfast.texts_changes`);
    await client.query("CHECKPOINT");
  } finally {
    await client.end();
  }
  await tidy(url);
}

/** What the server does by itself within a minute. */
async function tidy(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("VACUUM ANALYZE");
  await client.end();
}

/** Milliseconds of each side, one after the other, in rounds. */
async function compare(
  sides: readonly [() => Promise<unknown>, () => Promise<unknown>],
  rounds: number,
): Promise<[number[], number[]]> {
  const ms: [number[], number[]] = [[], []];
  for (let round = -5; round < rounds; round++) {
    for (const which of (round % 2 === 0 ? [0, 1] : [1, 0]) as (0 | 1)[]) {
      const start = performance.now();
      await sides[which]();
      if (round >= 0) ms[which].push(performance.now() - start);
    }
  }
  return ms;
}

async function listRow(bench: Bench, { figures }: Results, { url, closedUrl }: Fleet): Promise<void> {
  await using store = await openPostgresStore(url);
  await using closed = await openPostgresStore(closedUrl);
  const start = performance.now();
  await store.list({ limit: PAGE });
  const firstMs = performance.now() - start;
  // Each list settles some of them.
  for (let times = 0; times < 12; times++) await store.list({ limit: PAGE });
  await tidy(url);
  const [ours, theirs] = await compare(
    [() => store.list({ limit: PAGE }), () => closed.list({ limit: PAGE })],
    bench.size(41, 15),
  );
  figures.push({
    row: "postgres-fleet",
    what: "PostgreSQL store: a list of 20 with 20,000 sessions that were never closed, against all of them closed",
    bound: { atMost: 2 },
    unit: "×",
    rounds: [median(ours) / median(theirs)],
    note: `${median(ours).toFixed(1)} against ${median(theirs).toFixed(1)} ms; the first list of all took ${firstMs.toFixed(0)} ms`,
  });
}

async function searchRow(bench: Bench, { figures }: Results, { url }: Fleet): Promise<void> {
  await using store = await openStore(url, { app: "bench" });
  await using journals = await openPostgresStore(url);
  const texts = journals.texts as TextTables;
  const search = async (): Promise<void> => {
    let hits = 0;
    for await (const _ of store.search("needle")) hits++;
    if (hits < WITH_WORD) throw new Error(`found ${hits} hits`);
  };
  const bare = async (): Promise<void> => {
    for (const id of await texts.sessionsWith(["needle"])) await texts.hits(id, ["needle"], null, 20);
  };
  const start = performance.now();
  await search();
  const firstMs = performance.now() - start;
  await tidy(url);
  const [ours, theirs] = await compare([search, bare], bench.size(41, 15));
  figures.push({
    row: "postgres-fleet",
    what: "PostgreSQL store: a search with nothing new to index, against its bare query",
    bound: { atMost: 1.5 },
    unit: "×",
    rounds: [median(ours) / median(theirs)],
    note: `${median(ours).toFixed(1)} against ${median(theirs).toFixed(1)} ms; the first, which compares all sessions: ${firstMs.toFixed(0)} ms`,
  });
}

async function appendRow(bench: Bench, { figures }: Results, { url, emptyUrl }: Fleet): Promise<void> {
  await using store = await openPostgresStore(url);
  await using empty = await openPostgresStore(emptyUrl);
  const journalsOf = (of: JournalStore) => Promise.all(Array.from({ length: APPENDING }, () => of.create(newId(), [])));
  const [large, small] = [await journalsOf(store), await journalsOf(empty)];
  const perRound = bench.size(4000, 1000);
  const drive = async (journals: Awaited<ReturnType<typeof journalsOf>>): Promise<void> => {
    let next = 0;
    const caller = async (session: number): Promise<void> => {
      while (next < perRound)
        await journals[session]!.append((bench.entries[next++ % bench.entries.length] as Entry).record);
    };
    await Promise.all(journals.map((_, session) => caller(session)));
  };
  const [ours, theirs] = await compare([() => drive(large), () => drive(small)], bench.size(9, 5));
  const rate = (ms: readonly number[]): string => ((perRound / median(ms)) * 1000).toFixed(0);
  figures.push({
    row: "postgres-fleet",
    what: "PostgreSQL store: appends of 50 sessions beside a million lines, against an empty database",
    bound: { atLeast: 0.7 },
    unit: "×",
    rounds: ours.map((ms, round) => theirs[round]! / ms),
    note: `${rate(ours)} against ${rate(theirs)} appends/s`,
  });
}

/** Each holds a session that nobody writes to. */
async function idleRow(bench: Bench, { figures }: Results, { url }: Fleet): Promise<void> {
  const stores: JournalStore[] = [];
  try {
    for (let count = 0; count < IDLE; count++) {
      const store = await openPostgresStore(url, { connections: 1 });
      stores.push(store);
      await (await store.create(newId(), [])).append({ kind: "note" });
    }
    // Until their rows are settled.
    await sleep(35_000);
    const query = pg.Client.prototype.query as (...given: unknown[]) => unknown;
    let statements = 0;
    pg.Client.prototype.query = function (this: pg.Client, ...given: unknown[]) {
      statements++;
      return query.apply(this, given);
    } as typeof pg.Client.prototype.query;
    const rounds: number[] = [];
    try {
      for (let round = 0; round < bench.size(3, 2); round++) {
        const [before, start] = [statements, performance.now()];
        await sleep(10_000);
        rounds.push(((statements - before) / (performance.now() - start)) * 1000);
      }
    } finally {
      pg.Client.prototype.query = query as typeof pg.Client.prototype.query;
    }
    figures.push({
      row: "postgres-fleet",
      what: "PostgreSQL store: statements of 100 idle workers, each with an open session, per second",
      bound: { atMost: 25 },
      unit: "/s",
      rounds,
    });
  } finally {
    await Promise.all(stores.map((store) => store.close()));
  }
}

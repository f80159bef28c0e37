import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync, symlinkSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { newId, openStore, type Store } from "holdfast";
import { Memory, openFolderStore, openMemoryStore, openSqliteStore } from "holdfast/internal";
import type { Journal, JournalStore } from "holdfast/store";
import { describe, expect, test } from "vitest";
import { findDialect } from "../../../src/dialects/index.ts";
import { realPath } from "../../../src/disk/node-disk.ts";
import { type HoldfastError, isHoldfastError } from "../../../src/errors.ts";
import { sessionSummariser } from "../../../src/listing/fold-row.ts";
import { listSessions, unfinishedFirst } from "../../../src/listing/list.ts";
import type { ListQuery, Summary } from "../../../src/listing/query.ts";
import { CountingDisk } from "../../counting-disk.ts";
import { place } from "../../place.ts";

const summariser = sessionSummariser(findDialect);
const asIs = (path: string): string => path;
const START = Date.parse("2026-11-15T00:00:00.000Z");

/** A store under a clock that goes on by a second for each look at it. */
interface Subject extends AsyncDisposable {
  readonly store: JournalStore;
  list(query?: ListQuery): Promise<{ sessions: Summary[]; next?: string }>;
  /** Whose lease was looked at. */
  readonly probes: string[];
  /** What was asked of the store's own list. */
  readonly asked: unknown[];
}

const stores = {
  memory: (_: string, options: object) => openMemoryStore(options),
  folder: (path: string, options: object) => openFolderStore(path, options),
  sqlite: (path: string, options: object) => openSqliteStore(join(path, "store.sqlite"), options),
};
const names = Object.keys(stores) as (keyof typeof stores)[];

async function open(name: keyof typeof stores, options: object = {}): Promise<Subject> {
  const here = place();
  let now = START;
  const clock = () => (now += 1000);
  const store = await stores[name](here.path, { summariser, clock, durability: "process", ...options });
  const probes: string[] = [];
  const asked: unknown[] = [];
  const watched = new Proxy(store, {
    get(target, member) {
      const value: unknown = Reflect.get(target, member, target);
      if (typeof value !== "function") return value;
      return (...parameters: unknown[]) => {
        if (member === "holder") probes.push(String(parameters[0]));
        if (member === "list") asked.push(parameters[0]);
        return Reflect.apply(value, target, parameters);
      };
    },
  });
  return {
    store: watched,
    probes,
    asked,
    list: (query = {}) => listSessions(watched, query, asIs),
    [Symbol.asyncDispose]: async () => {
      await store.close();
      here[Symbol.dispose]();
    },
  };
}

const prompt = (turn: number, text: string) => [
  { kind: "turn.started", turn, prompt: `p${turn}` },
  { kind: "message", id: `p${turn}`, turn, step: `p${turn}`, message: { role: "user", content: text } },
];
const end = (turn: number, outcome: string) => ({ kind: "turn.ended", turn, outcome });

/** A session with these attributes, and records after its first. */
async function begin(store: JournalStore, attributes: object = {}, ...records: { kind: string }[]): Promise<Journal> {
  const journal = await store.create(newId(), [{ kind: "session", dialect: "anthropic", ...attributes }]);
  if (records.length > 0) await journal.append(records);
  return journal;
}

/** One that was used and closed. */
async function finished(store: JournalStore, title: string, attributes: object = {}): Promise<string> {
  await using journal = await begin(store, { title, ...attributes }, ...prompt(1, "x"), end(1, "completed"));
  return journal.id;
}

const titlesOf = ({ sessions }: { sessions: Summary[] }): string[] => sessions.map(({ title }) => title);
const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => "went well",
    (error: HoldfastError) => error.code,
  );

describe.each(names)("list of a %s store", (name) => {
  test("newest first, with what is known of each", async () => {
    await using subject = await open(name);
    const { store } = subject;
    await finished(store, "old");
    const parent = { session: newId(), call: "c1" };
    const labels = { team: "a" };
    const attributes = { cwd: "/work", app: "agent", labels, parent };
    await using journal = await begin(store, attributes, ...prompt(1, "Hello\nthere"), end(1, "completed"));
    await journal.append({ kind: "queue.put", id: "q", prompt: {} });
    const { sessions } = await subject.list();
    const at = expect.stringMatching(/^2026-11-15T00:/);
    expect(sessions).toEqual([
      {
        id: journal.id,
        title: "Hello there",
        cwd: "/work",
        app: "agent",
        at,
        turns: 1,
        queued: 1,
        status: "idle",
        labels,
        parent,
      },
      expect.objectContaining({ title: "old", turns: 1, status: "idle" }),
    ]);
    expect(Object.keys(sessions[1]!), "no member without a value").not.toContain("cwd");
  });

  test("filters: cwd, app, parent, labels, and all together", async () => {
    await using subject = await open(name);
    const { store } = subject;
    const parent = await finished(store, "a", { cwd: "/one", app: "x", labels: { team: "t", env: "e" } });
    await finished(store, "b", { cwd: "/one", app: "y", labels: { team: "t" }, parent: { session: parent } });
    await finished(store, "c", { cwd: "/two", app: "x" });
    const table: [ListQuery, string[]][] = [
      [{ cwd: "/one" }, ["b", "a"]],
      [{ cwd: "/nowhere" }, []],
      [{ app: "x" }, ["c", "a"]],
      [{ parent }, ["b"]],
      [{ labels: { team: "t" } }, ["b", "a"]],
      [{ labels: { team: "t", env: "e" } }, ["a"]],
      [{ labels: { toString: "t" } }, []],
      [{ cwd: "/one", app: "x", labels: { env: "e" }, status: "idle" }, ["a"]],
      [{}, ["c", "b", "a"]],
    ];
    for (const [query, titles] of table)
      expect(titlesOf(await subject.list(query)), JSON.stringify(query)).toEqual(titles);
  });

  test("since and until, in any way of writing a time", async () => {
    await using subject = await open(name);
    for (const title of ["a", "b", "c", "d"]) await finished(subject.store, title);
    const { sessions } = await subject.list();
    const [, c, b] = sessions as [Summary, Summary, Summary, Summary];
    expect(titlesOf(await subject.list({ since: b.at }))).toEqual(["d", "c", "b"]);
    expect(titlesOf(await subject.list({ until: c.at }))).toEqual(["b", "a"]);
    expect(titlesOf(await subject.list({ since: b.at, until: c.at }))).toEqual(["b"]);
    expect(titlesOf(await subject.list({ until: c.at, limit: 1 }))).toEqual(["b"]);
    const there = new Date(Date.parse(b.at) + 7_200_000).toISOString().replace("Z", "+02:00");
    expect(titlesOf(await subject.list({ since: there }))).toEqual(["d", "c", "b"]);
    expect(await subject.list({ since: "2027-01-01" })).toEqual({ sessions: [] });
  });

  test("C10: one that died before its first answer is listed; C17: one without a prompt is there, but not shown", async () => {
    await using subject = await open(name);
    const { store } = subject;
    const untouched = await begin(store);
    const asked = await begin(store, {}, ...prompt(1, "Are you there?"));
    const waiting = await begin(store, {}, { kind: "queue.put", id: "q" } as { kind: string });
    expect((await subject.list()).sessions).toMatchObject([
      { id: waiting.id, turns: 0, queued: 1, status: "idle" },
      { id: asked.id, title: "Are you there?", turns: 1 },
    ]);
    await waiting.append({ kind: "queue.take", id: "q" });
    expect((await subject.list()).sessions.map(({ id }) => id)).toEqual([asked.id]);
    await waiting.append({ kind: "epoch", reason: "import", carried: 3 });
    expect((await subject.list()).sessions[0], "it holds a conversation").toMatchObject({ id: waiting.id, turns: 0 });
    expect((await subject.list({ empty: true })).sessions.map(({ id }) => id)).toContain(untouched.id);
    expect(await store.has(untouched.id)).toBe(true);
  });

  test("status, and a lease is looked at only where a turn is open", async () => {
    await using subject = await open(name);
    const { store } = subject;
    const held = [];
    held.push(await begin(store, { title: "running" }, ...prompt(1, "x")));
    held.push(await begin(store, { title: "aborted" }, ...prompt(1, "x"), end(1, "aborted")));
    held.push(await begin(store, { title: "failed" }, ...prompt(1, "x"), end(1, "failed")));
    const suspended = { kind: "turn.suspended", turn: 1, reason: "approval" };
    held.push(await begin(store, { title: "waiting" }, ...prompt(1, "x"), suspended));
    held.push(await begin(store, { title: "idle" }, ...prompt(1, "x"), end(1, "completed")));
    await (await begin(store, { title: "closed in mid-turn" }, ...prompt(1, "x"))).close();
    const all = await subject.list();
    expect(Object.fromEntries(all.sessions.map(({ title, status }) => [title, status]))).toEqual({
      running: "running",
      aborted: "stopped",
      failed: "failed",
      waiting: "waiting",
      idle: "idle",
      "closed in mid-turn": "interrupted",
    });
    expect(subject.probes).toEqual([held[0]!.id]);
    const by = async (status: Summary["status"]): Promise<string[]> => titlesOf(await subject.list({ status }));
    expect(await by("running")).toEqual(["running"]);
    expect(await by("interrupted")).toEqual(["closed in mid-turn"]);
    expect(await by("stopped")).toEqual(["aborted"]);
    expect(await by("failed")).toEqual(["failed"]);
    expect(await by("waiting")).toEqual(["waiting"]);
    subject.probes.length = 0;
    expect(await by("idle")).toEqual(["idle"]);
    expect(subject.probes, "an open turn is not idle, whoever has it").toEqual([]);
  });

  test("pages are right while sessions are written, and whatever is filtered: nothing twice, nothing left out", async () => {
    await using subject = await open(name);
    const { store } = subject;
    const ids: string[] = [];
    const outcome = (i: number): string => (i % 5 === 0 ? "failed" : "completed");
    for (let i = 0; i < 90; i++) {
      await using journal = await begin(store, { title: `s${i}` }, ...prompt(1, "x"), end(1, outcome(i)));
      ids.push(journal.id);
    }
    for (const query of [{}, { status: "failed" }] as ListQuery[]) {
      const before = await subject.list({ ...query, limit: 1000 });
      expect(before.next).toBeUndefined();
      const touched = new Set<string>();
      const seen: string[] = [];
      let after: string | undefined;
      do {
        const page = await subject.list({ ...query, limit: 4, ...(after === undefined ? {} : { after }) });
        expect(page.sessions.length).toBeLessThanOrEqual(4);
        seen.push(...page.sessions.map(({ id }) => id));
        after = page.next;
        // One that was shown and one that was not yet: both move to the front, where this walk has been.
        for (const id of [page.sessions[0]?.id, ids[touched.size]]) {
          if (id === undefined) continue;
          touched.add(id);
          const { journal } = await store.open(id);
          await journal.append({ kind: "note", name: "n", value: 1 });
          await journal.close();
        }
      } while (after !== undefined);
      expect(new Set(seen).size).toBe(seen.length);
      const missed = before.sessions.filter(({ id }) => !seen.includes(id) && !touched.has(id));
      expect(missed).toEqual([]);
      const order = before.sessions.map(({ id }) => id).filter((id) => seen.includes(id));
      expect(seen).toEqual(order);
    }
  });

  test("a hundred if no limit is given; and what is too old is not asked for", async () => {
    await using subject = await open(name);
    for (let i = 0; i < 101; i++) await finished(subject.store, `s${i}`);
    const first = await subject.list();
    expect(first.sessions).toHaveLength(100);
    expect(titlesOf(await subject.list({ after: first.next! }))).toEqual(["s0"]);
    subject.asked.length = 0;
    const since = first.sessions[1]!.at;
    expect(await subject.list({ since, status: "interrupted", limit: 1 })).toEqual({ sessions: [] });
    expect(subject.asked, "pages of 1 and 64 of the 101").toHaveLength(2);
  });

  test("resumeLatest: the newest that fits, is not in use, not empty and nobody's helper", async () => {
    await using subject = await open(name);
    const { store } = subject;
    const elsewhere = await finished(store, "elsewhere", { cwd: "/two" });
    const old = await finished(store, "old", { cwd: "/one" });
    const recent = await finished(store, "recent", { cwd: "/one", app: "x" });
    await finished(store, "helper", { cwd: "/one", parent: { session: recent } });
    const inUse = await begin(store, { cwd: "/one" }, ...prompt(1, "x"), end(1, "completed"));
    await begin(store, { cwd: "/one" }, ...prompt(1, "x"));
    await (await begin(store, { cwd: "/one" })).close();
    const all = (query: { cwd?: string; app?: string }) => Array.fromAsync(unfinishedFirst(store, query, asIs));
    expect(await all({ cwd: "/one" })).toEqual([recent, old]);
    expect(await all({ cwd: "/one", app: "x" })).toEqual([recent]);
    expect(await all({})).toEqual([recent, old, elsewhere]);
    await inUse.close();
    expect(await all({ cwd: "/one" })).toEqual([inUse.id, recent, old]);
  });

  test("resumeLatest: what was interrupted or waits comes before what was finished after it", async () => {
    await using subject = await open(name);
    const { store } = subject;
    const old = await finished(store, "old");
    const cut = await begin(store, {}, ...prompt(1, "x"), end(1, "failed"));
    await cut.close();
    const waiting = await begin(store, {}, ...prompt(1, "x"), {
      kind: "turn.suspended",
      turn: 1,
      reason: "permission",
    } as never);
    await waiting.close();
    const left = await begin(store, {}, ...prompt(1, "x"));
    await left.close();
    // More than fit into a page of the store.
    const done: string[] = [];
    for (let i = 0; i < 70; i++) done.unshift(await finished(store, `done ${i}`));
    const all = await Array.fromAsync(unfinishedFirst(store, {}, asIs));
    expect(all).toEqual([left.id, waiting.id, cut.id, ...done, old]);
  });

  test("resumeLatest: what somebody stopped on purpose is not preferred; what the end of its process stopped is", async () => {
    await using subject = await open(name);
    const { store } = subject;
    const aborted = (by: string) => ({ kind: "turn.ended", turn: 1, outcome: "aborted", by }) as never;
    const closed = await begin(store, {}, ...prompt(1, "x"), aborted("close"));
    await closed.close();
    const stopped = await begin(store, {}, ...prompt(1, "x"), aborted("user"));
    await stopped.close();
    const done = await finished(store, "done");
    expect(await Array.fromAsync(unfinishedFirst(store, {}, asIs))).toEqual([closed.id, done, stopped.id]);
  });

  test("C23: resumeLatest takes today's interrupted session, though yesterday's clock was an hour ahead", async () => {
    const here = place();
    const DAY = 24 * 3_600_000;
    const at = async (startMs: number): Promise<JournalStore> => {
      let now = startMs;
      return stores[name](here.path, { summariser, clock: () => (now += 1000), memory });
    };
    const memory = new Memory();
    // Half an hour before midnight, by a clock that says half past midnight.
    const yesterday = await at(START + DAY + 1_800_000);
    const ended = await finished(yesterday, "yesterday");
    await yesterday.close();
    const today = await at(START + DAY + 600_000);
    const first = await begin(today, {}, ...prompt(1, "today"));
    await first.close();
    expect(await Array.fromAsync(unfinishedFirst(today, {}, asIs))).toEqual([first.id, ended]);
    const second = await finished(today, "finished today");
    expect(await Array.fromAsync(unfinishedFirst(today, {}, asIs))).toEqual([first.id, second, ended]);
    expect((await listSessions(today, {}, asIs)).sessions.map(({ id }) => id)).toEqual([second, first.id, ended]);
    const { at: time } = (await listSessions(today, {}, asIs)).sessions[0]!;
    expect(time < new Date(START + DAY + 1_800_000).toISOString()).toBe(true);
    // Times are the clock's, and a time is what `since` and `until` are about.
    const since = (await listSessions(today, { since: new Date(START + DAY + 1_500_000).toISOString() }, asIs))
      .sessions;
    expect(since.map(({ id }) => id)).toEqual([ended]);
    const until = (await listSessions(today, { until: new Date(START + DAY + 1_500_000).toISOString() }, asIs))
      .sessions;
    expect(until.map(({ id }) => id)).toEqual([second, first.id]);
    await today.close();
    here[Symbol.dispose]();
  });
});

describe("a query that cannot be meant is refused", () => {
  test.each([
    { limit: 0 },
    { limit: -1 },
    { limit: 1.5 },
    { limit: Number.NaN },
    { limit: Number.POSITIVE_INFINITY },
    { limit: "5" },
    { since: "yesterday" },
    { since: "1" },
    { since: new Date() },
    { until: "2026-13-45T00:00:00Z" },
    { status: "busy" },
    { status: "toString" },
    { status: ["idle"] },
    { cwd: "" },
    { cwd: "a\0b" },
    { app: 5 },
    { parent: {} },
    { labels: ["a"] },
    { labels: { team: 5 } },
    { empty: 1 },
    { after: 5 },
    null,
  ])("%j", async (query) => {
    await using subject = await open("memory");
    await finished(subject.store, "a");
    const error = await subject.list(query as ListQuery).catch((found: unknown) => found);
    expect(isHoldfastError(error, "QUERY_INVALID"), String(error)).toBe(true);
    const member = query === null ? "query" : Object.keys(query)[0]!;
    expect(String((error as HoldfastError).facts["member"])).toMatch(new RegExp(`^${member}`));
  });

  test("so is a cursor that no list gave out", async () => {
    await using subject = await open("memory");
    expect(await codeOf(subject.list({ after: "nonsense" }))).toBe("CURSOR_STALE");
  });
});

test("cwd is found by its real path", async () => {
  using here = place();
  mkdirSync(join(here.path, "project"));
  symlinkSync(join(here.path, "project"), join(here.path, "link"));
  await using subject = await open("memory");
  const id = await finished(subject.store, "a", { cwd: realPath(join(here.path, "project")) });
  const found = await listSessions(subject.store, { cwd: join(here.path, "link") }, realPath);
  expect(found.sessions.map((session) => session.id)).toEqual([id]);
  expect(await Array.fromAsync(unfinishedFirst(subject.store, { cwd: join(here.path, "link") }, realPath))).toEqual([
    id,
  ]);
});

test("rows that another program made are shown as far as they can be", async () => {
  const row = { title: 5, prompt: "last words", turns: "many", state: "busy", queued: 2 };
  const other = { add: () => row, carries: () => true };
  await using subject = await open("memory", { summariser: other });
  await begin(subject.store);
  expect((await subject.list()).sessions).toMatchObject([{ title: "last words", turns: 0, queued: 2, status: "idle" }]);
});

describe("a second process with a folder store", () => {
  test("C10, S14: running while it lives, interrupted as soon as it is killed", async () => {
    using here = place();
    await using store = await openFolderStore(here.path, { summariser });
    const made = await begin(store, { cwd: "/work" });
    await made.close();
    const list = async () => (await listSessions(store, {}, asIs)).sessions;
    expect(await list()).toEqual([]);
    const child = fork(join(import.meta.dirname, "list-holder.ts"), ["folder", here.path, made.id], {
      execArgv: ["--conditions=holdfast-source"],
    });
    try {
      const [said] = await Promise.race([once(child, "message"), once(child, "exit")]);
      expect(said).toBe("ready");
      expect(await list()).toMatchObject([{ id: made.id, title: "Hello from afar", status: "running", turns: 1 }]);
      expect(await Array.fromAsync(unfinishedFirst(store, { cwd: "/work" }, asIs))).toEqual([]);
      const gone = once(child, "exit");
      child.kill("SIGKILL");
      await gone;
      expect(await list()).toMatchObject([{ id: made.id, title: "Hello from afar", status: "interrupted" }]);
      expect(await Array.fromAsync(unfinishedFirst(store, { cwd: "/work" }, asIs))).toEqual([made.id]);
    } finally {
      child.kill("SIGKILL");
    }
  });

  test("a turn whose writer was killed is interrupted, also while somebody has the session open and has not resumed it", async () => {
    using here = place();
    await using store = await openStore(here.path);
    const { id } = await begun(store);
    const child = fork(join(import.meta.dirname, "list-holder.ts"), ["folder", here.path, id], {
      execArgv: ["--conditions=holdfast-source"],
    });
    await once(child, "message");
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
    const seen = async () => {
      await using reader = await openStore(here.path);
      const { running, interruption, holder } = await reader.read(id);
      return {
        status: (await reader.list({})).sessions[0]?.status,
        ...{ running, how: interruption?.how.kind ?? null, isHeld: holder !== null },
      };
    };
    const cut = { status: "interrupted", running: null, how: "killed" };
    expect(await seen()).toEqual({ ...cut, isHeld: false });
    const session = await store.resume(id);
    expect(await seen()).toEqual({ ...cut, isHeld: true });
    // It writes, but not to that turn.
    await session.note("seen", true);
    expect(await seen()).toEqual({ ...cut, isHeld: true });
    const turn = await session.resumeTurn();
    expect(await seen()).toEqual({ status: "running", running: 1, how: null, isHeld: true });
    await turn.end();
    expect(await seen()).toEqual({ status: "idle", running: null, how: null, isHeld: true });
    await session.close();
  });
});

async function begun(store: Store): Promise<{ readonly id: string }> {
  await using session = await store.create({ dialect: "openai-chat" });
  return { id: session.id };
}

test("P7: a list reads no transcripts: none of sessions that rest, their ends if the catalogue is gone", async () => {
  using here = place();
  const counting = new CountingDisk();
  const count = 30;
  const answer = {
    kind: "message",
    id: "a",
    turn: 1,
    step: "a",
    message: { role: "assistant", content: "x".repeat(300_000) },
  };
  const killed: string[] = [];
  {
    let now = START;
    const clock = () => (now += 1000);
    await using store = await openFolderStore(here.path, { summariser, clock, durability: "process" });
    for (let i = 0; i < count; i++) {
      const isKilled = i % 3 === 0;
      const rest = isKilled ? prompt(2, "more") : [];
      const attributes = { title: `s${i}`, cwd: "/work" };
      await using journal = await begin(store, attributes, ...prompt(1, "x"), answer, end(1, "completed"), ...rest);
      if (isKilled) killed.push(join(here.path, "sessions", journal.id, "000001.jsonl"));
    }
  }
  // What SIGKILL leaves behind: all but the last line, which says that the journal was closed.
  for (const path of killed) {
    const bytes = readFileSync(path);
    truncateSync(path, bytes.lastIndexOf("\n", bytes.length - 2) + 1);
  }
  const ask = async (): Promise<Summary[]> => {
    await using store = await openFolderStore(here.path, { disk: counting.disk, summariser });
    counting.reset();
    return (await listSessions(store, { cwd: "/work", limit: 20 }, asIs)).sessions;
  };
  const sessions = await ask();
  expect(sessions.map(({ title }) => title)).toEqual(Array.from({ length: 20 }, (_, i) => `s${count - 1 - i}`));
  const statuses = sessions.map(({ status }) => status);
  expect(statuses.filter((status) => status === "interrupted")).toHaveLength(6);
  await ask();
  const journals = [...counting.read.keys()].filter((path) => path.includes("sessions"));
  expect(journals, "no byte of any journal").toEqual([]);
  for (const ending of ["", "-wal", "-shm"]) rmSync(join(here.path, `catalog.sqlite${ending}`), { force: true });
  expect(await ask()).toEqual(sessions);
  expect(counting.bytesRead() / count).toBeLessThanOrEqual(8 * 1024);
});

test("P7: a session in the middle of a long turn is listed from its end, however long the turn is", async () => {
  using here = place();
  const counting = new CountingDisk();
  await using writing = await openFolderStore(here.path, { summariser, durability: "process" });
  await using journal = await begin(writing, { title: "long", cwd: "/work" }, ...prompt(1, "x"));
  const bytes = 8 * 1024;
  for (let i = 0; i < 500; i++) {
    const message = { role: "assistant", content: "x".repeat(bytes) };
    await journal.append({ kind: "message", id: `m${i}`, turn: 1, step: `m${i}`, message });
  }
  await using store = await openFolderStore(here.path, { disk: counting.disk, summariser });
  counting.reset();
  const { sessions } = await listSessions(store, { cwd: "/work" }, asIs);
  expect(sessions).toMatchObject([{ title: "long", turns: 1, status: "running" }]);
  expect(counting.bytesRead()).toBeLessThanOrEqual(32 * bytes);
});

import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  casesFor,
  type HostileStore,
  kinds,
  makeHostileStore,
  PRECIOUS,
  randomOf,
  sessionTargets,
  storeTargets,
} from "../hostile/hostile-store.ts";
import { type Outcome, runLimited, WORKER } from "../hostile/run.ts";
import { seedOf } from "../seed.ts";
import { needs } from "./allowed.ts";

/**
 * P9: one unreadable, giant or hostile file costs what is in it. Everything is done to stores that somebody has been
 * at, by a process with little memory, as a user who may not do everything: it does not hang, does not die, says what
 * is wrong in typed errors, and reads everything else as if nothing were wrong.
 */

const seed = seedOf(import.meta.url, "machine");
const noPosix = process.platform === "win32" ? "needs POSIX file types" : null;
const NOBODY = 65_534;
/** Root may read everything, so somebody else does. */
const user = process.getuid?.() === 0 ? { user: NOBODY } : {};
const reader = process.getuid?.() === 0 ? { reader: NOBODY } : {};
const effort = Number(process.env["HOLDFAST_EFFORT"] ?? 1);

interface Event {
  readonly e: "begins" | "done" | "failed" | "over";
  readonly id: string | null;
  readonly call: string;
  readonly typed?: boolean;
  readonly code?: string;
  readonly value?: unknown;
}

function folder(): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "holdfast-hostile-"));
  chmodSync(path, 0o755);
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

async function work(store: HostileStore): Promise<Event[]> {
  const sessions = [...store.bad.map(({ id }) => id), ...store.healthy];
  const outcome = await runLimited(WORKER, [JSON.stringify({ root: store.root, sessions, changes: true })], user);
  const events = outcome.stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Event);
  expect(endOf(outcome, events.at(-1)), "how it ended, and what it did last").toEqual({
    hung: false,
    code: 0,
    signal: null,
    last: expect.objectContaining({ e: "over" }),
  });
  return events;
}

function endOf({ hung, code, signal, stderr }: Outcome, last: Event | undefined): object {
  const end = { hung, code, signal, last };
  return code === 0 ? end : { ...end, stderr: stderr.slice(-2000) };
}

/** Whatever was done to the store, this holds. */
function expectUnharmed(store: HostileStore, events: readonly Event[]): void {
  const kindOf = (id: string | null): string =>
    store.bad.find((bad) => bad.id === id)?.kind ?? (id === null ? "the store" : "healthy");
  const failed = events.filter(({ e }) => e === "failed");
  const told = failed.map((event) => ({ ...event, kind: kindOf(event.id) }));
  expect(
    told.filter(({ typed }) => !typed),
    "errors that are not ours",
  ).toEqual([]);
  expect(
    told.filter(({ id }) => id !== null && store.healthy.includes(id)),
    "errors of sessions that nothing happened to",
  ).toEqual([]);
  // What cannot be removed is told; nothing else fails for the store as a whole.
  expect(
    told.filter(({ id, call }) => id === null && call !== "gc"),
    "errors of what is done with all sessions",
  ).toEqual([]);

  const value = <T>(call: string): T => events.find((event) => event.e === "done" && event.call === call)!.value as T;
  const listed = new Map(value<{ id: string; unreadable?: unknown }[]>("list").map((row) => [row.id, row]));
  for (const id of store.healthy)
    expect(listed.get(id)).toEqual(expect.not.objectContaining({ unreadable: expect.anything() }));
  expect(value<string[]>("sessions: search"), "all others are found").toEqual(
    expect.arrayContaining([...store.healthy]),
  );
  for (const { id, kind } of store.bad) {
    const isThere = events.some(
      (event) => event.id === id && event.call === "has" && (event.value === true || event.e === "failed"),
    );
    expect([kind, listed.has(id)], "a session that is there is listed").toEqual([kind, isThere]);
  }
  expect(readFileSync(store.precious, "utf8"), "what links lead to").toBe(PRECIOUS);
  expect(
    readdirSync(store.preciousFolder).map((name) => readFileSync(join(store.preciousFolder, name), "utf8")),
  ).toEqual([PRECIOUS]);
}

describe("one file of a session, replaced by anything", () => {
  test.each(sessionTargets)("%s", async (target) => {
    using here = folder();
    const store = await makeHostileStore(here.path, { cases: casesFor(target, { slow: false }), seed, ...reader });
    expectUnharmed(store, await work(store));
  });

  test("by what takes long to read: giants that are not there, bombs, megabytes of what looks like records", async () => {
    const random = randomOf(seed);
    const slow = kinds.filter(({ isSlow }) => isSlow);
    const cases = Array.from({ length: Math.min(slow.length * 3, 3 * effort) }, (_, i) => ({
      target: (["the newest segment", "a sealed segment", "a packed segment"] as const)[i % 3]!,
      kind: slow[random(slow.length)]!,
    }));
    using here = folder();
    const store = await makeHostileStore(here.path, { cases, seed, ...reader });
    console.log(cases.map(({ target, kind }) => `${target}: ${kind.name}`).join("; "));
    expectUnharmed(store, await work(store));
  });
});

describe("files that all sessions share, replaced by anything", () => {
  const random = randomOf(seed + 1);
  const always = [
    "a named pipe",
    "a link to a file elsewhere",
    "a database that never answers",
    "200 GB that are not there",
  ];
  const possible = kinds.filter(({ needsRoot }) => !needsRoot || process.getuid?.() === 0);
  const others = possible.filter(({ name }) => !always.includes(name));
  const chosen = [
    ...possible.filter(({ name }) => always.includes(name)),
    ...(effort > 9 ? others : Array.from({ length: 3 * effort }, () => others[random(others.length)]!)),
  ];
  test.each([...new Set(chosen)])("$name", async (kind) => {
    using here = folder();
    const databases = storeTargets.filter((target) => !/-(wal|shm|journal)$/.test(target));
    const store = await makeHostileStore(here.path, {
      cases: databases.map((target) => ({ target, kind })),
      seed,
      ...reader,
    });
    expectUnharmed(store, await work(store));
  });

  test.each(["-wal", "-shm", "-journal"])("what SQLite keeps beside them: %s", async (ending) => {
    const wanted = ["a named pipe", "a link to a file elsewhere"][random(2)];
    const kind = possible.find(({ name }) => name === wanted)!;
    using here = folder();
    const cases = storeTargets.filter((target) => target.endsWith(ending)).map((target) => ({ target, kind }));
    const store = await makeHostileStore(here.path, { cases, seed, ...reader });
    expectUnharmed(store, await work(store));
  });
});

test("users and devices are among what is tried", (context) => {
  needs(context, "files of other users, devices", process.getuid?.() === 0 ? noPosix : "needs root");
  expect(casesFor("the newest segment", { slow: true }).length).toBe(kinds.length);
});

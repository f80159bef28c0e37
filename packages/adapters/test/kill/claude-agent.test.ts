import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { validateAnthropic } from "@holdfast/testkit";
import { accountOf, openStore } from "holdfast";
import { afterAll, beforeAll, expect, test } from "vitest";
import { place } from "../../../holdfast/test/place.ts";
import { seedOf } from "../../../holdfast/test/seed.ts";
import { HoldfastSessionStore } from "../../src/claude-agent/index.ts";
import { sessionOf } from "../../src/claude-agent/keys.ts";
import type { SessionEntry, SessionKey } from "../../src/claude-agent/surface.ts";
import { INNER, KEY, live, type Orders, SUB, TURNS } from "./claude-agent-program.ts";
import { bundled, chance, dieAtRandom, inPairs, runKilled } from "./killed-program.ts";

/**
 * Claude Code's side of a session in a process of its own, killed after each write to a journal and at random instants.
 * What must hold is written down here, and checked against what the program said it was told: nothing of it is asked
 * from the adapter. The program's own transcript dies with it, as on a machine that is gone.
 */

const seed = seedOf(import.meta.url, "kill");
const here = place();
let program = "";
let lifeMs = 0;

const CALLS = [...TURNS.flatMap(({ calls }) => calls), INNER];

beforeAll(async () => {
  program = await bundled(join(import.meta.dirname, "claude-agent-program.ts"), here.path);
  using folder = place();
  const death = await runKilled(program, ordersIn(folder.path));
  expect(death.lines.at(-1)).toBe('["completed",null]');
  lifeMs = death.ms;
});
afterAll(() => here[Symbol.dispose]());

function ordersIn(folder: string, given: Partial<Orders> = {}): Orders {
  const address = join(folder, "store");
  mkdirSync(address, { recursive: true });
  return { address, kind: "folder", mirror: "eager", killAfter: 0, effects: join(folder, "effects"), ...given };
}

function effectsOf({ effects }: Orders): string[] {
  return existsSync(effects) ? readFileSync(effects, "utf8").split("\n").filter(Boolean) : [];
}

/** What the program said, by event. A line that was cut off counts as not said. */
function heard(lines: readonly string[]) {
  const said = lines.flatMap((line) => {
    try {
      return [
        JSON.parse(line) as [string, { key?: SessionKey; entries?: SessionEntry[]; call?: string; prompt?: string }],
      ];
    } catch {
      return [];
    }
  });
  const of = (what: string) => said.filter(([name]) => name === what).map(([, value]) => value);
  const entries = (what: string, key: SessionKey) =>
    of(what).flatMap(({ key: its, entries = [] }) => (its?.subpath === key.subpath ? entries : []));
  return { of, entries, isCompleted: of("completed").length > 0 };
}

/** The calls whose starts are in the journals. */
async function startsIn(address: string): Promise<unknown[]> {
  await using store = await openStore(address);
  const started: unknown[] = [];
  for (const { id } of (await store.list({ empty: true })).sessions) {
    for await (const record of store.history(id)) if (record.kind === "tool.started") started.push(record["call"]);
  }
  return started;
}

/** The adapter and the account say the same of the calls of a transcript. */
async function expectAccount(adapter: HoldfastSessionStore, address: string, key: SessionKey, what: string) {
  const { calls } = await adapter.interruption(key.sessionId, key.projectKey);
  await using store = await openStore(address);
  const [row] = (await store.list({ empty: true })).sessions.filter(({ id }) => id === sessionOf(key));
  const reading = row && (await store.read(row.id));
  // A sub-agent's call can start before its prompt is mirrored: there is no turn that an account could be of.
  if (!reading?.interruption) return;
  const account = accountOf(reading).calls;
  const idsOf = (of: readonly { readonly id: string; readonly state: string }[]) =>
    of.flatMap(({ id, state }) => (state === "outcome-unknown" ? [id] : []));
  const own = calls.filter(({ subpath }) => subpath === key.subpath);
  expect(idsOf(own), `${what}: calls whose outcome is unknown`).toEqual(idsOf(account));
  const ended = own.filter(({ state }) => state === "ended").map(({ id }) => id);
  expect(
    account.filter(({ id }) => ended.includes(id)),
    `${what}: calls that have ended`,
  ).toEqual([]);
}

/** Kills it, reads what is left, goes on in this process, and judges. False: it came to its end. */
async function judge(given: Partial<Orders>, what: string, afterMs?: number): Promise<boolean> {
  using folder = place();
  const orders = ordersIn(folder.path, given);
  const { lines, signal } = await runKilled(program, orders, afterMs);
  const { of, entries, isCompleted } = heard(lines);
  const ran = effectsOf(orders);
  const address = orders.kind === "folder" ? orders.address : `sqlite:${orders.address}/sessions.db`;
  const inDoubt = await startsIn(address);
  for (const call of ran) expect(inDoubt, `${what}: the start of ${call} was recorded before it ran`).toContain(call);
  const left = new Map<SessionKey, SessionEntry[]>();
  {
    await using store = await HoldfastSessionStore.open(address, { durability: "process" });
    for (const key of [KEY, SUB]) {
      const loaded = (await store.load(key)) ?? [];
      left.set(key, loaded);
      const attempted = entries("append", key);
      expect(loaded, `${what}: entries are those that were appended, in order`).toEqual(
        attempted.slice(0, loaded.length),
      );
      const acknowledged = entries("appended", key).length;
      expect(loaded.length, `${what}: nothing acknowledged is lost`).toBeGreaterThanOrEqual(acknowledged);
    }
    for (const key of [KEY, SUB]) await expectAccount(store, address, key, what);

    const text = JSON.stringify([...left.values()]);
    const isMirrored = (call: string): boolean => text.includes(`"tool_use_id":"${call}"`);
    const isTold = (call: string, told: string): boolean =>
      told.includes(JSON.stringify(CALLS.find(({ id }) => id === call)!.input));
    const next = await live(
      store,
      orders,
      () => undefined,
      (call, told) => isMirrored(call) || isTold(call, told),
    );
    for (const call of ran) {
      expect(isMirrored(call) || isTold(call, next), `${what}: the model learns that ${call} ran`).toBe(true);
    }
    for (const { call } of of("PostToolUse")) {
      const isKnown = isMirrored(call!) || next.includes(JSON.stringify({ stdout: `${call} is done` }));
      expect(isKnown, `${what}: the outcome of ${call} is known`).toBe(true);
    }
    for (const { prompt } of of("UserPromptSubmit")) {
      const isKnown = text.includes(`"text":"${prompt}"`) || next.includes(JSON.stringify(prompt));
      const isAnswered = text.includes(`answer to ${prompt}`) || orders.mirror === "dropped";
      expect(isKnown || isAnswered, `${what}: the model learns of ${prompt}`).toBe(true);
    }
    if (orders.mirror !== "dropped") {
      const again = await live(
        store,
        orders,
        () => undefined,
        () => true,
      );
      expect(again, `${what}: it is told once`).toBe("");
    }
  }
  const all = effectsOf(orders);
  expect([...new Set(all)], `${what}: no effect twice`).toEqual(all);
  for (const { id } of CALLS)
    if (!inDoubt.includes(id) && isCompleted === false) expect(all, `${what}: ${id} ran in the end`).toContain(id);

  await using store = await openStore(address);
  const sessions = (await store.list()).sessions.filter(({ parent }) => parent === undefined);
  const status = orders.mirror === "dropped" ? {} : { status: "idle" };
  expect(sessions, what).toMatchObject([{ title: "prompt 1", ...status }]);
  const { messages } = await store.read(sessions[0]!.id);
  const request = { messages: [...messages, { role: "user", content: "Thank you." }] };
  expect(validateAnthropic(request), `${what}: what is shown is a conversation`).toEqual([]);
  return signal !== null;
}

function* everyWrite(): Generator<number> {
  for (let killAfter = 1; ; killAfter++) yield killAfter;
}

let kills = 0;

test.each(["eager", "batched", "dropped"] as const)("SIGKILL after each write, the mirror %s", async (mirror) => {
  const count = await inPairs(everyWrite(), (killAfter) =>
    judge({ mirror, killAfter }, `${mirror}, killed after write ${killAfter}`),
  );
  kills += count;
  expect(count).toBeGreaterThan(25);
});

test.each([0, 1, 2])("SIGKILL at random instants, in a folder and in SQLite, part %i", async (part) => {
  kills += await dieAtRandom(36, part * 1000, (n) => {
    const kind = n % 3 === 0 ? "sqlite" : "folder";
    const mirror = (["eager", "batched"] as const)[n % 2]!;
    const afterMs = chance(seed, n) * lifeMs;
    const what = `${kind}, ${mirror}, seed ${seed}, try ${n}, killed after ${afterMs.toFixed(1)} ms`;
    return judge({ kind, mirror }, what, afterMs);
  });
});

test("that was at least 200 kills", () => {
  expect(kills).toBeGreaterThanOrEqual(200);
});

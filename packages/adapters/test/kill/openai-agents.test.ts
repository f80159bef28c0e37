import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { AgentInputItem } from "@openai/agents";
import { type JournalRecord, openStore } from "holdfast";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { place } from "../../../holdfast/test/place.ts";
import { seedOf } from "../../../holdfast/test/seed.ts";
import { mixSeeds, seededRandom } from "../../../testkit/src/simulation/random.ts";
import { openaiAgents } from "../../src/openai-agents/index.ts";
import { openaiResponses } from "../loopback/openai-responses.ts";
import { type Answer, type Body, loopback } from "../loopback/server.ts";
import { DRAFT, LAST, live, OPEN, type Orders, PROMPT, reply } from "./openai-agents.ts";

/**
 * Agents of the OpenAI Agents SDK in a process of their own, with the SDK's own model on a server that judges every
 * request: killed after each write to the journal, and at random instants. What is checked comes from the server, from
 * the effects of the tools and from the journal, not from the adapter.
 */

const seed = seedOf(import.meta.url, "kill");

/** A call inside of the helper, which is a tool itself. */
const STAMP = "call_stamp";

/** The program in one file, and compiled: it starts in a third of the time. */
const built = place();
const PROGRAM = join(built.path, "agents.mjs");
beforeAll(async () => {
  const build = await rolldown({
    input: join(import.meta.dirname, "openai-agents.ts"),
    platform: "node",
    resolve: { conditionNames: ["holdfast-source", "node", "import", "default"] },
    logLevel: "silent",
  });
  await build.write({ file: PROGRAM, format: "esm", codeSplitting: false });
  await build.close();
});
afterAll(() => built[Symbol.dispose]());

interface Death {
  readonly stream: boolean;
  readonly asks?: boolean;
  readonly counts?: Orders["counts"];
  readonly killAfter?: number;
  /** Kills from outside, so long after this request has arrived. */
  readonly atRequest?: { readonly n: number; readonly delayMs: number };
}

interface Life {
  readonly acknowledged: string[];
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

interface Stage extends AsyncDisposable {
  readonly orders: Orders;
  readonly requests: readonly Body[];
  readonly violations: readonly unknown[];
  /** Called for each request. */
  onRequest: (n: number) => void;
}

async function stageFor(death: Death): Promise<Stage> {
  const folder = place();
  let n = 0;
  const server = await loopback(openaiResponses, (body): Answer => {
    stage.onRequest(++n);
    return reply(body);
  });
  const { atRequest: _, ...given } = death;
  const effects = join(folder.path, "effects");
  const stage: Stage = {
    orders: { asks: false, counts: "records", killAfter: 0, ...given, folder: folder.path, url: server.url, effects },
    requests: server.requests,
    violations: server.violations,
    onRequest: () => {},
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
  return stage;
}

async function killed(stage: Stage, { atRequest }: Death): Promise<Life> {
  const child: ChildProcess = spawn(process.execPath, [PROGRAM, JSON.stringify(stage.orders)], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, NODE_COMPILE_CACHE: join(built.path, "cache") },
  });
  stage.onRequest = (n) => {
    if (n === atRequest?.n) setTimeout(() => child.kill("SIGKILL"), atRequest.delayMs);
  };
  const ended = new Promise<Pick<Life, "code" | "signal">>((done) =>
    child.once("close", (code, signal) => done({ code, signal })),
  );
  const out = await text(child.stdout!);
  return { acknowledged: out.split("\n").filter(Boolean), ...(await ended) };
}

function effectsIn({ orders }: Stage): string[] {
  return existsSync(orders.effects) ? readFileSync(orders.effects, "utf8").split("\n").filter(Boolean) : [];
}

/** The requests of the agents that work on the turn, or of the helper, which is part of a tool. */
function requestsOf({ requests }: Stage, who: "turn" | "helper"): unknown[][] {
  const isHelpers = ({ instructions }: Body): boolean => instructions === "help";
  return requests.filter((body) => isHelpers(body) === (who === "helper")).map(({ input }) => input as unknown[]);
}

function judgeBeginnings(inputs: readonly unknown[][], what: string): void {
  for (const [at, input] of inputs.entries()) {
    const previous = inputs[at - 1] ?? [];
    expect(input.slice(0, previous.length), `${what}: request ${at} begins with the one before`).toEqual(previous);
  }
}

/** What was acknowledged before the death is in the journal. */
function judgeAcknowledged(acknowledged: readonly string[], records: readonly JournalRecord[], what: string): void {
  const journal = JSON.stringify(records);
  const ended = new Set(records.flatMap(({ kind, call }) => (kind === "tool.ended" ? [String(call)] : [])));
  if (acknowledged.length > 0) expect(journal, `${what}: the prompt is there`).toContain(PROMPT);
  for (const line of acknowledged) {
    const [kind, id] = line.split(" ");
    if (kind === "answered" && id !== "undefined") expect(journal, `${what}: ${line}`).toContain(`"id":"${id}"`);
    if (kind === "ended") expect([...ended], `${what}: ${line}`).toContain(id);
  }
}

/** The calls whose tools had started and not ended, and must not run again. */
function interruptedCalls(records: readonly JournalRecord[]): string[] {
  const open = new Map<string, JournalRecord>();
  for (const record of records) {
    if (record.kind === "tool.started") open.set(String(record["call"]), record);
    if (record.kind === "tool.ended") open.delete(String(record["call"]));
  }
  return [...open].flatMap(([call, { replay }]) => (replay === "safe" ? [] : [call]));
}

interface Verdict {
  /** It came to its end before it could be killed. */
  readonly isOver: boolean;
  readonly interrupted: readonly string[];
  /** The helper waited for an approval when its process died, and went on in the next one. */
  readonly isRestored: boolean;
}

/** Kills it there, goes on in this process, and judges both lives. */
async function judged(death: Death): Promise<Verdict> {
  const what = JSON.stringify(death);
  await using stage = await stageFor(death);
  const { acknowledged, code, signal } = await killed(stage, death);
  expect(code ?? 0, `${what}: it does not fail by itself`).toBe(0);
  stage.onRequest = () => {};
  const before = effectsIn(stage);
  await using store = await openStore(stage.orders.folder, { dialects: [openaiAgents], recordsToolStarts: true });
  const session = await store.resumeLatest<AgentInputItem>({}, OPEN);
  if (!session) {
    expect(acknowledged, `${what}: a prompt that was acknowledged is there`).toEqual([]);
    return { isOver: false, interrupted: [], isRestored: false };
  }
  const records = await Array.fromAsync(store.history(session.id));
  judgeAcknowledged(acknowledged, records, what);
  const started = new Set(records.flatMap(({ kind, call }) => (kind === "tool.started" ? [String(call)] : [])));
  for (const id of before) {
    if (id === "handoff") expect([...started].join(), what).toContain("call_transfer");
    else expect([...started], `${what}: what ran is on disk as started`).toContain(id === STAMP ? "call_draft" : id);
  }
  const interrupted = interruptedCalls(records);

  if (session.entries.length === 0) await live(stage.orders, session);
  else if (session.interruption) expect(await live(stage.orders, session), what).toBe("completed");
  expect(session.interruption, `${what}: the outcome is reached`).toBe(null);
  expect(JSON.stringify(session.messages.at(-1)), what).toContain(LAST);

  expect(stage.violations, `${what}: every request is valid`).toEqual([]);
  const inputs = requestsOf(stage, "turn");
  judgeBeginnings(inputs, what);
  judgeBeginnings(requestsOf(stage, "helper"), what);
  const effects = effectsIn(stage);
  const sent = effects.filter((id) => id === "call_send");
  expect(sent.length, `${what}: no effect twice`).toBeLessThanOrEqual(1);
  const transfers = new Set([...started].filter((id) => id.startsWith("call_transfer")));
  expect(effects.filter((id) => id === "handoff").length, what).toBeLessThanOrEqual(transfers.size + 1);
  for (const id of ["call_look_1", "call_look_2"]) expect(effects, `${what}: everything was done`).toContain(id);
  const toldOf = (id: string): string => JSON.stringify(inputs.at(-1)!.find((item) => isResultOf(item, id)));
  const isRestored = interrupted.includes("call_draft") && toldOf("call_draft").includes(DRAFT);
  for (const id of interrupted) {
    if (id === "call_draft" && isRestored) continue;
    expect(toldOf(id), `${what}: the model was told about ${id}`).toMatch(/may have taken effect/);
  }
  const stampsIn = (list: readonly string[]): string[] => list.filter((id) => id === STAMP);
  if (isRestored) expect(stampsIn(before), `${what}: only an agent that waits is restored`).toEqual([]);
  if (isRestored || !interrupted.includes("call_draft")) {
    expect(stampsIn(effects), `${what}: everything was done`).toEqual(stage.orders.asks ? [STAMP] : []);
    expect(toldOf("call_draft"), what).toContain(DRAFT);
  } else expect(stampsIn(effects), `${what}: no effect in a call that is in doubt`).toEqual(stampsIn(before));
  if (!interrupted.includes("call_send")) expect(sent, `${what}: everything was done`).toEqual(["call_send"]);
  return { isOver: signal === null, interrupted, isRestored };
}

function isResultOf(item: unknown, id: string): boolean {
  const { type, call_id } = item as { readonly type?: string; readonly call_id?: string };
  return type === "function_call_output" && call_id === id;
}

/**
 * Until a life was over before it could be killed, or, at random instants, until there were enough kills. Two at a
 * time: that is how many cores there are.
 */
async function all(
  deaths: Iterator<Death>,
  enough = Number.POSITIVE_INFINITY,
): Promise<{ kills: number; interrupted: Set<string>; restored: number; isOver: boolean }> {
  const interrupted = new Set<string>();
  let restored = 0;
  let kills = 0;
  let isOver = false;
  const worker = async (): Promise<void> => {
    for (let death = deaths.next(); !isOver && kills < enough && !death.done; death = deaths.next()) {
      const verdict = await judged(death.value);
      isOver ||= verdict.isOver && death.value.atRequest === undefined;
      if (!verdict.isOver) kills++;
      if (verdict.isRestored) restored++;
      for (const id of verdict.interrupted) interrupted.add(id);
    }
  };
  await Promise.all([worker(), worker()]);
  return { kills, interrupted, restored, isOver };
}

function* everyWrite(death: Death): Generator<Death, undefined> {
  for (let killAfter = 1; ; killAfter++) yield { ...death, killAfter };
}

/** In each of five parts. */
const RANDOM_KILLS = 24;
let total = 0;

describe("SIGKILL after each write", () => {
  test.each([
    ["streamed", { stream: true }],
    ["streamed, with an approval", { stream: true, asks: true }],
    ["at once", { stream: false }],
    ["at once, with an approval", { stream: false, asks: true }],
  ] as const)("%s", async (_, death) => {
    const { kills, interrupted, restored, isOver } = await all(everyWrite(death));
    total += kills;
    expect(isOver, "every write had its turn").toBe(true);
    expect(kills).toBeGreaterThan(14);
    if ("asks" in death) expect(restored, "also while the helper waited").toBeGreaterThan(0);
    expect([...interrupted], "also while tools ran").toEqual(
      expect.arrayContaining(["call_transfer_1", "call_send", "call_draft"]),
    );
  });

  test("while words are streamed", async () => {
    // How many drafts there are depends on how fast the machine is.
    const { kills } = await all(everyWrite({ stream: true, counts: "drafts" }));
    expect(kills).toBeGreaterThan(0);
    total += kills;
  });
});

describe("SIGKILL at random instants", () => {
  test.each([1, 2, 3, 4, 5])("%i of 5", async (part) => {
    const random = seededRandom(mixSeeds(seed, part));
    const deaths = function* (): Generator<Death, undefined> {
      for (;;) {
        const atRequest = { n: 1 + random.below(5), delayMs: random.below(12) };
        yield { stream: random.chance(0.5), asks: random.chance(0.5), atRequest };
      }
    };
    total += (await all(deaths(), RANDOM_KILLS)).kills;
  });
});

test("that was at least 200 kills", () => {
  expect(total).toBeGreaterThanOrEqual(200);
});

import { join } from "node:path";
import { openStore } from "holdfast";
import { afterAll, beforeAll, expect, test } from "vitest";
import { place } from "../../../holdfast/test/place.ts";
import { seedOf } from "../../../holdfast/test/seed.ts";
import { langchain } from "../../src/langchain/index.ts";
import { bundled, chance, dieAtRandom, inPairs, linesOf, runKilled } from "./killed-program.ts";
import { live, type Orders, openAgent, PROMPTS } from "./langchain-program.ts";

/**
 * An agent in a process of its own, killed after each write to its journal and at random instants. The rules are those
 * of a provider and of the world, written down here; nothing of them is asked from the adapter.
 */

const seed = seedOf(import.meta.url, "kill");
const here = place();
let program = "";
let lifeMs = 0;
let undisturbed: string[] = [];

interface Sent {
  readonly type: string;
  readonly text: string;
  readonly calls: readonly { readonly id: string; readonly name: string }[];
  readonly tool_call_id?: string;
}

beforeAll(async () => {
  program = await bundled(join(import.meta.dirname, "langchain-program.ts"), here.path);
  using folder = place();
  const orders = ordersIn(folder.path);
  const death = await runKilled(program, orders);
  expect(death).toMatchObject({ lines: ["begun", "prompt", "prompt", "completed"], signal: null });
  lifeMs = death.ms;
  undisturbed = linesOf(orders.requests);
  expect(undisturbed).toHaveLength(6);
});
afterAll(() => here[Symbol.dispose]());

function ordersIn(folder: string, given: Partial<Orders> = {}): Orders {
  const files = { effects: join(folder, "effects"), requests: join(folder, "requests") };
  return { address: join(folder, "store"), kind: "folder", killAfter: 0, counts: "records", ...files, ...given };
}

/** Why a provider would refuse the request: an answer with calls is followed by their results, in order. */
function refusals(request: readonly Sent[]): string[] {
  const found: string[] = [];
  let awaited: string[] = [];
  for (const { type, text, calls, tool_call_id } of request) {
    if (type === "tool") {
      if (awaited.shift() !== tool_call_id) found.push(`a result of ${tool_call_id} that is not awaited`);
      continue;
    }
    if (awaited.length > 0) found.push(`${awaited.join()} without results`);
    if (text === "" && calls.length === 0) found.push("an empty message");
    awaited = calls.map(({ id }) => id);
  }
  if (awaited.length > 0) found.push(`${awaited.join()} without results at the end`);
  if (!["human", "tool"].includes(request.at(-1)?.type ?? "")) found.push("it ends with an answer");
  return found;
}

/** Kills it, goes on in this process, and judges both lives. False: it came to its end. */
async function judge(given: Partial<Orders>, what: string, afterMs?: number): Promise<boolean> {
  using folder = place();
  const orders = ordersIn(folder.path, given);
  const { lines, signal } = await runKilled(program, orders, afterMs);
  const ran = linesOf(orders.effects).filter((line) => line !== "approved");
  const address = orders.kind === "folder" ? orders.address : `sqlite:${orders.address}/agent.db`;
  await using store = await openStore(address, { recordsToolStarts: true, dialects: [langchain] });
  const session = await openAgent(store);
  const prompts = session.entries.filter(({ message }) => PROMPTS.includes(message.text)).length;
  expect(prompts, `${what}: acknowledged prompts are there`).toBeGreaterThanOrEqual(
    lines.filter((line) => line === "prompt").length,
  );
  const unknown = (session.interruption?.calls ?? []).filter(({ state }) => state === "outcome-unknown");
  const open = new Set((session.interruption?.calls ?? []).map(({ id }) => id));
  const answered = session.entries.flatMap(({ message }) => langchain.results(message).map(({ call }) => call));
  for (const id of ran) {
    const isKnown = answered.includes(id) || unknown.some((call) => call.id === id);
    expect(isKnown, `${what}: ${id} ran, and is known to have started`).toBe(true);
  }
  for (const { id, state } of session.interruption?.calls ?? [])
    if (state === "never-started") expect(ran, `${what}: ${id} never started`).not.toContain(id);

  await live(session, orders);
  expect(session.interruption, `${what}: it reaches its end`).toBe(null);
  const effects = linesOf(orders.effects);
  const sends = effects.filter((id) => id.startsWith("send"));
  if (orders.asks)
    for (const [n, id] of sends.entries()) {
      const before = effects.slice(n === 0 ? 0 : effects.indexOf(sends[n - 1]!), effects.indexOf(id));
      expect(before, `${what}: ${id} was approved`).toContain("approved");
    }
  expect(new Set(sends).size, `${what}: nothing is sent twice`).toBe(sends.length);
  const requests = linesOf(orders.requests).map((line) => JSON.parse(line) as Sent[]);
  for (const request of requests) expect(refusals(request), what).toEqual([]);
  for (const [n, request] of requests.entries()) {
    const before = requests[n - 1] ?? [];
    expect(request.slice(0, before.length), `${what}: request ${n} begins with the one before`).toEqual(before);
  }
  const last = JSON.stringify(requests.at(-1));
  const lost = unknown.filter(({ replay }) => replay !== "safe");
  for (const { id } of lost)
    expect(toldOf(requests.at(-1)!, id), `${what}: the model is told of ${id}`).toMatch(/unknown|interrupted/i);
  // Unless a tool that cannot be run again was cut off, the model was asked what an undisturbed agent asks.
  if (lost.length === 0) expect(last, what).toBe(undisturbed.at(-1));
  expect(open.size, what).toBeLessThanOrEqual(2);
  return signal !== null;
}

function toldOf(request: readonly Sent[], id: string): string {
  return request.find(({ tool_call_id }) => tool_call_id === id)?.text ?? "";
}

function* everyWrite(atMost: number): Generator<number> {
  for (let killAfter = 1; killAfter <= atMost; killAfter++) yield killAfter;
}

let kills = 0;

test.each(["records", "drafts"] as const)("SIGKILL after each write of %s", async (counts) => {
  // A draft is written for each word or two.
  const atMost = counts === "records" ? Number.POSITIVE_INFINITY : 12;
  const count = await inPairs(everyWrite(atMost), (killAfter) =>
    judge({ counts, killAfter }, `killed after write ${killAfter} of ${counts}`),
  );
  kills += count;
  expect(count).toBeGreaterThan(counts === "records" ? 20 : 0);
});

test("SIGKILL after each write of records, with approvals: nothing is sent that nobody approved", async () => {
  const count = await inPairs(everyWrite(Number.POSITIVE_INFINITY), (killAfter) =>
    judge({ counts: "records", killAfter, asks: true }, `with approvals, killed after write ${killAfter}`),
  );
  kills += count;
  expect(count).toBeGreaterThan(20);
});

// Several tests, so that none takes minutes on a busy machine.
test.each([0, 1, 2, 3, 4])("SIGKILL at random instants, in a folder and in SQLite, part %i", async (part) => {
  kills += await dieAtRandom(36, part * 1000, (n) => {
    const kind = n % 3 === 0 ? "sqlite" : "folder";
    const afterMs = chance(seed, n) * lifeMs;
    return judge({ kind }, `${kind}, seed ${seed}, try ${n}, killed after ${afterMs.toFixed(1)} ms`, afterMs);
  });
});

test("that was at least 200 kills", () => {
  expect(kills).toBeGreaterThanOrEqual(200);
});

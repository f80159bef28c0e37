import { join } from "node:path";
import { isStepCount, type ModelMessage, streamText } from "ai";
import { openStore } from "holdfast";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { place } from "../../../holdfast/test/place.ts";
import { outline, recordsOf } from "../agents.ts";
import type { ProviderName } from "../loopback/models.ts";
import { providers } from "../loopback/providers.ts";
import { type Body, loopback } from "../loopback/server.ts";
import { LAST, live, OPEN, type Orders, PROMPT, reply, toolbox } from "./agent.ts";
import { bundled, linesOf, runKilled } from "./killed-program.ts";

/** A run in a process of its own, killed after its writes to the journal, with the real packages of all providers. */

interface Death {
  readonly provider: ProviderName;
  readonly asks?: boolean;
  readonly counts?: Orders["counts"];
  readonly killAfter: number;
}

interface Verdict {
  /** It came to its end before it could be killed. */
  readonly isOver: boolean;
  /** It died while what is not safe ran. */
  readonly isUnknown: boolean;
}

const built = place();
let program = "";
beforeAll(async () => {
  program = await bundled(join(import.meta.dirname, "agent.ts"), built.path);
  using folder = place();
  await using server = await loopback(providers.anthropic.speech, reply);
  const orders: Orders = {
    folder: folder.path,
    provider: "anthropic",
    url: server.url,
    effects: join(folder.path, "effects"),
    asks: false,
    killAfter: 0,
    counts: "records",
  };
  expect(await runKilled(program, orders)).toMatchObject({ lines: ["prompt", "completed"], signal: null });
});
afterAll(() => built[Symbol.dispose]());

/** Each request once, in order: a request that died is sent again. */
function distinct(requests: readonly Body[]): string[] {
  return requests.map((body) => JSON.stringify(body)).filter((body, at, all) => body !== all[at - 1]);
}

/** What the SDK sends by itself, undisturbed. */
async function undisturbed(provider: ProviderName): Promise<string[]> {
  const { speech, model, options } = providers[provider];
  await using server = await loopback(speech, reply);
  using folder = place();
  const tools = toolbox({ effects: join(folder.path, "effects"), asks: false });
  const settings = {
    tools,
    messages: [PROMPT],
    stopWhen: isStepCount(6),
    ...(options ? { providerOptions: options } : {}),
  };
  await streamText({ model: await model(server.url), ...settings }).consumeStream();
  return distinct(server.requests);
}

/** Kills it there, goes on in this process, and judges both lives. */
async function judged(death: Death, expected: readonly string[]): Promise<Verdict> {
  const { provider, killAfter } = death;
  const what = `${provider}, killed after write ${killAfter}`;
  using folder = place();
  await using server = await loopback(providers[provider].speech, reply);
  const effects = join(folder.path, "effects");
  const orders: Orders = { asks: false, counts: "records", ...death, folder: folder.path, url: server.url, effects };
  const { lines, signal } = await runKilled(program, orders);
  if (signal === null) {
    expect(lines, what).toContain("completed");
    expect(distinct(server.requests), what).toEqual(expected);
    return { isOver: true, isUnknown: false };
  }
  const ran = linesOf(effects);

  await using store = await openStore(folder.path);
  const session = await store.resumeLatest<ModelMessage>({}, OPEN);
  if (!session) {
    expect(lines, `${what}: a prompt that was acknowledged is there`).toEqual([]);
    return { isOver: false, isUnknown: false };
  }
  expect(session.messages[0], what).toEqual(PROMPT);
  const records = outline(await recordsOf(session));
  for (const id of ran) expect(records, `${what}: what ran is on disk as started`).toContain(`tool.started ${id}`);
  if (lines.includes("approved"))
    expect(
      records.filter((line) => line === "message tool"),
      what,
    ).toHaveLength(1);
  const isAnswered = JSON.stringify(session.messages.at(-1)).includes(LAST);
  expect(session.interruption?.answered ?? true, `${what}: whether it had answered is known`).toBe(isAnswered);
  const isUnknown =
    session.interruption?.calls.some(({ name, state }) => name === "send" && state === "outcome-unknown") ?? false;

  // It may have died between the end of its turn and its own.
  if (session.interruption) expect(await live(orders, session), what).toBe("completed");
  expect(session.interruption, what).toBe(null);
  expect(server.violations, what).toEqual([]);
  const sent = linesOf(effects).filter((id) => id === "call_send");
  expect(new Set(linesOf(effects)), what).toEqual(new Set(["call_look_1", "call_look_2", ...sent]));
  if (isUnknown) {
    expect(sent.length, `${what}: what is not safe is not run again`).toBeLessThanOrEqual(1);
    expect(JSON.stringify(server.requests.at(-1)), what).toContain("outcome unknown");
  } else {
    expect(sent, what).toEqual(["call_send"]);
    // Nothing is asked behind the answer.
    expect(distinct(server.requests), what).toEqual(expected);
  }
  return { isOver: false, isUnknown };
}

/** Two at a time: that is how many cores there are. */
async function all(deaths: Iterator<Death>, expected: readonly string[]): Promise<{ unknown: number; count: number }> {
  let isOver = false;
  let unknown = 0;
  let count = 0;
  const worker = async (): Promise<void> => {
    for (let death = deaths.next(); !isOver && !death.done; death = deaths.next()) {
      const verdict = await judged(death.value, expected);
      isOver ||= verdict.isOver;
      if (verdict.isUnknown) unknown++;
      count++;
    }
  };
  await Promise.all([worker(), worker()]);
  expect(isOver, "every write had its turn").toBe(true);
  return { unknown, count };
}

function* everyWrite(death: Omit<Death, "killAfter">, from = 1, step = 1): Generator<Death, undefined> {
  for (let killAfter = from; ; killAfter += step) yield { ...death, killAfter };
}

describe("P1, P4: SIGKILL after each write, and what is sent after it is what would have been sent", () => {
  test("anthropic", async () => {
    const expected = await undisturbed("anthropic");
    expect(expected).toHaveLength(3);
    const { unknown, count } = await all(everyWrite({ provider: "anthropic" }), expected);
    expect(unknown, "also while a tool ran").toBeGreaterThan(0);
    expect(count).toBeGreaterThan(12);
  });

  // Together these die at every write, too.
  test.each([
    ["openai-responses", 1],
    ["openai-chat", 2],
    ["gemini", 3],
  ] as const)("%s, from write %i on after each third", async (provider, from) => {
    await all(everyWrite({ provider }, from, 3), await undisturbed(provider));
  });

  test("C2: anthropic, while words are streamed", async () => {
    const expected = await undisturbed("anthropic");
    for (const killAfter of [1, 2, 3]) await judged({ provider: "anthropic", counts: "drafts", killAfter }, expected);
  });

  test("C37: where a person must say yes first, it runs once", async () => {
    const expected = await undisturbed("anthropic");
    const { unknown } = await all(everyWrite({ provider: "anthropic", asks: true }, 8), expected);
    expect(unknown).toBeGreaterThan(0);
  });
});

test("C4: killed again and again, it comes to its end, and runs nothing twice that is not safe", async () => {
  using folder = place();
  await using server = await loopback(providers.anthropic.speech, reply);
  const effects = join(folder.path, "effects");
  const orders: Orders = {
    folder: folder.path,
    provider: "anthropic",
    url: server.url,
    effects,
    asks: true,
    // A life that resumes makes six writes until both tools have started: with fewer than seven it would come no
    // further.
    killAfter: 8,
    counts: "records",
  };
  let deaths = 0;
  for (; deaths < 20; deaths++) {
    const { signal, lines } = await runKilled(program, orders);
    if (signal !== null) continue;
    expect(lines).toContain("completed");
    break;
  }
  expect(deaths).toBeGreaterThan(1);
  expect(deaths).toBeLessThan(20);
  expect(server.violations).toEqual([]);
  expect(linesOf(effects).filter((id) => id === "call_send").length).toBeLessThanOrEqual(1);
});

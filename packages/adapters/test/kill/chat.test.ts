import { join } from "node:path";
import { validateAiSdk } from "@holdfast/testkit";
import type { ModelMessage } from "ai";
import { openStore } from "holdfast";
import { afterAll, beforeAll, expect, test } from "vitest";
import { place } from "../../../holdfast/test/place.ts";
import { seedOf } from "../../../holdfast/test/seed.ts";
import { outline } from "../agents.ts";
import { CHAT, chatOn, LAST, type Orders, PROMPTS, usePage } from "./chat-program.ts";
import { bundled, chance, dieAtRandom, inPairs, linesOf, runKilled } from "./killed-program.ts";

/** A chat server, killed after each of its writes and at random instants. The page goes on with another one. */

const seed = seedOf(import.meta.url, "kill");
const folder = place();
let program = "";
/** What an undisturbed server asks the model, and how long it takes. */
let undisturbed: string[] = [];
let lifeMs = 0;

beforeAll(async () => {
  program = await bundled(join(import.meta.dirname, "chat-program.ts"), folder.path);
  for (let n = 0; n < 2; n++) {
    using here = place();
    const orders = ordersIn(here.path, {});
    const { lines, ms } = await runKilled(program, orders);
    expect(lines.at(-1)).toBe("completed");
    undisturbed = linesOf(orders.requests);
    lifeMs = ms;
  }
  expect(undisturbed).toHaveLength(5);
});
afterAll(() => folder[Symbol.dispose]());

function ordersIn(path: string, given: Partial<Orders>): Orders {
  const files = { effects: join(path, "effects"), requests: join(path, "requests") };
  return { folder: join(path, "store"), killAfter: 0, counts: "records", ...files, ...given };
}

/** Kills it, goes on in this process, and judges both lives. False: it came to its end. */
async function judge(given: Partial<Orders>, what: string, afterMs?: number): Promise<boolean> {
  using here = place();
  const orders = ordersIn(here.path, given);
  const { lines, signal } = await runKilled(program, orders, afterMs);
  const ran = linesOf(orders.effects);
  await using store = await openStore(orders.folder, { recordsToolStarts: true });
  const chat = chatOn(store, orders);
  const id = chat.sessionId(CHAT);
  const found = (await store.has(id)) ? await store.read<ModelMessage>(id) : null;
  const records = found ? outline(await Array.fromAsync(store.history(id))) : [];
  for (const call of ran) expect(records, `${what}: what ran is on disk as started`).toContain(`tool.started ${call}`);
  const entries = JSON.stringify(found?.entries ?? []);
  for (const prompt of ["p1", "p2"])
    if (lines.includes(prompt))
      expect(entries, `${what}: an acknowledged prompt is there`).toContain(`"id":"${prompt}"`);
  if (lines.includes("approved")) expect(entries, what).toContain('"tool-approval-response"');
  if (lines.includes("output")) expect(entries, what).toContain('"here"');
  const unknown = (found?.interruption?.calls ?? []).filter(({ state }) => state === "outcome-unknown");
  for (const { id: call, state } of found?.interruption?.calls ?? [])
    if (state === "never-started") expect(ran, `${what}: ${call} never started`).not.toContain(call);

  const messages = await usePage(chat, () => {});
  expect(
    messages.map(({ role }) => role),
    what,
  ).toEqual(["user", "assistant", "user", "assistant"]);
  expect(JSON.stringify(messages.at(-1)), what).toContain(LAST);
  const shown = lines.filter((line) => line.startsWith("ids ")).map((line) => JSON.parse(line.slice(4)) as string[]);
  for (const ids of shown)
    expect(
      messages.slice(0, ids.length).map((message) => message.id),
      `${what}: ids stay`,
    ).toEqual(ids);
  expect((await chat.state(CHAT)).status, what).toBe("ready");

  const effects = linesOf(orders.effects);
  const isLost = unknown.some(({ id: call }) => call === "send_1");
  expect(effects.filter((call) => call === "send_1").length, `${what}: nothing is sent twice`).toBeLessThanOrEqual(1);
  if (!isLost) expect(effects, what).toContain("send_1");
  const requests = linesOf(orders.requests).filter((line, n, all) => line !== all[n - 1]);
  for (const [n, request] of requests.entries()) {
    expect(validateAiSdk(JSON.parse(request) as ModelMessage[]), `${what}: request ${n} is valid`).toEqual([]);
    const before = n === 0 ? "" : requests[n - 1]!.slice(0, -1);
    expect(request.startsWith(before), `${what}: request ${n} begins with the one before`).toBe(true);
  }
  if (isLost) expect(requests.at(-1), `${what}: the model is told`).toMatch(/outcome unknown/);
  else if (unknown.every(({ replay }) => replay === "safe")) expect(requests, what).toEqual(undisturbed);

  // The page's first request again, as if its answer had been lost with the server.
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ id: CHAT, message: PROMPTS[0] });
  const again = await chat.POST(new Request("http://localhost/api/chat", { method: "POST", headers, body }));
  expect(await again.text(), what).toContain("That is all.");
  expect((await chat.state(CHAT)).messages, `${what}: it starts no second turn`).toHaveLength(4);
  return signal !== null;
}

function* everyWrite(): Generator<number> {
  for (let killAfter = 1; ; killAfter++) yield killAfter;
}

let kills = 0;

test.each(["records", "drafts"] as const)("SIGKILL after each write of %s", async (counts) => {
  const count = await inPairs(everyWrite(), (killAfter) =>
    judge({ counts, killAfter }, `killed after write ${killAfter} of ${counts}`),
  );
  kills += count;
  if (counts === "records") expect(count).toBeGreaterThan(20);
});

// Several tests, so that none takes minutes on a busy machine.
test.each([0, 1, 2, 3, 4])("SIGKILL at random instants, part %i", async (part) => {
  kills += await dieAtRandom(36, part * 1000, (n) => {
    const afterMs = chance(seed, n) * lifeMs;
    return judge({}, `seed ${seed}, try ${n}, killed after ${afterMs.toFixed(1)} ms`, afterMs);
  });
});

test("that was at least 200 kills", () => {
  expect(kills).toBeGreaterThanOrEqual(200);
});

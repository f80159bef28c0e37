import { globSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openStore } from "holdfast";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { place } from "../../../holdfast/test/place.ts";
import { openaiAgents } from "../../src/openai-agents/index.ts";
import { type BackgroundServer, backgroundServer } from "../loopback/background.ts";
import { LAST, live, type Orders, reply } from "./background-program.ts";
import { bundled, runKilled } from "./killed-program.ts";

/** Agents of both SDKs, with their answers in the background: an answer whose id was recorded is paid for once. */

const code = place();
let program = "";
beforeAll(async () => {
  program = await bundled(join(import.meta.dirname, "background-program.ts"), code.path);
});
afterAll(() => code[Symbol.dispose]());

type Given = Pick<Orders, "way" | "stream">;
const NEVER = { killAfter: 0, killAtAnswer: 0, counts: "records" } as const;

function ordersOf(given: Given, server: BackgroundServer, folder: string, kill: Partial<Orders> = {}): Orders {
  return { ...given, ...NEVER, folder, url: server.url, ...kill };
}

function lostOf({ paid }: BackgroundServer, folder: string): string[] {
  const lines = globSync(join(folder, "sessions/*/*.jsonl")).flatMap((path) => readFileSync(path, "utf8").split("\n"));
  const known = lines.flatMap((line) => /"kind":"draft.accepted".*"id":"(resp_\w+)"/.exec(line)?.[1] ?? []);
  return paid.filter((id) => !known.includes(id));
}

/** Goes on in this process. */
async function goOn(given: Given, server: BackgroundServer, folder: string): Promise<void> {
  await using store = await openStore(folder, { recordsToolStarts: true, dialects: [openaiAgents] });
  expect(await live(ordersOf(given, server, folder), store)).toBe("completed");
  const { sessions } = await store.list({});
  const { messages, interruption } = await store.read(sessions[0]!.id);
  expect(interruption).toBeNull();
  expect(JSON.stringify(messages).split(LAST), "answered once").toHaveLength(2);
}

/** Whether it was killed. */
async function judge(given: Given, kill: Partial<Orders>): Promise<boolean> {
  const what = JSON.stringify({ ...given, ...kill });
  await using server = await backgroundServer(reply);
  using folder = place();
  const { signal, lines } = await runKilled(program, ordersOf(given, server, folder.path, kill));
  if (signal === null) expect(lines, what).toEqual(["completed"]);
  const lost = lostOf(server, folder.path);
  expect(lost.length, what).toBeLessThanOrEqual(1);
  await goOn(given, server, folder.path);
  expect(server.paid, `${what}: an answer whose id was recorded is paid for once`).toHaveLength(2 + lost.length);
  for (const { store, background } of server.requests)
    expect({ store, background }).toEqual({ store: true, background: true });
  return signal !== null;
}

const all: Given[] = [
  { way: "ai-sdk", stream: true },
  { way: "ai-sdk", stream: false },
  { way: "openai-agents", stream: true },
  { way: "openai-agents", stream: false },
];

describe.each(all)("$way, stream: $stream", (given) => {
  test("killed at every record", async () => {
    let killAfter = 1;
    while (await judge(given, { killAfter })) killAfter += 1;
    expect(killAfter).toBeGreaterThan(6);
  });

  test("killed at every answer of the API", async () => {
    let killAtAnswer = 1;
    while (await judge(given, { killAtAnswer })) killAtAnswer += 1;
    expect(killAtAnswer).toBeGreaterThan(given.stream ? 2 : 4);
  });

  test.each(["forgotten", "failed"] as const)("a response that is %s is asked for again", async (how) => {
    await using server = await backgroundServer(reply);
    using folder = place();
    // Killed with the record of the first acceptance, which is the fifth or so.
    for (let killAfter = 3; lostOf(server, folder.path).length === server.paid.length; killAfter += 1) {
      expect(killAfter).toBeLessThan(12);
      rmSync(join(folder.path, "sessions"), { recursive: true, force: true });
      expect((await runKilled(program, ordersOf(given, server, folder.path, { killAfter }))).signal).toBe("SIGKILL");
    }
    const before = server.paid.length;
    if (how === "forgotten") server.forget();
    else server.fail();
    await goOn(given, server, folder.path);
    expect(server.paid).toHaveLength(before + 2);
  });
});

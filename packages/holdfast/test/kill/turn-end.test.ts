import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { validateAnthropic } from "@holdfast/testkit";
import { type AnthropicMessage, openStore } from "holdfast";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { place } from "../place.ts";
import { ANSWER, OPEN, type Orders, PROMPT, ways } from "./turn-end-agent.ts";

type M = AnthropicMessage;

const AGENT = join(import.meta.dirname, "turn-end-agent.ts");

/** The agents' compiled code: with it they start in half the time. */
const compiled = place();
beforeAll(async () => {
  using folder = place();
  expect(await killed({ way: "hooks", folder: folder.path, asked: join(folder.path, "asked"), ...NEVER })).toBe("done");
});
afterAll(() => compiled[Symbol.dispose]());

const NEVER = { killAt: 0, written: "all" } as const;

/** What the agent came to: "done", or "" if it was killed first. */
async function killed(orders: Orders): Promise<string> {
  const child = spawn(process.execPath, ["--conditions=holdfast-source", AGENT, JSON.stringify(orders)], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, NODE_COMPILE_CACHE: compiled.path },
  });
  return (await text(child.stdout)).trim();
}

const askedIn = (path: string): string[] => (existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : []);

/** Kills it there, carries on in this process, and judges both lives. Whether it ended before it could be killed. */
async function judge(orders: Omit<Orders, "folder" | "asked">): Promise<boolean> {
  const what = `${orders.way}, killed at write ${orders.killAt} (${orders.written} of it)`;
  using folder = place();
  const asked = join(folder.path, "asked");
  const isDone = (await killed({ ...orders, folder: folder.path, asked })) === "done";
  const before = askedIn(asked).length;

  await using store = await openStore(folder.path);
  const session = await store.resumeLatest<M>({}, OPEN);
  if (!session) {
    expect(isDone, what).toBe(false);
    return false;
  }
  const isAnswered = JSON.stringify(session.messages).includes(ANSWER);
  if (isAnswered) {
    expect(session.interruption, `${what}: a turn whose answer is there is completed`).toBe(null);
    expect(session.usage.outputTokens, what).toBe(orders.way === "hooks" ? 2 : undefined);
  } else {
    expect(session.interruption, `${what}: what is missing is said`).toMatchObject({ answered: false });
    await ways[orders.way](session, asked);
    expect(askedIn(asked).length, what).toBeGreaterThan(before);
  }
  // A request never ends with the model's own words, and none is made behind its answer.
  expect(askedIn(asked), what).not.toContain("assistant");
  expect(session.interruption, what).toBe(null);
  expect(session.turn, what).toBe(null);
  expect(JSON.stringify(session.messages).split(ANSWER), `${what}: answered once`).toHaveLength(2);
  await session.startTurn(PROMPT);
  expect(validateAnthropic(session.messages), what).toEqual([]);
  return isDone;
}

describe.each(Object.keys(ways) as Orders["way"][])("%s", (way) => {
  test.each(["all", "half"] as const)(
    "P5: SIGKILL at every write (%s of it written): the turn is completed with its answer, or what is missing is said",
    async (written) => {
      let isOver = false;
      for (let killAt = 1; !isOver; killAt++) isOver = await judge({ way, killAt, written });
    },
  );
});

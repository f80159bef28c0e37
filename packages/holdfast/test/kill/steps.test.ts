import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { validateAnthropic } from "@holdfast/testkit";
import { type AnthropicMessage, openStore } from "holdfast";
import { describe, expect, test } from "vitest";
import { place } from "../place.ts";
import { effectsIn, live, type Orders, STEPS } from "./steps-agent.ts";

type M = AnthropicMessage;
type Kill = NonNullable<Orders["kill"]>;

const AGENT = join(import.meta.dirname, "steps-agent.ts");

/** Whether it came to its end before it could be killed. */
async function isDone(orders: Orders): Promise<boolean> {
  const child = spawn(process.execPath, ["--conditions=holdfast-source", AGENT, JSON.stringify(orders)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  return (await text(child.stdout)).trim() === "done";
}

/** Lives one after the other, each killed at its instant, and a last one that is not. Returns how many were killed. */
async function lives(...kills: Kill[]): Promise<number> {
  using folder = place();
  const what = `killed ${kills.map((kill) => JSON.stringify(kill)).join(", then ")}`;
  let killed = 0;
  for (const kill of kills) {
    if (await isDone({ folder: folder.path, kill })) break;
    killed += 1;
  }
  await using store = await openStore(folder.path, { recordsToolStarts: true });
  const session = (await store.resumeLatest<M>({})) ?? (await store.create<M>({ dialect: "anthropic" }));
  await live(session, { folder: folder.path, kill: null });
  judge(folder.path, session.id, session.messages, what);
  expect(session.interruption, what).toBe(null);
  await session.startTurn({ role: "user", content: "thanks" });
  expect(validateAnthropic(session.messages), what).toEqual([]);
  return killed;
}

function judge(path: string, id: string, messages: readonly M[], what: string): void {
  const effects = effectsIn(path);
  const times = (name: string): number => effects.filter((line) => line.startsWith(`${name} `)).length;
  expect(times("reserve"), `${what}: reserved at most once`).toBeLessThanOrEqual(1);
  expect(times("charge"), `${what}: charged at most once`).toBeLessThanOrEqual(1);
  expect(new Set(effects).size, `${what}: one key for each step`).toBe(STEPS.filter((name) => times(name) > 0).length);

  const records = recordsIn(path, id);
  const ended = new Set<unknown>();
  for (const { kind, step } of records) {
    if (kind === "step.started") expect(ended, `${what}: a finished step never starts again`).not.toContain(step);
    if (kind === "step.ended") ended.add(step);
  }
  const told = JSON.stringify(messages);
  if (told.includes("outcome is unknown")) {
    expect(ended, `${what}: only of a step whose end is not recorded`).not.toContain("reserve");
    expect(times("charge") + times("ship"), what).toBe(0);
  } else {
    expect(STEPS.map(times), `${what}: all of it is done`).toEqual([1, 1, expect.any(Number)]);
    expect([...ended], what).toEqual([...STEPS]);
    expect(told.match(/"?name/g)!.length, what).toBeGreaterThan(STEPS.length);
  }
}

function recordsIn(path: string, id: string): { kind: string; step?: string }[] {
  const folder = join(path, "sessions", id);
  return readdirSync(folder)
    .filter((name) => /^\d+\.jsonl$/.test(name))
    .sort()
    .flatMap((name) => readFileSync(join(folder, name), "utf8").split("\n"))
    .flatMap((line) => {
      try {
        return [JSON.parse(line)];
      } catch {
        // Torn by the kill.
        return [];
      }
    });
}

describe("a tool with three steps", () => {
  test.each(["all", "half"] as const)(
    "P5: SIGKILL at every write (%s of it written): each effect at most once, and the model is told the truth",
    async (written) => {
      for (let write = 1; (await lives({ write, written })) > 0; write++);
    },
  );

  test.each(["after reserve", "before charge", "after charge", "after ship"])(
    "P5: SIGKILL %s, then at every write of the recovery",
    async (during) => {
      for (let write = 1; (await lives({ during }, { write, written: write % 2 === 0 ? "all" : "half" })) > 1; write++);
    },
  );

  test("P5: SIGKILL in each step, in the probe of one, and in a step that runs again", async () => {
    for (const name of STEPS)
      for (const when of ["before", "after"])
        for (const then of ["probe", "after charge", "after ship"])
          await lives({ during: `${when} ${name}` }, { during: then }, { during: then });
  });
});

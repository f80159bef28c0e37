import { spawn } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { validateOpenaiResponses } from "@holdfast/testkit";
import { openStore } from "holdfast";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { runAgent } from "../../../../examples/background.ts";
import { type BackgroundModel, startBackgroundModel } from "../../../../examples/background-model.ts";
import { place } from "../place.ts";
import { clientOf, type Kill, type Orders } from "./background-agent.ts";

/** examples/background.ts, killed wherever it can be: an answer whose id was recorded is paid for once. */

const AGENT = join(import.meta.dirname, "background-agent.ts");
const ANSWER = "There are many stars.";

process.env["POLL_MS"] = "1";

/** The agents' compiled code: with it they start in half the time. */
const compiled = place();
beforeAll(async () => {
  vi.spyOn(console, "log").mockReturnValue();
  await using model = await startBackgroundModel();
  using folder = place();
  expect(await live({ folder: folder.path, url: model.url, kill: null })).toBe("done");
  expect(model.paid).toHaveLength(2);
});
afterAll(() => compiled[Symbol.dispose]());

/** Whether it came to its end, or was killed first. */
async function live(orders: Orders): Promise<"done" | "killed"> {
  const child = spawn(process.execPath, ["--conditions=holdfast-source", AGENT, JSON.stringify(orders)], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, NODE_COMPILE_CACHE: compiled.path },
  });
  const [said, signal] = await Promise.all([
    text(child.stdout),
    new Promise((ended) => child.once("close", (_code, by) => ended(by))),
  ]);
  if (signal === "SIGKILL") return "killed";
  expect(said.trim().split("\n").at(-1)).toBe("done");
  return "done";
}

/** The ids of the responses that whole lines of the journal hold. */
function recorded(folder: string): Set<string> {
  const journals = existsSync(folder) ? globSync(join(folder, "sessions/*/*.jsonl")) : [];
  const lines = journals.flatMap((path) => readFileSync(path, "utf8").split("\n").slice(0, -1));
  return new Set(lines.flatMap((line) => /"kind":"draft.accepted".*"handle":\{"id":"(\w+)"/.exec(line)?.[1] ?? []));
}

/** Paid for, and not to be found again. */
const lostOf = ({ paid }: BackgroundModel, folder: string): string[] => {
  const known = recorded(folder);
  return paid.filter((id) => !known.has(id));
};

/** Carries on in this process, and judges all lives: two answers, and one more for each that was lost. */
async function judge(model: BackgroundModel, folder: string, what: string): Promise<void> {
  const lost = lostOf(model, folder);
  await using store = await openStore(folder, { app: "background", recordsToolStarts: true });
  await runAgent(store, clientOf(model.url));
  expect(model.paid, `${what}: an answer whose id was recorded is paid for once`).toHaveLength(2 + lost.length);
  const { sessions } = await store.list({});
  const { messages, interruption } = await store.read(sessions[0]!.id);
  expect(interruption, what).toBeNull();
  const said = JSON.stringify(messages);
  expect(said.split(ANSWER), `${what}: answered once`).toHaveLength(2);
  expect(said.split('"function_call"'), `${what}: called once`).toHaveLength(2);
  expect(validateOpenaiResponses({ input: [...messages, { role: "user", content: "Thank you." }] }), what).toEqual([]);
}

/** Kills it there, and judges. Whether it came to its end instead. */
async function killed(kill: NonNullable<Kill>): Promise<boolean> {
  const what = JSON.stringify(kill);
  await using model = await startBackgroundModel();
  using folder = place();
  const isDone = (await live({ folder: folder.path, url: model.url, kill })) === "done";
  // One kill loses at most one answer, and only between its acceptance and the record.
  expect(lostOf(model, folder.path).length, what).toBeLessThanOrEqual(1);
  await judge(model, folder.path, what);
  return isDone;
}

test.each(["all", "half"] as const)("SIGKILL at every write to the journal (%s of it written)", async (written) => {
  let nth = 1;
  while (!(await killed({ at: "write", nth, written }))) nth += 1;
  expect(nth).toBeGreaterThan(8);
});

test.each(["call", "answer"] as const)("SIGKILL at every %s of the API", async (at) => {
  let nth = 1;
  while (!(await killed({ at, nth }))) nth += 1;
  expect(nth).toBeGreaterThan(5);
});

test("between the acceptance and the record, one answer is lost, and never found", async () => {
  await using model = await startBackgroundModel();
  using folder = place();
  expect(await live({ folder: folder.path, url: model.url, kill: { at: "answer", nth: 1 } })).toBe("killed");
  expect(lostOf(model, folder.path)).toEqual(["resp_1"]);
  await judge(model, folder.path, "lost");
  expect(model.paid).toEqual(["resp_1", "resp_2", "resp_3"]);
});

describe("killed again while it fetches the answer", () => {
  /** The first answer was accepted, and its id recorded. */
  async function accepted(model: BackgroundModel, folder: string): Promise<void> {
    expect(await live({ folder, url: model.url, kill: { at: "call", nth: 2 } })).toBe("killed");
    expect([...recorded(folder)]).toEqual(["resp_1"]);
  }

  test.each(["write", "call", "answer"] as const)("at every %s", async (at) => {
    for (let nth = 1, isDone = false; !isDone; nth += 1) {
      await using model = await startBackgroundModel();
      using folder = place();
      await accepted(model, folder.path);
      const kill: Kill = at === "write" ? { at, nth, written: "all" } : { at, nth };
      isDone = (await live({ folder: folder.path, url: model.url, kill })) === "done";
      expect(model.paid[0], "the first answer").toBe("resp_1");
      await judge(model, folder.path, `then at ${at} ${nth}`);
    }
  });

  test("the provider has forgotten it: it is asked again, and the conversation is whole", async () => {
    await using model = await startBackgroundModel();
    using folder = place();
    await accepted(model, folder.path);
    model.forget();
    await using store = await openStore(folder.path, { app: "background", recordsToolStarts: true });
    await runAgent(store, clientOf(model.url));
    expect(model.paid).toEqual(["resp_1", "resp_2", "resp_3"]);
    const { sessions } = await store.list({});
    expect(JSON.stringify((await store.read(sessions[0]!.id)).messages)).toContain(ANSWER);
  });
});

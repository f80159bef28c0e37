import { spawn } from "node:child_process";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { validateAiSdk } from "@holdfast/testkit";
import { openStore } from "holdfast";
import { expect, test } from "vitest";
import { place } from "../../../holdfast/test/place.ts";

const EXAMPLES = resolve(import.meta.dirname, "../../../../examples");

/** Runs the example as a user does, to its end, or until it says where to kill it. */
async function run(
  cwd: string,
  isKilled: boolean,
  example = "ai-sdk.ts",
  ...args: string[]
): Promise<{ lines: string[]; signal: NodeJS.Signals | null }> {
  const child = spawn(process.execPath, ["--conditions=holdfast-source", join(EXAMPLES, example), ...args], {
    cwd,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise<NodeJS.Signals | null>((done) => child.once("close", (_, signal) => done(signal)));
  const lines: string[] = [];
  for await (const line of createInterface(child.stdout)) {
    lines.push(line);
    if (isKilled && /kill -9 \d+ now/.test(line)) child.kill("SIGKILL");
  }
  return { lines, signal: await ended };
}

test("examples/ai-sdk.ts: killed in the second of three tools, it says how far each came, and goes on without running one twice", async () => {
  using here = place();
  const killed = await run(here.path, true);
  expect(killed.signal).toBe("SIGKILL");
  const again = await run(here.path, false);
  expect(again.lines).toEqual([
    "turn 1 was cut off (killed)",
    "  send_mail: outcome-unknown",
    "  post_summary: never-started",
    "tool: post_summary",
    "model: That is all done, but I do not know whether send_mail took effect: please check.",
    "completed",
  ]);
  const ran = [...killed.lines, ...again.lines].filter((line) => line.startsWith("tool: "));
  expect(ran).toEqual(["tool: read_notes", "tool: send_mail", "tool: post_summary"]);
  await using store = await openStore(join(here.path, "agent-data"));
  const { sessions } = await store.list();
  const reading = await store.read(sessions[0]!.id);
  expect(reading.interruption).toBe(null);
  expect(validateAiSdk([...reading.messages, { role: "user", content: "Thank you." }])).toEqual([]);
  expect(reading.usage).toMatchObject({ outputTokens: 84 });
});

test("examples/langchain.ts: killed in the second of three tools, it goes on without running one twice", async () => {
  using here = place();
  const killed = await run(here.path, true, "langchain.ts");
  expect(killed.signal).toBe("SIGKILL");
  const again = await run(here.path, false, "langchain.ts");
  expect(again.lines).toEqual([
    "turn 1 was cut off (killed)",
    "  send_mail: outcome-unknown",
    "tool: post_summary",
    "model: That is all done, but I do not know whether send_mail took effect: please check.",
    "completed",
  ]);
  const ran = [...killed.lines, ...again.lines].filter((line) => line.startsWith("tool: "));
  expect(ran).toEqual(["tool: read_notes", "tool: send_mail", "tool: post_summary"]);
});

test("examples/langgraph.ts: killed in the second of three nodes, it goes on with that one", async () => {
  using here = place();
  const killed = await run(here.path, true, "langgraph.ts");
  expect(killed.signal).toBe("SIGKILL");
  const again = await run(here.path, false, "langgraph.ts", "--fast");
  expect(again.lines[0]).toBe("the thread was cut off before: send_mail");
  const ran = [...killed.lines, ...again.lines].filter((line) => line.startsWith("node: "));
  expect(ran).toEqual(["node: read_notes", "node: send_mail", "node: post_summary"]);
  expect(again.lines.slice(-4)).toEqual([
    "human: Tell everybody about the release.",
    "ai: I have read the notes.",
    "ai: The mail is sent.",
    "ai: The summary is posted.",
  ]);
});

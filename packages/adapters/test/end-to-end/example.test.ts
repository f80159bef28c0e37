import { spawn } from "node:child_process";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { validateAiSdk } from "@holdfast/testkit";
import { openStore } from "holdfast";
import { expect, test } from "vitest";
import { place } from "../../../holdfast/test/place.ts";

const EXAMPLE = resolve(import.meta.dirname, "../../../../examples/ai-sdk.ts");

/** RunRegistry the example as a user does, to its end, or until it says where to kill it. */
async function run(cwd: string, isKilled: boolean): Promise<{ lines: string[]; signal: NodeJS.Signals | null }> {
  const child = spawn(process.execPath, ["--conditions=holdfast-source", EXAMPLE], {
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

import { execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { openStore } from "holdfast";
import { beforeAll, describe, expect, test } from "vitest";
import { place } from "../../../holdfast/test/place.ts";
import { openaiAgents } from "../../src/openai-agents/index.ts";
import { blocks, compilable } from "./guide.ts";

const ROOT = resolve(import.meta.dirname, "../../../..");
const EXAMPLE = join(ROOT, "examples/openai-agents.ts");

/** Runs a program as a user does, to its end, or until it says where to kill it. */
async function run(
  cwd: string,
  program: string,
  isKilled = false,
): Promise<{ lines: string[]; signal: NodeJS.Signals | null }> {
  const child = spawn(process.execPath, ["--conditions=holdfast-source", program], {
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

test("examples/openai-agents.ts: killed in the second of three tools, the second agent goes on, and runs nothing twice", async () => {
  using here = place();
  const killed = await run(here.path, EXAMPLE, true);
  expect(killed.signal).toBe("SIGKILL");
  const again = await run(here.path, EXAMPLE);
  expect(again.lines).toEqual([
    "turn 1 was cut off (killed)",
    "  send_mail: outcome-unknown",
    "  post_summary: never-started",
    "model: This is for the office.",
    "agent: Office",
    "model: I will read the notes, send the mail and post the summary.",
    "tool: post_summary",
    "model: That is all done, but I do not know whether send_mail took effect: please check.",
    "completed",
  ]);
  const ran = [...killed.lines, ...again.lines].filter((line) => line.startsWith("tool: "));
  expect(ran).toEqual(["tool: read_notes", "tool: send_mail", "tool: post_summary"]);
  await using store = await openStore(join(here.path, "agent-data"), { dialects: [openaiAgents] });
  const { sessions } = await store.list();
  expect(sessions).toHaveLength(1);
  const reading = await store.read(sessions[0]!.id);
  expect(reading.interruption).toBe(null);
  expect(reading.usage).toMatchObject({ outputTokens: 126 });
});

/** What the guide leaves to the reader. */
const AGENT = `
import { openaiAgents } from "@holdfast/adapters/openai-agents";
import { Agent, type AgentInputItem, type AgentOutputItem, type Model, type RunToolApprovalItem, setTracingDisabled, tool, Usage } from "@openai/agents";
import { openStore } from "holdfast";
import { z } from "zod";
setTracingDisabled(true);
const USAGE = { requests: 1, inputTokens: 1, outputTokens: 1, totalTokens: 2 };
function answer(items: AgentInputItem[]): AgentOutputItem[] {
  const asksFor = JSON.stringify(items.findLast((item) => "role" in item && item.role === "user"));
  if (asksFor.includes("mail") && items.at(-1)!.type !== "function_call_result")
    return [{ type: "function_call", callId: "c", name: "send_mail", arguments: "{}", status: "completed" }];
  const text = items.at(-1)!.type === "function_call_result" ? "It is sent." : "It is told.";
  return [{ type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text }] }];
}
const model: Model = {
  getResponse: async ({ input }) => ({ usage: new Usage(USAGE), output: answer(input as AgentInputItem[]) }),
  async *getStreamedResponse({ input }) {
    yield { type: "output_text_delta", delta: "It is told." };
    yield { type: "response_done", response: { id: "r", usage: USAGE, output: answer(input as AgentInputItem[]) } } as never;
  },
};
const send = tool({ name: "send_mail", description: "", parameters: z.object({}), needsApproval: true, execute: async () => "sent" });
export const agent = new Agent({ name: "A", model, tools: [send] });
const store = await openStore("./other-data", { recordsToolStarts: true, dialects: [openaiAgents] });
export const session = await store.create({ dialect: openaiAgents });
export const confirm = async (_: RunToolApprovalItem): Promise<boolean> => true;
`;

describe("the guide", () => {
  const codes = blocks("openai-agents").map(({ code }) => code);
  const here = place();
  let command: string[] = [];
  beforeAll(() => {
    const files = Object.fromEntries(codes.map((code, n) => [`block-${n}.ts`, code]));
    command = compilable(here.path, { ...files, "agent.ts": AGENT });
    return () => here[Symbol.dispose]();
  });

  test("its blocks compile", () => {
    let said = "";
    try {
      execFileSync(process.execPath, command, { encoding: "utf8" });
    } catch (error) {
      said = String((error as { stdout?: string }).stdout ?? error);
    }
    expect(said).toBe("");
  });

  test("its blocks run", async () => {
    expect(codes).toHaveLength(4);
    const expected = [["It is told."], ["It is told.completed"], ["It is sent."], ["It is told."]];
    for (const [n, lines] of expected.entries()) {
      const program = join(here.path, `block-${n}.ts`);
      expect((await run(here.path, program)).lines, readFileSync(program, "utf8")).toEqual(lines);
    }
  });

  test("it counts the lines that an application adds: at most 10", () => {
    const counted = [...codes[0]!.matchAll(/\/\/ (\d+)\b/g)].map(([, n]) => Number(n));
    expect(counted).toEqual(Array.from({ length: counted.length }, (_, n) => n + 1));
    expect(counted.length).toBeLessThanOrEqual(10);
    // Every line of the block that is the application's own, or empty, is not counted; all others are.
    const own = codes[0]!.split("\n").filter((line) => line !== "" && !/\/\/ \d/.test(line));
    expect(own).toEqual([
      'import { agent } from "./agent.ts"; // yours: new Agent({ name, instructions, tools, … })',
      "console.log(result.finalOutput);",
    ]);
  });
});

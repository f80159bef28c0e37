import { setTimeout as sleep } from "node:timers/promises";
import { validateAiSdk } from "@holdfast/testkit";
import type { ModelMessage } from "ai";
import { idFrom, openStore } from "holdfast";
import { expect, test } from "vitest";
import { seedOf } from "../../../holdfast/test/seed.ts";
import { ChatServer, guideFiles } from "../chat-server.ts";
import { type Page, textOf } from "../page.ts";
import { chance } from "./killed-program.ts";

/** The server of the guide, with its deploy.ts, which is replaced again and again in the middle of one answer. */

const seed = seedOf(import.meta.url, "kill");
const STEPS = 30;
const PATIENT = { timeout: 60_000, interval: 5 };

/** Each step says that it began, waits for its file, and says that it ended. The model is a function of its prompt. */
const AGENT = `
import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { jsonSchema, type LanguageModel, type ToolSet, tool } from "ai";

type Model = Extract<LanguageModel, { specificationVersion: "v4" }>;
type Prompt = Parameters<Model["doStream"]>[0]["prompt"];
type Part = Awaited<ReturnType<Model["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;
const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

async function* answer(prompt: Prompt): AsyncGenerator<Part> {
  appendFileSync("asked", JSON.stringify(prompt) + "\\n");
  const done = prompt.filter(({ role }) => role === "tool").length;
  yield { type: "stream-start", warnings: [] };
  yield { type: "text-start", id: "t" };
  for (const delta of ["Step ", String(done + 1), ". "]) {
    yield { type: "text-delta", id: "t", delta };
    await sleep(5);
  }
  yield { type: "text-end", id: "t" };
  const isLast = done === ${STEPS};
  if (!isLast) yield { type: "tool-call", toolCallId: "call_" + done, toolName: "step", input: JSON.stringify({ n: done + 1 }) };
  const reason = isLast ? "stop" : "tool-calls";
  yield { type: "finish", finishReason: { unified: reason, raw: reason }, usage };
}

export const model: Model = {
  specificationVersion: "v4",
  provider: "test",
  modelId: "test-1",
  supportedUrls: {},
  doGenerate: () => Promise.reject(new Error("this model only streams")),
  doStream: async ({ prompt }) => ({ stream: ReadableStream.from(answer(prompt)) }),
};

export const tools: ToolSet = {
  step: tool({
    inputSchema: jsonSchema<{ n: number }>({ type: "object", properties: { n: { type: "number" } } }),
    execute: async ({ n }) => {
      appendFileSync("log", "begin-" + n + "\\n");
      while (!existsSync("go-" + n)) await sleep(5);
      appendFileSync("log", "end-" + n + "\\n");
      return "Step " + n + " is done.";
    },
  }),
};
`;

test("twenty deploys in one answer: it is finished, no tool ran twice, and nobody was told of an interruption", async () => {
  const files = guideFiles();
  const server = `import "./deploy.ts";\n${files["server.ts"]}`;
  await using servers = new ChatServer({ ...files, "server.ts": server, "agent.ts": AGENT });
  await servers.start();
  const { page: first } = await servers.load();
  const pages: { readonly page: Page; readonly over: Promise<void> }[] = [
    { page: first, over: first.sendMessage({ text: "Do it." }) },
  ];
  let deploys = 0;
  for (let step = 1; step <= STEPS; step++) {
    const what = `seed ${seed}, deploy ${++deploys}`;
    await expect.poll(() => servers.lines("log"), { ...PATIENT, message: what }).toContain(`begin-${step}`);
    let ended: Promise<void>;
    if (deploys % 2 === 0) {
      // In a tool, which is waited for.
      ended = servers.terminate();
      servers.release(`go-${step}`);
    } else {
      // Somewhere behind that tool: in its record, in the next answer, or in the next tool.
      servers.release(`go-${step}`);
      await sleep(chance(seed, deploys) * 60);
      ended = servers.terminate();
      servers.release(`go-${step + 1}`);
    }
    await ended;
    if (servers.lines("log").includes(`end-${step + 1}`)) step++;
    await servers.start();
    const { status, interrupted } = await servers.state();
    // Behind the last step, the last answer may have come to its end.
    expect([step < STEPS ? status : "running", interrupted], what).toEqual(["running", null]);
    const { page, resumed } = await servers.load();
    pages.push({ page, over: resumed });
  }
  expect(deploys).toBeGreaterThanOrEqual(20);
  await expect.poll(async () => (await servers.state()).status, PATIENT).toBe("ready");
  await Promise.all(pages.map(({ over }) => over));
  for (const { page } of pages.slice(0, -1)) expect(page.messages.length).toBe(2);
  const said = Array.from({ length: STEPS + 1 }, (_, n) => `Step ${n + 1}. `).join("");
  expect(textOf((await servers.transcript())[1]!)).toBe(said);
  await servers.terminate();

  expect(servers.lines("log")).toEqual(
    Array.from({ length: STEPS }, (_, n) => [`begin-${n + 1}`, `end-${n + 1}`]).flat(),
  );
  await using store = await openStore(`${servers.folder}/agent-data`);
  const id = idFrom(`ai-sdk chat ${servers.id}`);
  const { messages, interruption } = await store.read<ModelMessage>(id);
  expect(interruption).toBe(null);
  const records = await Array.fromAsync(store.history(id));
  expect(records.filter(({ kind }) => kind === "tool.started")).toHaveLength(STEPS);
  expect(records.filter(({ kind }) => kind === "repair")).toEqual([]);
  expect(records.filter(({ kind }) => kind === "turn.suspended").length).toBeGreaterThanOrEqual(deploys - 1);
  // Each request is the one before and what came since; none was made twice.
  const requests = servers.lines("asked");
  expect(requests).toHaveLength(STEPS + 1);
  for (const [n, request] of requests.entries())
    expect(request.startsWith(n === 0 ? "[" : requests[n - 1]!.slice(0, -1)), `request ${n}`).toBe(true);
  expect(servers.stderr, "nothing failed").toBe("");
  expect(validateAiSdk([...messages, { role: "user", content: "And now?" }])).toEqual([]);
});

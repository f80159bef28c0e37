import { generateText, jsonSchema, type ModelMessage, type ToolSet, tool } from "ai";
import { decideCall, openStore, type SessionState } from "holdfast";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Journal, writeJournals } from "../../../../holdfast/test/journals/journals.ts";
import { lives } from "../../../../holdfast/test/journals/lives.ts";
import { place } from "../../../../holdfast/test/place.ts";
import { stateOf } from "../../../src/ai-sdk/chat/state.ts";
import { chatPolicy } from "../../../src/ai-sdk/chat/waits.ts";
import { type ChatState, durable } from "../../../src/ai-sdk/index.ts";
import { scripted, text } from "../../scripted-model.ts";

/** The killed sessions that every surface is held to: what `resume` does with their calls, and what a page is told. */

const folder = place();
let journals: readonly Journal[] = [];
beforeAll(async () => {
  journals = await writeJournals(folder.path, "writer");
});
afterAll(() => folder[Symbol.dispose]());

function look(ran: string[]): ToolSet {
  const inputSchema = jsonSchema<{ at: string }>({ type: "object", properties: { at: { type: "string" } } });
  const execute = async ({ at }: { at: string }): Promise<string> => {
    ran.push(at);
    return "seen";
  };
  return { look: tool({ inputSchema, execute }) };
}

const STATUS: Record<SessionState, ChatState["status"]> = {
  ...{ idle: "ready", running: "running", waiting: "waiting" },
  ...{ interrupted: "interrupted", stopped: "interrupted", failed: "interrupted" },
  ...{ paused: "interrupted", parked: "interrupted" },
};

const REASON: Partial<Record<SessionState, string>> = {
  ...{ stopped: "stopped", failed: "failed" },
  ...{ paused: "paused", parked: "paused" },
};

test.each(lives().map(({ name }) => name))("%s: resume and durableChat decide as the account says", async (name) => {
  const { id, expected } = journals.find((one) => one.name === name)!;
  const { state, answered = false, queued = 0 } = expected;
  const decisions = Object.entries(expected.calls).map(([call, [, decision]]) => [call, decision] as const);
  const isWaiting = decisions.some(([, decision]) => decision === "wait");
  const which = (...wanted: string[]): string[] =>
    decisions.flatMap(([call, decision]) => (wanted.includes(decision) ? [call] : []));
  await using store = await openStore(folder.path, { app: "writer", recordsToolStarts: true });
  const ran: string[] = [];
  const tools = look(ran);

  const reading = await store.read<ModelMessage>(id);
  const policy = chatPolicy(reading, tools);
  if (state !== "idle") expect(reading.calls.map((call) => [call.id, decideCall(call, policy)])).toEqual(decisions);
  const isDone = answered || (state === "idle" && queued === 0);
  const shown = isDone ? "ready" : isWaiting ? "waiting" : queued > 0 ? "interrupted" : STATUS[state];
  const page = stateOf(reading, { tools });
  expect(page.status).toBe(shown);
  expect(page.interrupted?.reason ?? null).toBe(isDone || state === "waiting" ? null : (REASON[state] ?? "killed"));

  await using session = await store.resume<ModelMessage>(id);
  const agent = durable(session, { replay: Object.fromEntries(Object.keys(tools).map((name) => [name, "safe"])) });
  if (state === "idle") {
    await expect(agent.resume(tools)).rejects.toMatchObject({ code: "NOTHING_TO_RESUME" });
    return;
  }
  const turn = await agent.resume(tools);
  if (isWaiting || answered) {
    expect([turn, ran, session.state]).toEqual([null, [], answered ? "idle" : state]);
    expect(session.calls.map((call) => call.id)).toEqual(decisions.map(([call]) => call));
    return;
  }
  const model = scripted([text("Done.")]);
  expect(await agent.finish(generateText(agent.wrap({ model, tools })))).toEqual({ kind: "completed" });
  expect(ran.sort()).toEqual(which("run", "run-again"));
  // What ran has its result. Of the others, the model is told that they failed or were denied.
  const results = model.prompts[0]!.flatMap(({ role, content }) =>
    role === "tool" ? content.flatMap((part) => (part.type === "tool-result" ? [part] : [])) : [],
  );
  const isOpen = ({ toolCallId }: { toolCallId: string }): boolean => toolCallId in expected.calls;
  const told = results.filter(isOpen).filter(({ output }) => /^(error-text|execution-denied)$/.test(output.type));
  expect(told.map(({ toolCallId }) => toolCallId).sort()).toEqual(which("tell-model"));
  expect(results.filter(isOpen)).toHaveLength(decisions.length);
});

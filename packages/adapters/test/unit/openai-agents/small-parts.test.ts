import { setImmediate as turnOfLoop } from "node:timers/promises";
import {
  type AgentInputItem,
  hostedMcpTool,
  type ModelRequest,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  RunContext,
  Usage,
} from "@openai/agents";
import type { Entry } from "holdfast";
import { expect, test } from "vitest";
import { replayOf } from "../../../src/openai-agents/replay.ts";
import { AgentRunLog } from "../../../src/openai-agents/run-log.ts";
import { withoutStorage } from "../../../src/openai-agents/storage.ts";
import { UnwrittenOutcomes } from "../../../src/unwritten-outcomes.ts";
import { call, stage, text } from "../../openai-agents/scripted.ts";

const model = new OpenAIResponsesModel({} as never, "gpt-5");
const REQUEST: ModelRequest = {
  input: [],
  modelSettings: {},
  tools: [],
  outputType: "text",
  handoffs: [],
  tracing: false,
};
const REASONING = "reasoning.encrypted_content";

test("OpenAI is asked to store nothing, and for its reasoning in encrypted form", () => {
  expect(withoutStorage(REQUEST, model).modelSettings).toEqual({
    store: false,
    providerData: { include: [REASONING] },
  });
  const providerData = { include: ["message.output_text.logprobs"], seed: 1 };
  expect(withoutStorage({ ...REQUEST, modelSettings: { providerData } }, model).modelSettings.providerData).toEqual({
    include: ["message.output_text.logprobs", REASONING],
    seed: 1,
  });
});

test("what the SDK asks for on behalf of its tools is still asked for", () => {
  const tools = [
    { type: "hosted_tool", name: "file_search", providerData: { type: "file_search", include_search_results: true } },
    { type: "hosted_tool", name: "web_search", providerData: { type: "web_search", search_content_types: ["image"] } },
  ] as ModelRequest["tools"];
  const { providerData } = withoutStorage({ ...REQUEST, tools }, model).modelSettings;
  expect(providerData!["include"]).toEqual(["file_search_call.results", "web_search_call.results", REASONING]);
});

test("the application's own choice, other models, and tools that need stored data are left alone", () => {
  const chat = new OpenAIChatCompletionsModel({} as never, "gpt-4.1");
  expect(withoutStorage(REQUEST, chat)).toBe(REQUEST);
  const stored = { ...REQUEST, modelSettings: { store: true } };
  expect(withoutStorage(stored, model)).toBe(stored);
  const { type, name, providerData } = hostedMcpTool({
    serverLabel: "x",
    serverUrl: "https://x",
    requireApproval: "always",
  });
  const asking = { ...REQUEST, tools: [{ type, name, providerData }] as ModelRequest["tools"] };
  expect(withoutStorage(asking, model)).toBe(asking);
});

test("a turn whose beginning was compacted away is replayed from its last response", () => {
  const entry = (id: string, step: string, message: AgentInputItem): Entry<AgentInputItem> => ({
    ...{ id, seq: 1, at: "", turn: 2, step, message, metadata: {} },
  });
  const result: AgentInputItem = {
    type: "function_call_result",
    callId: "a",
    name: "look",
    status: "completed",
    output: "seen",
  };
  const entries = [
    entry("summary", "s0", { role: "user", content: "So far: nothing." }),
    entry("e1", "s1", call("a", "look")),
    entry("e2", "s2", result),
    entry("e3", "s3", call("b", "look")),
    entry("e4", "s3", text("I look.")),
  ];
  const whole = replayOf(entries, 2, "summary");
  expect(whole.responses).toHaveLength(2);
  expect(whole.input).toHaveLength(1);
  const rest = replayOf(entries, 2, "gone");
  expect(rest.responses).toHaveLength(1);
  expect(rest.input).toHaveLength(3);
});

test("a response is handed on only when its record is durable", async () => {
  await using here = await stage();
  const turn = await here.session.startTurn({ role: "user", content: "Go." });
  const unwritten = new UnwrittenOutcomes();
  const runLog = new AgentRunLog({ session: here.session, turn, unwritten, context: new RunContext() });
  const durable = Promise.withResolvers<void>();
  const draft = {
    ...turn.request().draft,
    commit: () => durable.promise as never,
  };
  let isHandedOn = false;
  const answered = runLog
    .answered(draft, { output: [call("a", "look")], usage: new Usage(), model: undefined })
    .then(() => {
      isHandedOn = true;
    });
  for (let n = 0; n < 10; n++) await turnOfLoop();
  expect(isHandedOn).toBe(false);
  durable.resolve();
  await answered;
  expect(isHandedOn).toBe(true);
});

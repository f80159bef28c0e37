import { appendFileSync, writeSync } from "node:fs";
import { jsonSchema, type LanguageModel, type ToolSet, tool, type UIMessage } from "ai";
import type { Store } from "holdfast";
import { type ChatState, type DurableChat, durableChat } from "../../src/ai-sdk/index.ts";
import { type Deadline, openDeadly } from "./deadly-store.ts";

/** A chat server that is killed, and the page that uses it: as a program, and again in the test, which goes on. */

export interface Orders extends Deadline {
  /** What the tools did to the world: a line for each. */
  readonly effects: string;
  /** What the model was asked with: a line for each. */
  readonly requests: string;
}

export const CHAT = "the chat";
export const LAST = "You are welcome.";

export const PROMPTS = [
  { id: "p1", role: "user", parts: [{ type: "text", text: "Look twice, then send." }] },
  { id: "p2", role: "user", parts: [{ type: "text", text: "Thank you." }] },
] as const satisfies UIMessage[];

type Model = Extract<LanguageModel, { specificationVersion: "v4" }>;
type Prompt = Parameters<Model["doStream"]>[0]["prompt"];
type Part = Awaited<ReturnType<Model["doStream"]>>["stream"] extends ReadableStream<infer P> ? P : never;

/** A pure function of what it is sent, so that it goes on as if nothing had happened. */
function replyTo(prompt: Prompt): { readonly words: string; readonly calls: readonly [id: string, name: string][] } {
  const seen = JSON.stringify(prompt);
  if (seen.includes("Thank you.")) return { words: LAST, calls: [] };
  if (seen.includes("I ask where.")) return { words: "That is all.", calls: [] };
  if (seen.includes("I tell them.")) return { words: "I ask where.", calls: [["where_1", "where"]] };
  if (seen.includes("I look.")) return { words: "I tell them.", calls: [["send_1", "send"]] };
  return {
    words: "I look.",
    calls: [
      ["look_1", "look"],
      ["look_2", "look"],
    ],
  };
}

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

async function* answer(prompt: Prompt): AsyncGenerator<Part> {
  const { words, calls } = replyTo(prompt);
  yield { type: "stream-start", warnings: [] };
  yield { type: "text-start", id: "t" };
  for (const delta of words.split(/(?<= )/)) {
    // A turn of the event loop, so that the journal gets to write.
    await new Promise((resolve) => setTimeout(resolve, 2));
    yield { type: "text-delta", id: "t", delta };
  }
  yield { type: "text-end", id: "t" };
  for (const [toolCallId, toolName] of calls) yield { type: "tool-call", toolCallId, toolName, input: "{}" };
  const reason = calls.length > 0 ? "tool-calls" : "stop";
  yield { type: "finish", finishReason: { unified: reason, raw: reason }, usage };
}

export function chatOn(store: Store, { effects, requests }: Pick<Orders, "effects" | "requests">): DurableChat {
  const model: Model = {
    specificationVersion: "v4",
    provider: "test",
    modelId: "test-1",
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error("this model only streams")),
    doStream: async ({ prompt }) => {
      appendFileSync(requests, `${JSON.stringify(prompt)}\n`);
      return { stream: ReadableStream.from(answer(prompt)) };
    },
  };
  const inputSchema = jsonSchema<object>({ type: "object" });
  const execute = async (_: object, { toolCallId }: { toolCallId: string }): Promise<object> => {
    appendFileSync(effects, `${toolCallId}\n`);
    return { done: toolCallId };
  };
  const tools: ToolSet = {
    look: tool({ inputSchema, execute }),
    send: tool({ inputSchema, execute, needsApproval: true }),
    where: tool({ inputSchema }),
  };
  return durableChat(store, { model, tools }, { replay: { look: "safe" } });
}

/** The page: it loads the state, does what the state asks for, and starts again, until every prompt has its answer. */
export async function usePage(chat: DurableChat, acknowledged: (what: string) => void): Promise<UIMessage[]> {
  const base = "http://localhost/api/chat";
  const post = async (body: object, what: string): Promise<void> => {
    const headers = { "content-type": "application/json" };
    const given = JSON.stringify({ id: CHAT, ...body });
    const response = await chat.POST(new Request(base, { method: "POST", headers, body: given }));
    if (!response.ok) throw new Error(`${what}: ${response.status} ${await response.text()}`);
    acknowledged(what);
    await response.text();
  };
  for (;;) {
    // The session of the answer before may still be closing.
    await chat.idle();
    const path = `${base}/${encodeURIComponent(CHAT)}`;
    const { status, messages } = (await (await chat.GET(new Request(path))).json()) as ChatState;
    acknowledged(`ids ${JSON.stringify(messages.map(({ id }) => id))}`);
    const next = PROMPTS.find(({ id }) => !messages.some((message) => message.id === id));
    if (status === "interrupted") {
      await post({ trigger: "continue" }, "went on");
      await (await chat.GET(new Request(`${path}/stream`))).text();
    } else if (status === "waiting") {
      const message = answered(messages.at(-1)!);
      await post({ message }, message.parts.some(isOutput) ? "output" : "approved");
    } else if (next) await post({ message: next }, next.id);
    else return messages;
  }
}

function isOutput(part: UIMessage["parts"][number]): boolean {
  return part.type === "tool-where" && "state" in part && part.state === "output-available";
}

/** The message as `useChat` sends it when its user has answered everything. */
function answered(message: UIMessage): UIMessage {
  const parts = message.parts.map((part) => {
    if (part.type === "tool-send" && "state" in part && part.state === "approval-requested")
      return { ...part, state: "approval-responded", approval: { ...part.approval, approved: true } };
    if (part.type === "tool-where" && "state" in part && part.state === "input-available")
      return { ...part, state: "output-available", output: "here" };
    return part;
  });
  return { ...message, parts: parts as UIMessage["parts"] };
}

if (import.meta.main) {
  const orders = JSON.parse(process.argv[2]!) as Orders;
  const store = await openDeadly(orders);
  writeSync(1, "begun\n");
  await usePage(chatOn(store, orders), (what) => writeSync(1, `${what}\n`));
  await store.close();
  writeSync(1, "completed\n");
}

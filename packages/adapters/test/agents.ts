import { generateText, isStepCount, type ModelMessage, streamText, ToolLoopAgent, type ToolSet } from "ai";
import type { JournalRecord, Session } from "holdfast";
import { newId, openStore } from "holdfast";
import type { Durable } from "../src/ai-sdk/index.ts";
import type { Run } from "../src/ai-sdk/surface.ts";
import type { scripted } from "./scripted-model.ts";

export interface AgentSettings {
  readonly model: ReturnType<typeof scripted>;
  readonly tools?: ToolSet;
  readonly abortSignal?: AbortSignal;
  readonly [other: string]: unknown;
}

/** What all four ways to run have in common. */
export interface Started {
  readonly run: Run;
  /** What the SDK added to the conversation. Rejects if the run failed. */
  added(): Promise<ModelMessage[]>;
}

type Result = { readonly responseMessages: ModelMessage[] | PromiseLike<ModelMessage[]> };
type Way = (durable: Durable | null, settings: AgentSettings, messages?: ModelMessage[]) => Started;

function started(run: unknown): Started {
  return { run: run as Run, added: async () => [...(await ((await run) as Result).responseMessages)] };
}

const quiet = { onError: () => {}, stopWhen: isStepCount(8), maxRetries: 0 };

/** The four ways to run an agent with the SDK. Without a `Durable`, undisturbed: what the SDK does by itself. */
export const ways: Record<"streamText" | "generateText" | "agent.stream" | "agent.generate", Way> = {
  streamText: (durable, settings, messages) => {
    const all = { ...quiet, ...settings, ...(messages ? { messages } : {}) };
    return started(streamText((durable ? durable.wrap(all) : all) as never));
  },
  generateText: (durable, settings, messages) => {
    const all = { ...quiet, ...settings, ...(messages ? { messages } : {}) };
    return started(generateText((durable ? durable.wrap(all) : all) as never));
  },
  "agent.stream": (durable, { abortSignal, ...settings }, messages) => {
    const all = { ...quiet, ...settings };
    const agent = new ToolLoopAgent((durable ? durable.wrap(all) : all) as never);
    return started(agent.stream({ ...given(durable, messages), ...(abortSignal ? { abortSignal } : {}) }));
  },
  "agent.generate": (durable, { abortSignal, ...settings }, messages) => {
    const all = { ...quiet, ...settings };
    const agent = new ToolLoopAgent((durable ? durable.wrap(all) : all) as never);
    return started(agent.generate({ ...given(durable, messages), ...(abortSignal ? { abortSignal } : {}) }));
  },
};

function given(durable: Durable | null, messages: ModelMessage[] | undefined): { messages: ModelMessage[] } {
  return { messages: messages ?? durable?.messages() ?? [] };
}

export const everyWay = Object.entries(ways);
export const streamingWays = everyWay.filter(([name]) => name.includes("tream"));

export const PROMPT: ModelMessage = { role: "user", content: "Go." };

/** A session in memory, with its first turn open. */
export async function begun(): Promise<{ session: Session<ModelMessage> } & AsyncDisposable> {
  const store = await openStore("memory:", { recordsToolStarts: true });
  const session = await store.create<ModelMessage>({ dialect: "ai-sdk", draftMs: 1 });
  await session.startTurn(PROMPT);
  return { session, [Symbol.asyncDispose]: () => store.close() };
}

/** All records so far. */
export async function recordsOf<M>(session: Session<M>): Promise<JournalRecord[]> {
  await session.flush();
  const mark = newId();
  await session.note("mark", mark);
  const records: JournalRecord[] = [];
  for await (const record of session.follow()) {
    if (record.kind === "note" && record["value"] === mark) break;
    records.push(record);
  }
  return records;
}

/** The kinds of the records of a turn, with the call of those that have one. */
export function outline(records: readonly JournalRecord[]): string[] {
  return records
    .filter(({ kind }) => !["segment", "session", "opened", "usage", "draft", "note"].includes(kind))
    .map(({ kind, call, message }) => {
      if (kind === "message") return `message ${(message as { role: string }).role}`;
      return typeof call === "string" ? `${kind} ${call}` : kind;
    });
}

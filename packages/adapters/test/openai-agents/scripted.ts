import {
  type AgentInputItem,
  type AgentOutputItem,
  type Model,
  type ModelRequest,
  type ModelResponse,
  type StreamEvent,
  setTracingDisabled,
  Usage,
} from "@openai/agents";
import { openStore, type Session, type Store, type StoreOptions } from "holdfast";
import { openaiAgents } from "../../src/openai-agents/index.ts";

setTracingDisabled(true);

type Script = readonly (readonly AgentOutputItem[])[] | ((request: ModelRequest) => readonly AgentOutputItem[]);

/** Answers by the script, and keeps what it was asked with. */
export class ScriptedModel implements Model {
  readonly requests: ModelRequest[] = [];
  readonly #script: Script;
  readonly #afterDelta: () => Promise<unknown>;

  constructor(script: Script, afterDelta: () => Promise<unknown> = async () => {}) {
    this.#script = script;
    this.#afterDelta = afterDelta;
  }

  /** The input of each request. */
  get inputs(): AgentInputItem[][] {
    return this.requests.map(({ input }) => input as AgentInputItem[]);
  }

  #answer(request: ModelRequest): AgentOutputItem[] {
    const n =
      this.requests.push(JSON.parse(JSON.stringify({ ...request, signal: undefined, _internal: undefined }))) - 1;
    const output = typeof this.#script === "function" ? this.#script(request) : this.#script[n];
    if (!output) throw new Error("the script is over");
    return structuredClone(output) as AgentOutputItem[];
  }

  async getResponse(request: ModelRequest): Promise<ModelResponse> {
    const output = this.#answer(request);
    return { output, usage: new Usage({ requests: 1, inputTokens: 10, outputTokens: 3, totalTokens: 13 }) };
  }

  async *getStreamedResponse(request: ModelRequest): AsyncGenerator<StreamEvent> {
    const output = this.#answer(request);
    yield { type: "response_started" };
    for (const item of output) {
      if (item.type !== "message" || item.role !== "assistant") continue;
      for (const part of item.content)
        if (part.type === "output_text")
          for (const delta of part.text.match(/.{1,4}/gsu) ?? []) {
            yield { type: "output_text_delta", delta };
            await this.#afterDelta();
          }
    }
    const usage = { requests: 1, inputTokens: 10, outputTokens: 3, totalTokens: 13 };
    yield { type: "response_done", response: { id: `resp_${this.requests.length}`, usage, output } } as StreamEvent;
  }
}

export function text(said: string): AgentOutputItem {
  return { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: said }] };
}

export function call(callId: string, name: string, input: object = {}): AgentOutputItem {
  return { type: "function_call", callId, name, arguments: JSON.stringify(input), status: "completed" };
}

/** A session in memory. `next`: as the next process finds it. */
export interface Stage extends AsyncDisposable {
  readonly store: Store;
  readonly session: Session<AgentInputItem>;
  next(): Promise<Session<AgentInputItem>>;
}

export async function stage(options: StoreOptions = {}): Promise<Stage> {
  const store = await openStore("memory:", { recordsToolStarts: true, dialects: [openaiAgents], ...options });
  const session = await store.create<AgentInputItem>({ dialect: openaiAgents, draftMs: 1 });
  return {
    store,
    session,
    next: async () => {
      await session.close();
      return store.resume<AgentInputItem>(session.id, { dialect: openaiAgents });
    },
    [Symbol.asyncDispose]: () => store.close(),
  };
}

/** The texts of the results that a request holds, by call. */
export function resultsIn(input: readonly AgentInputItem[] | undefined): Record<string, string> {
  return Object.fromEntries(
    (input ?? []).flatMap((item) =>
      item.type === "function_call_result"
        ? [[item.callId, typeof item.output === "string" ? item.output : JSON.stringify(item.output)]]
        : [],
    ),
  );
}

import { type Model, type ModelProvider, type ModelRequest, type StreamEvent, Usage } from "@openai/agents";
import type { Delta, Draft } from "holdfast";
import { type RecordedRequest, whileAsking } from "../background-fetch.ts";
import type { RecordedItem } from "../dialects/openai-agents.ts";
import type { AgentRunLog } from "./run-log.ts";
import { withoutStorage } from "./storage.ts";

/** The log of the run that asks; null if nothing is recorded here: an agent runs inside a tool. */
export type Recording = () => AgentRunLog | null;

/** The same model, which records what it is asked for and what it answers. */
export function recordModel(model: Model, recording: Recording, name = nameOf(model)): Model {
  const getResponse: Model["getResponse"] = async (given) => {
    const runLog = recording();
    if (!runLog) return model.getResponse(given);
    const output = await runLog.replayed(given);
    if (output) return { usage: new Usage(), output };
    const request = withoutStorage(await runLog.prepareLate(given), model);
    await runLog.ask();
    const { asked } = runLog;
    const response = await whileAsking(asked, () => model.getResponse(request));
    return { ...response, output: await runLog.answered(asked.draft, { ...response, model: name }) };
  };
  async function* getStreamedResponse(given: ModelRequest): AsyncGenerator<StreamEvent> {
    const runLog = recording();
    if (!runLog) return yield* model.getStreamedResponse(given);
    const output = await runLog.replayed(given);
    if (output) {
      yield { type: "response_started" };
      yield { type: "response_done", response: { id: "recorded", usage: new Usage(), output } } as StreamEvent;
      return;
    }
    const request = withoutStorage(await runLog.prepareLate(given), model);
    await runLog.ask();
    const { asked } = runLog;
    const deltas = new Deltas();
    for await (const event of begunWhileAsking(asked, model.getStreamedResponse(request))) {
      if (event.type !== "response_done") {
        for (const delta of deltas.of(event)) asked.draft.push(delta);
        yield event;
        continue;
      }
      const { response } = event;
      const usage = new Usage(response.usage as ConstructorParameters<typeof Usage>[0]);
      const recorded = await runLog.answered(asked.draft, { output: response.output, usage, model: name });
      yield { ...event, response: { ...response, output: recorded } } as StreamEvent;
    }
  }
  return new Proxy(model, {
    get: (target, key) => {
      if (key === "getResponse") return getResponse;
      if (key === "getStreamedResponse") return getStreamedResponse;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

export function recordProvider(provider: ModelProvider, recording: Recording): ModelProvider {
  const made = new WeakMap<Model, Model>();
  return {
    getModel: async (name) => {
      const model = await provider.getModel(name);
      const known = made.get(model) ?? recordModel(model, recording, nameOf(model) ?? name);
      made.set(model, known);
      return known;
    },
  };
}

/** The SDK's own models keep their name here. Reasoning is sent only to the model that it came from. */
function nameOf(model: Model): string | undefined {
  const { _model } = model as { readonly _model?: unknown };
  return typeof _model === "string" && _model !== "" ? _model : undefined;
}

/** The events. The request is sent when the first of them is asked for. */
async function* begunWhileAsking(
  request: RecordedRequest,
  events: AsyncIterable<StreamEvent>,
): AsyncGenerator<StreamEvent> {
  const iterator = events[Symbol.asyncIterator]();
  let isOver = false;
  try {
    let next = await whileAsking(request, () => iterator.next());
    for (; !next.done; next = await iterator.next()) yield next.value;
    isOver = true;
  } catch (error) {
    isOver = true;
    throw error;
  } finally {
    if (!isOver) await iterator.return?.();
  }
}

/** The events of the Responses API that have no counterpart in the SDK. */
interface RawEvent {
  readonly type?: string;
  readonly item_id?: string;
  readonly delta?: string;
  readonly item?: { readonly type?: string; readonly id?: string; readonly call_id?: string; readonly name?: string };
}

/** What a draft is told of an answer as it streams. */
class Deltas {
  readonly #parts = new Map<string, number>();

  of(event: StreamEvent): Parameters<Draft<RecordedItem>["push"]>[0][] {
    if (event.type === "output_text_delta")
      return event.delta === "" ? [] : [{ part: this.#part(`text ${event.itemId ?? ""}`), text: event.delta }];
    return event.type === "model" ? this.#raw((event.event ?? {}) as RawEvent) : [];
  }

  #raw({ type, item_id = "", delta = "", item }: RawEvent): Delta[] {
    if (type === "response.output_item.added" && item?.type === "function_call") {
      const { id = "", call_id = "", name = "" } = item;
      return [{ part: this.#part(`input ${id}`), call: { id: call_id, name } }];
    }
    if (delta === "") return [];
    if (type === "response.function_call_arguments.delta")
      return [{ part: this.#part(`input ${item_id}`), input: delta }];
    if (type === "response.reasoning_summary_text.delta" || type === "response.reasoning_text.delta")
      return [{ part: this.#part(`reasoning ${item_id}`), reasoning: delta }];
    return [];
  }

  #part(key: string): number {
    const part = this.#parts.get(key) ?? this.#parts.size;
    this.#parts.set(key, part);
    return part;
  }
}

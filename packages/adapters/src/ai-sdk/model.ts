import { gateway, type LanguageModel, type LanguageModelMiddleware, wrapLanguageModel } from "ai";
import { type Delta, wellFormed } from "holdfast";
import { type RecordedRequest, whileAsking } from "../background-fetch.ts";
import { CallIds } from "./call-ids.ts";
import { inCallOrder } from "./call-order.ts";
import type { ModelParams } from "./content.ts";
import { joinSignals } from "./join-signals.ts";
import { withoutStorage } from "./openai.ts";
import type { ModelRequest, RunState } from "./run.ts";

type WrapStream = NonNullable<LanguageModelMiddleware["wrapStream"]>;
type StreamResult = Awaited<ReturnType<WrapStream>>;
type StreamPart = StreamResult["stream"] extends ReadableStream<infer P> ? P : never;
type Model = Exclude<LanguageModel, string>;

/** The originals of prompts that were changed before sending: the original is recorded. */
const originals = new WeakMap<ModelParams["prompt"], ModelParams["prompt"]>();

function restorePrompt<P extends ModelParams>(params: P): P {
  const prompt = originals.get(params.prompt);
  return prompt ? { ...params, prompt } : params;
}

/** The model, with a draft opened before each request, and each delta of the answer pushed to it. */
export function recordModel(given: LanguageModel, run: RunState): Model {
  return wrapLanguageModel({
    model: typeof given === "string" ? byName(given) : given,
    middleware: {
      specificationVersion: "v4",
      transformParams: async ({ params, model }) => {
        const abortSignal = joinSignals(run.stopped, run.live().signal, params.abortSignal);
        const given = inCallOrder(params.prompt);
        // Every provider rejects half a character, which a tool that truncates its output can leave.
        const prompt = wellFormed(given);
        if (prompt !== given) originals.set(prompt, given);
        return withoutStorage({ ...params, prompt, abortSignal }, model);
      },
      wrapGenerate: async ({ doGenerate, params, model }) => {
        const asked = await run.ask("generate", restorePrompt(params), model);
        try {
          const result = await whileAsking(requestOf(asked, run), doGenerate);
          const ids = new CallIds();
          return { ...result, content: result.content.map((part) => ids.of(part)) };
        } catch (error) {
          asked.error = error;
          throw error;
        }
      },
      wrapStream: async ({ doStream, params, model }) => {
        const asked = await run.ask("stream", restorePrompt(params), model);
        try {
          const result = await whileAsking(requestOf(asked, run), doStream);
          const deltas = new Deltas();
          const ids = new CallIds();
          const watched = new TransformStream<StreamPart, StreamPart>({
            transform(given, controller) {
              const part = ids.of(given);
              if (part.type === "error") asked.error ??= part.error ?? new Error("The model failed without a message.");
              const delta = deltas.of(part);
              if (delta) asked.draft.push(delta);
              controller.enqueue(part);
            },
          });
          return { ...result, stream: result.stream.pipeThrough(watched) };
        } catch (error) {
          asked.error = error;
          throw error;
        }
      },
    },
  });
}

/** The request, for `backgroundFetch`. */
function requestOf(asked: ModelRequest, run: RunState): RecordedRequest {
  return {
    get handle() {
      return asked.handle;
    },
    accepted: (handle) => run.accepted(asked, handle),
    forget: () => {
      asked.draft = asked.draft.restart();
      asked.handle = null;
    },
  };
}

/** Resolve a model name as the SDK does. */
function byName(name: string): Model {
  const provider = (globalThis as { AI_SDK_DEFAULT_PROVIDER?: { languageModel(id: string): Model } })
    .AI_SDK_DEFAULT_PROVIDER;
  return (provider ?? gateway).languageModel(name);
}

/** The message part that each delta belongs to: parallel tool inputs interleave. */
class Deltas {
  readonly #parts = new Map<string, number>();
  #count = 0;

  of(part: StreamPart): Delta | null {
    switch (part.type) {
      case "text-delta":
        return part.delta === "" ? null : { part: this.#part(`text ${part.id}`), text: part.delta };
      case "reasoning-delta":
        return part.delta === "" ? null : { part: this.#part(`reasoning ${part.id}`), reasoning: part.delta };
      case "tool-input-start":
        return { part: this.#part(`input ${part.id}`), call: { id: part.id, name: part.toolName } };
      case "tool-input-delta":
        return part.delta === "" ? null : { part: this.#part(`input ${part.id}`), input: part.delta };
      // Text ids can repeat within one answer.
      case "text-end":
        this.#parts.delete(`text ${part.id}`);
        return null;
      case "reasoning-end":
        this.#parts.delete(`reasoning ${part.id}`);
        return null;
      default:
        return null;
    }
  }

  #part(key: string): number {
    const part = this.#parts.get(key) ?? this.#count++;
    this.#parts.set(key, part);
    return part;
  }
}

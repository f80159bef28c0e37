import { setImmediate, setTimeout } from "node:timers/promises";
import type { LanguageModelV4FinishReason, LanguageModelV4StreamPart, LanguageModelV4Usage } from "@ai-sdk/provider";
import { brokenConnection } from "./failures.ts";
import type { Reply } from "./reply.ts";

export interface StreamOptions {
  readonly usage: LanguageModelV4Usage;
  readonly finishReason: LanguageModelV4FinishReason;
  readonly delayMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Without a delay, yields to the event loop after this many parts, so that screens and signals need not wait. */
const PARTS_PER_TURN = 64;

/** Streams the reply like a provider. If aborted, ends with an error, like a broken fetch. */
export function streamOf(reply: Reply, options: StreamOptions): ReadableStream<LanguageModelV4StreamPart> {
  const { delayMs, signal } = options;
  const parts = partsOf(reply, options);
  const ended = new AbortController();
  const either = signal ? AbortSignal.any([signal, ended.signal]) : ended.signal;
  let count = 0;
  return new ReadableStream<LanguageModelV4StreamPart>({
    async pull(controller) {
      try {
        if (delayMs > 0) await setTimeout(delayMs, undefined, { signal: either });
        else if (++count % PARTS_PER_TURN === 0) await setImmediate();
        signal?.throwIfAborted();
        const next = parts.next();
        if (next.done) controller.close();
        else if (next.value === "hang") await setTimeout(2 ** 31 - 1, undefined, { signal: either });
        else controller.enqueue(next.value);
      } catch (error) {
        // The reason of the abort says more than the timer's own error.
        controller.error(signal?.aborted ? signal.reason : error);
      }
    },
    cancel: () => ended.abort(),
  });
}

function* partsOf(reply: Reply, { usage, finishReason }: StreamOptions): Generator<LanguageModelV4StreamPart | "hang"> {
  yield { type: "stream-start", warnings: [] };
  yield { type: "response-metadata", modelId: "offline" };
  if (reply.failure) yield* failing(reply);
  else {
    if (reply.reasoning !== "") yield* block("reasoning", "reasoning-1", words(reply.reasoning));
    if (reply.text !== "") yield* block("text", "text-1", words(reply.text));
    yield* calling(reply);
  }
  yield { type: "finish", usage, finishReason };
}

function* failing({ text, failure }: Reply): Generator<LanguageModelV4StreamPart | "hang"> {
  const said = words(text).slice(0, failure!.words);
  if (said.length > 0) {
    yield { type: "text-start", id: "text-1" };
    for (const delta of said) yield { type: "text-delta", id: "text-1", delta };
  }
  switch (failure!.kind) {
    case "hang":
      yield "hang";
      return;
    case "cut":
      throw brokenConnection("UND_ERR_SOCKET");
    case "malformed":
      // Provider packages pass on what they could not parse, and continue.
      yield { type: "error", error: new SyntaxError("Unexpected token in the stream (this failure was asked for)") };
      return;
    case "error":
      yield { type: "error", error: { type: "overloaded_error", message: "overloaded (this failure was asked for)" } };
      return;
    default:
      if (said.length > 0) yield { type: "text-end", id: "text-1" };
  }
}

function* block(
  kind: "text" | "reasoning",
  id: string,
  deltas: readonly string[],
): Generator<LanguageModelV4StreamPart> {
  yield { type: `${kind}-start`, id };
  for (const delta of deltas) yield { type: `${kind}-delta`, id, delta };
  yield { type: `${kind}-end`, id };
}

/** The inputs of parallel calls arrive interleaved. */
function* calling({ calls }: Reply): Generator<LanguageModelV4StreamPart> {
  const inputs = calls.map(({ input }) => pieces(JSON.stringify(input)));
  for (const { id, name } of calls) yield { type: "tool-input-start", id, toolName: name };
  for (let round = 0; inputs.some((input) => round < input.length); round++) {
    for (const [index, { id }] of calls.entries()) {
      const delta = inputs[index]![round];
      if (delta !== undefined) yield { type: "tool-input-delta", id, delta };
    }
  }
  for (const [index, { id, name }] of calls.entries()) {
    yield { type: "tool-input-end", id };
    yield { type: "tool-call", toolCallId: id, toolName: name, input: inputs[index]!.join("") };
  }
}

/** Words, each with the white space before it. */
function words(text: string): string[] {
  return text.match(/\s*\S+|\s+$/g) ?? [];
}

const PIECE_CHARACTERS = 24;

/** The most pieces for one input; larger inputs get longer pieces, so that megabytes do not take forever. */
const PIECES_MAX = 400;

/** Never splits a character. */
function pieces(text: string): string[] {
  const characters = Math.max(PIECE_CHARACTERS, Math.ceil(text.length / PIECES_MAX));
  const out: string[] = [];
  let piece = "";
  for (const character of text) {
    piece += character;
    if (piece.length < characters) continue;
    out.push(piece);
    piece = "";
  }
  if (piece !== "") out.push(piece);
  return out;
}

import { type DialectName, dialects, type Entry, type Reading } from "holdfast";
import { acpWriter } from "./acp.ts";
import { aiSdkWriter } from "./ai-sdk.ts";
import { anthropicWriter } from "./anthropic.ts";
import { geminiWriter } from "./gemini.ts";
import { openaiChatWriter } from "./openai-chat.ts";
import { openaiResponsesWriter } from "./openai-responses.ts";
import { type Step, stepsOf } from "./steps.ts";
import { callsIn, type Writer } from "./writer.ts";

const WRITERS: Readonly<Record<DialectName, Writer>> = {
  "ai-sdk": aiSdkWriter,
  anthropic: anthropicWriter,
  "openai-chat": openaiChatWriter,
  "openai-responses": openaiResponsesWriter,
  gemini: geminiWriter,
  acp: acpWriter,
};

/**
 * The conversation as the model would see it, in another dialect. The provider accepts it, every call has its result,
 * and ids are kept unless they repeat. In the session's own dialect, the messages themselves.
 */
export function toDialect(
  reading: Pick<Reading<unknown>, "messages" | "attributes">,
  name: DialectName,
): readonly unknown[] {
  const { dialect } = reading.attributes;
  if (dialect === name) return reading.messages;
  const steps = stepsOf(reading.messages, dialect);
  // A client that loads a session expects a prompt first. The other dialects ensure that themselves.
  if (name === "acp" && steps[0]?.kind === "model") {
    steps.unshift({ kind: "user", parts: [{ type: "text", text: "(The conversation starts here.)" }] });
  }
  const next = steps.at(-1)?.kind === "model" && !callsIn(lastParts(steps)).length ? "prompt" : "model";
  const writer = WRITERS[name];
  const entries = steps.flatMap((step, index) => writeStep(step, writer).map((message) => ({ message, step: index })));
  // The target is another model, so the provider's own marks are not required.
  return dialects[name].arrange(
    entries.map(({ message, step }, index) => entryOf(message, index, step)),
    { changedAt: null, model: "here", next },
  );
}

/** Messages as an application would record them. */
export interface Recorded {
  readonly messages: readonly unknown[];
  /** Where somebody spoke while calls had no result: the turn before that was interrupted. */
  readonly interruptions: readonly number[];
}

/**
 * The same as the application itself would record it, in pieces: calls without a result stay open, and each part is a
 * message of its own, reasoning with what follows from it. When the conversation grows, messages are only added.
 */
export function recordedIn(messages: readonly unknown[], dialect: string, name: DialectName): Recorded {
  const writer = WRITERS[name];
  const recorded: unknown[] = [];
  const interruptions: number[] = [];
  let isOpen = false;
  for (const step of stepsOf(messages, dialect, { keepsParts: true })) {
    if (step.kind !== "model") {
      if (isOpen) interruptions.push(recorded.length);
      isOpen = false;
      recorded.push(...step.parts.flatMap((part) => writer.user([part])));
      continue;
    }
    const results = callsIn(step.parts).filter((call) => !call.isOpen);
    isOpen ||= results.length < callsIn(step.parts).length;
    recorded.push(...piecesOf(step.parts).flatMap((piece) => writer.model(piece)));
    recorded.push(...results.flatMap((call) => writer.results([call])));
  }
  return { messages: recorded, interruptions };
}

type Parts = Extract<Step, { kind: "model" }>["parts"];

/** Reasoning without what follows from it is not sent to any model. */
function piecesOf(parts: Parts): Parts[] {
  const ends = parts.flatMap(({ type }, at) => (type !== "reasoning" || at === parts.length - 1 ? [at + 1] : []));
  return ends.map((end, index) => parts.slice(ends[index - 1] ?? 0, end));
}

function lastParts(steps: readonly Step[]): Parts {
  const last = steps.at(-1);
  return last?.kind === "model" ? last.parts : [];
}

function writeStep(step: Step, writer: Writer): unknown[] {
  if (step.kind === "user") return writer.user(step.parts);
  if (step.kind === "system") {
    const text = step.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
    if (text === "") return [];
    return writer.system?.(text) ?? writer.user([{ type: "text", text: `[System message: ${text}]` }]);
  }
  const calls = callsIn(step.parts);
  return [...writer.model(step.parts), ...(calls.length > 0 ? writer.results(calls) : [])];
}

/** A message arranged outside its session. */
export function entryOf(message: unknown, index: number, step = index): Entry<unknown> {
  const at = "1970-01-01T00:00:00.000Z";
  return { id: `${index}`, seq: index + 1, at, turn: 1, step: `${step}`, message, metadata: {}, model: "elsewhere" };
}

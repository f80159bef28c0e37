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
 * The conversation as the model would be shown it, in another dialect: accepted by its provider, each call with its
 * result, ids kept unless they repeat. In its own dialect, the very
 * messages.
 */
export function toDialect(
  reading: Pick<Reading<unknown>, "messages" | "attributes">,
  name: DialectName,
): readonly unknown[] {
  const { dialect } = reading.attributes;
  if (dialect === name) return reading.messages;
  const steps = stepsOf(reading.messages, dialect);
  // A client that loads a session expects a prompt first; the other dialects see to that themselves.
  if (name === "acp" && steps[0]?.kind === "model") {
    steps.unshift({ kind: "user", parts: [{ type: "text", text: "(The conversation starts here.)" }] });
  }
  const next = steps.at(-1)?.kind === "model" && !callsIn(lastParts(steps)).length ? "prompt" : "model";
  const writer = WRITERS[name];
  const entries = steps.flatMap((step, index) => written(step, writer).map((message) => ({ message, step: index })));
  // Made by another model than the one that it is for: so that marks of a provider that are not there are not expected.
  return dialects[name].arrange(
    entries.map(({ message, step }, index) => entryOf(message, index, step)),
    { changedAt: null, model: "here", next },
  );
}

function lastParts(steps: readonly Step[]): Extract<Step, { kind: "model" }>["parts"] {
  const last = steps.at(-1);
  return last?.kind === "model" ? last.parts : [];
}

function written(step: Step, writer: Writer): unknown[] {
  if (step.kind === "user") return writer.user(step.parts);
  if (step.kind === "system") {
    const text = step.parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
    if (text === "") return [];
    return writer.system?.(text) ?? writer.user([{ type: "text", text: `[System message: ${text}]` }]);
  }
  const calls = callsIn(step.parts);
  return [...writer.model(step.parts), ...(calls.length > 0 ? writer.results(calls) : [])];
}

/** A message that is arranged outside of its session. */
export function entryOf(message: unknown, index: number, step = index): Entry<unknown> {
  const at = "1970-01-01T00:00:00.000Z";
  return { id: `${index}`, seq: index + 1, at, turn: 1, step: `${step}`, message, metadata: {}, model: "elsewhere" };
}

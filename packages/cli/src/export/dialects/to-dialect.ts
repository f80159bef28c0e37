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

function lastParts(steps: readonly Step[]): Extract<Step, { kind: "model" }>["parts"] {
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

import type { Entry, Interruption, OpenCall, Reading, Turn } from "holdfast";
import { defined } from "holdfast/internal";
import type { RecordedMessages, RecordingState } from "../schemas/recordings.ts";

/** Where the recording of a session stands, as plain JSON. Pure. */
export function recordingOf<R extends string | null>(
  reading: Reading<unknown> & { readonly turn?: Turn<unknown> | null },
  recorder: R,
  idleMs: number,
): RecordingState & { recorder: R } {
  const { id, attributes, interruption, queue, appState, usage, turn = null } = reading;
  return {
    session: id,
    recorder,
    dialect: attributes.dialect,
    next: turn ? "continue" : interruption === null ? "start" : interruption.answered ? "end" : "resume",
    turn: turn && { number: turn.number, calls: turn.open.map(callOf) },
    interruption: interruption && interruptionOf(interruption),
    queue: queue.map(({ id: queued, prompt }) => ({ id: queued, prompt: jsonOf(prompt) })),
    appState: { ...appState },
    usage: jsonOf(usage) as RecordingState["usage"],
    idleSeconds: Math.round(idleMs / 1000),
  };
}

function interruptionOf(found: Interruption<unknown>): NonNullable<RecordingState["interruption"]> {
  const { turn, startedAt, lastAt, resumes, prompt, answered, how, draft, calls } = found;
  return {
    ...{ turn, startedAt, lastAt, resumes, answered, how },
    prompt: { id: prompt.id, message: jsonOf(prompt.message) },
    draft: draft && { text: draft.text, reasoning: draft.reasoning, calls: [...draft.calls] },
    calls: calls.map(callOf),
  };
}

function callOf(call: OpenCall): OpenCallShown {
  const { id, message, name, input, state, startedAt, replay, probe, child, key, steps } = call;
  const shown = {
    id,
    message,
    name,
    input: jsonOf(input),
    state,
    ...defined({ startedAt, replay, probe, child, key }),
  };
  return steps ? { ...shown, steps: [...steps] } : shown;
}
type OpenCallShown = NonNullable<RecordingState["turn"]>["calls"][number];

/** A message of the conversation, with everything that is known about it. */
export function messageOf(entry: Entry<unknown>): RecordedMessages["messages"][number] {
  const { id, turn, step, at, message, metadata, model, synthetic, incomplete, late, replacedBy } = entry;
  return {
    ...{ id, turn, step, at, message: jsonOf(message) },
    ...(Object.keys(metadata).length === 0 ? {} : { metadata: jsonOf(metadata) as Record<string, unknown> }),
    ...defined({ model, synthetic, incomplete, late, replacedBy }),
  };
}

/** Bytes as base64 and URLs as text, which the SDKs accept too. */
export function jsonOf(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof URL) return value.href;
  if (value instanceof ArrayBuffer) return Buffer.from(value).toString("base64");
  if (ArrayBuffer.isView(value))
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
  if (Array.isArray(value)) return value.map(jsonOf);
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, jsonOf(member)]));
}

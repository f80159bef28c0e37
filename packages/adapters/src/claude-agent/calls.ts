import { type Json, newId } from "holdfast";
import type { NewRecord } from "holdfast/store";
import { callRecords, openTurn, startTurn } from "./entries.ts";
import type { StartedCall, TranscriptState } from "./state.ts";
import type { HookInput, InterruptedCall } from "./surface.ts";

/** What hooks report, as records. Each function adds its records to the state. */

/** What the model is told about an interruption. */
export interface InterruptionNote {
  readonly words: string;
  readonly calls: readonly string[];
}

/** The prompt, and what the model is told with it, before it is asked. */
export function promptRecords(state: TranscriptState, input: HookInput, telling: InterruptionNote | null): NewRecord[] {
  const { prompt, prompt_id: id } = input;
  return recording(state, (add) => {
    if (state.cwd === undefined) add({ kind: "session", cwd: input.cwd });
    // The transcript may be faster than the hook.
    if (typeof prompt === "string" && prompt !== "" && id !== undefined && state.prompt(id) === null)
      startTurn(state, { role: "user", content: prompt }, { prompt: id }, add);
    if (!telling || state.turn.turns === 0) return;
    const turn = openTurn(state, add);
    const step = newId();
    add({ kind: "message", id: step, turn, step, message: { role: "user", content: telling.words } });
    add({ kind: "claude.told", calls: [...telling.calls] });
  });
}

/** A call, before it runs. */
export function startRecords(state: TranscriptState, input: HookInput): NewRecord[] {
  const call = String(input.tool_use_id);
  if (state.started(call) || state.isAnswered(call)) return [];
  return recording(state, (add) => {
    const turn = openTurn(state, add);
    const started = { id: call, turn, name: String(input.tool_name), input: copyOf(input.tool_input), ended: null };
    for (const record of callRecords(started, state.placeOf(call))) add(record);
  });
}

/** Its outcome, before the model sees it. */
export function endRecords(state: TranscriptState, input: HookInput): NewRecord[] {
  const call = String(input.tool_use_id);
  const started = state.started(call);
  if (state.isAnswered(call) || started?.ended) return [];
  return recording(state, (add) => {
    const turn = started?.turn ?? openTurn(state, add);
    const place = state.placeOf(call) ?? { message: null };
    const { error, duration_ms: ms } = input;
    const isFailure = input.hook_event_name === "PostToolUseFailure";
    const outcome = isFailure ? { error: String(error) } : { value: copyOf(input.tool_response) };
    const took = typeof ms === "number" ? { ms } : {};
    add({ kind: "tool.ended", id: newId(), turn, call, ...place, name: String(input.tool_name), ...outcome, ...took });
  });
}

export function interruptedCall({ id, name, input, ended }: StartedCall, subpath?: string): InterruptedCall {
  const where = subpath === undefined ? {} : { subpath };
  if (!ended) return { id, name, input, state: "outcome-unknown", ...where };
  return { id, name, input, state: "ended", outcome: ended, ...where };
}

function recording(state: TranscriptState, make: (add: (record: NewRecord) => void) => void): NewRecord[] {
  const records: NewRecord[] = [];
  make((record) => {
    state.add(record);
    records.push(record);
  });
  return records;
}

/** Null if it is not JSON: that it started matters more. */
function copyOf(value: unknown): Json {
  try {
    return JSON.parse(JSON.stringify(value) ?? "null") as Json;
  } catch {
    return null;
  }
}

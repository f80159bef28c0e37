import { type Params, type RequestId, stringOf } from "../record/message.ts";

/** What a line opens or ends in the editor, so that what is open can be ended if the supervisor dies. */
export interface ShownChange {
  readonly session: string | null;
  /** Calls that are shown as running or waiting. */
  readonly open: readonly string[];
  /** Calls that are shown as ended. */
  readonly ended: readonly string[];
  /** The id of a question that waits for the person. */
  readonly request?: RequestId;
}

/** A longer id is not followed: what is followed must stay small. */
const ID_CHARS_MAX = 1000;

/** Null if they say nothing of calls. */
export function changeBy(session: string, updates: readonly Params[]): ShownChange | null {
  let isOpen: Map<string, boolean> | null = null;
  for (const update of updates) {
    const kind = update["sessionUpdate"];
    if (kind !== "tool_call" && kind !== "tool_call_update") continue;
    const call = stringOf(update["toolCallId"]);
    if (call === null || call.length > ID_CHARS_MAX) continue;
    isOpen ??= new Map();
    isOpen.set(call, update["status"] !== "completed" && update["status"] !== "failed");
  }
  if (isOpen === null || session.length > ID_CHARS_MAX) return null;
  const calls = [...isOpen];
  return {
    session,
    open: calls.flatMap(([call, open]) => (open ? [call] : [])),
    ended: calls.flatMap(([call, open]) => (open ? [] : [call])),
  };
}

/** `call`: what the person is asked about. */
export function changeByRequest(request: RequestId, session: string | null, call: string | null): ShownChange | null {
  const ids = [request, session, call];
  if (ids.some((id) => typeof id === "string" && id.length > ID_CHARS_MAX)) return null;
  return { session, open: call === null ? [] : [call], ended: [], request };
}

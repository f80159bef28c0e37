import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { type AcpMessage, type CallState, dialects, type Entry, type Interruption } from "holdfast";
import { mergeChunks } from "../record/merge-chunks.ts";
import { objectOf, type Params, stringOf } from "../record/message.ts";

/** What the agent was doing when it was cut off. */
export interface InterruptedTurn {
  /** The content blocks of the prompt that it was working on. It is never sent again by itself. */
  readonly prompt: readonly unknown[];
  readonly startedAt: string;
  /** When the last thing about it was recorded. */
  readonly lastAt: string;
  readonly how: Interruption<AcpMessage>["how"];
  /** The calls that have not ended, in the order in which they were made. */
  readonly calls: readonly InterruptedCall[];
}

export interface InterruptedCall {
  readonly toolCallId: string;
  readonly title: string;
  readonly rawInput?: unknown;
  /** `awaiting`: permission was not given, so it did not run. `outcome-unknown`: it may have taken effect. */
  readonly state: CallState;
  /** The parameters of the last request for permission, without the session's id. Ask again before you run the call. */
  readonly permission?: { readonly toolCall: unknown; readonly options: readonly unknown[] };
}

/** Kinds of which only the last one says something. */
const REPLACED = new Set<unknown>([
  ...["plan", "usage_update", "session_info_update"],
  ...["current_mode_update", "config_option_update", "available_commands_update"],
]);

interface HistorySource {
  readonly entries: readonly Entry<AcpMessage>[];
  /** A call without an end is still running: it is not shown as failed. */
  readonly isRunning: boolean;
  /** The calls for which permission was requested and not given. */
  readonly unapproved: ReadonlySet<string>;
}

/** What `session/load` replays. */
export function historyOf({ entries, isRunning, unapproved }: HistorySource): readonly SessionUpdate[] {
  // What the journal adds after a crash is for models. People see the call itself as failed.
  const said = entries.filter(({ synthetic }) => synthetic === undefined);
  const updates = dialects.acp.arrange(said, { changedAt: null, next: "prompt" }) as readonly Params[];
  const open = isRunning ? new Set<unknown>() : openIn(updates);
  const last = new Map<unknown, Params>();
  for (const update of updates) last.set(update["sessionUpdate"], update);
  const shown = updates.filter(
    (update) => !REPLACED.has(update["sessionUpdate"]) || last.get(update["sessionUpdate"]) === update,
  );
  const closed = shown.map((update) => {
    const id = stringOf(update["toolCallId"]) ?? "";
    return update["sessionUpdate"] === "tool_call" && open.has(id) ? failed(update, unapproved.has(id)) : update;
  });
  return mergeChunks(closed) as unknown as SessionUpdate[];
}

function openIn(updates: readonly Params[]): ReadonlySet<unknown> {
  const open = new Set<unknown>();
  for (const { toolCallId, status } of updates) {
    if (toolCallId === undefined) continue;
    if (status === "completed" || status === "failed") open.delete(toolCallId);
    else open.add(toolCallId);
  }
  return open;
}

function failed(call: Params, isUnapproved: boolean): Params {
  const text = isUnapproved
    ? "Interrupted while it waited for permission. It did not run."
    : "Interrupted, outcome unknown. It may have taken effect.";
  const content = Array.isArray(call["content"]) ? (call["content"] as readonly unknown[]) : [];
  return { ...call, status: "failed", content: [...content, { type: "content", content: { type: "text", text } }] };
}

/** What was in flight; null if the last turn ended. */
export function interruptedTurn(
  found: Interruption<AcpMessage> | null,
  { entries, unapproved }: HistorySource,
): InterruptedTurn | null {
  if (!found) return null;
  const { prompt, startedAt, lastAt, how, turn } = found;
  // The user stopped it: that is how it ended. Text alone is no end, since the agent never answered the prompt.
  if (how.kind === "aborted" && how.by === "user") return null;
  const calls = new Map<string, InterruptedCall>();
  const ofTurn = entries.filter((entry) => entry.turn === turn && entry.synthetic === undefined);
  for (const { message } of ofTurn) {
    const call = callIn(message as Params, calls, unapproved);
    if (call === null) continue;
    if (call.isEnd) calls.delete(call.toolCallId);
    else calls.set(call.toolCallId, call.call);
  }
  const blocks = objectOf(prompt.message)?.["prompt"];
  return { prompt: Array.isArray(blocks) ? blocks : [], startedAt, lastAt, how, calls: [...calls.values()] };
}

function callIn(
  message: Params,
  known: ReadonlyMap<string, InterruptedCall>,
  unapproved: ReadonlySet<string>,
): { readonly toolCallId: string; readonly isEnd: boolean; readonly call: InterruptedCall } | null {
  const { toolCall, options } = message;
  const said = objectOf(toolCall) ?? message;
  const toolCallId = stringOf(said["toolCallId"]);
  if (toolCallId === null) return null;
  const before = known.get(toolCallId);
  const rawInput = said["rawInput"] ?? before?.rawInput;
  const permission = objectOf(toolCall)
    ? { toolCall, options: Array.isArray(options) ? options : [] }
    : before?.permission;
  const call: InterruptedCall = {
    toolCallId,
    title: stringOf(said["title"]) ?? before?.title ?? toolCallId,
    ...(rawInput === undefined ? {} : { rawInput }),
    state: unapproved.has(toolCallId) ? "awaiting" : "outcome-unknown",
    ...(permission === undefined ? {} : { permission }),
  };
  return { toolCallId, isEnd: said["status"] === "completed" || said["status"] === "failed", call };
}

import { type AcpMessage, dialects, type Entry } from "holdfast";
import { type Params, stringOf } from "./message.ts";

/** Kinds of which only the last one says something. */
const REPLACED = new Set<unknown>([
  ...["plan", "usage_update", "session_info_update"],
  ...["current_mode_update", "config_option_update", "available_commands_update"],
]);

/**
 * The conversation as updates: what a client is shown when it loads the session. `words`: how far a call got that has
 * not ended, and is shown as failed; null while the turn goes on, and its calls with it.
 */
export function historyOf(
  entries: readonly Entry<AcpMessage>[],
  words: ((call: string) => string) | null,
): readonly Params[] {
  // What the journal adds after a crash is for models. People see the call itself as failed.
  const said = entries.filter(({ synthetic }) => synthetic === undefined);
  const updates = dialects.acp.arrange(said, { changedAt: null, next: "prompt" }) as readonly Params[];
  const open = words === null ? new Set<unknown>() : openIn(updates);
  const last = new Map<unknown, Params>();
  for (const update of updates) last.set(update["sessionUpdate"], update);
  const shown = updates.filter(
    (update) => !REPLACED.has(update["sessionUpdate"]) || last.get(update["sessionUpdate"]) === update,
  );
  return shown.map((update) => {
    const id = stringOf(update["toolCallId"]) ?? "";
    return words && update["sessionUpdate"] === "tool_call" && open.has(id) ? failed(update, words(id)) : update;
  });
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

function failed(call: Params, words: string): Params {
  const content = Array.isArray(call["content"]) ? (call["content"] as readonly unknown[]) : [];
  const text = `Interrupted. ${sentence(words)}`;
  return { ...call, status: "failed", content: [...content, { type: "content", content: { type: "text", text } }] };
}

export function sentence(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}

import type { AgentInputItem, Session as HistorySession } from "@openai/agents";
import type { Session } from "holdfast";
import type { RecordedItem } from "../dialects/openai-agents.ts";
import { isResult, sentCopy } from "./items.ts";

/**
 * A `Session` of the SDK over a Holdfast session, for `run(agent, input, { session })`: history only. The SDK passes
 * items on when a run has ended (a streamed run's input when it begins), so what happens in between is not recorded:
 * use `durable` for that. The two are not used together; `durable` refuses a `session`.
 */
export function historySession(session: Session<AgentInputItem>): HistorySession {
  const items = (): AgentInputItem[] => session.messages.map((item) => sentCopy(item as RecordedItem));
  return {
    getSessionId: async () => session.id,
    getItems: async (limit) => (limit === undefined ? items() : limit <= 0 ? [] : items().slice(-limit)),
    addItems: async (added) => {
      if (added.length > 0) await session.sync([...recordedItems(session), ...structuredClone(added)]);
    },
    popItem: async () => {
      const last = items().at(-1);
      if (last) await session.replace(session.messages.slice(0, -1), { reason: "rewind" });
      return last;
    },
    clearSession: () => session.replace([], { reason: "clear" }),
  };
}

/** Without the words that stand for a result that is still missing: the added items may hold it. */
function recordedItems({ messages, turn, interruption }: Session<AgentInputItem>): AgentInputItem[] {
  const open = new Set([...(turn?.open ?? []), ...(interruption?.calls ?? [])].map(({ id }) => id));
  return messages.filter((item) => !isResult(item) || !open.has(item.callId));
}

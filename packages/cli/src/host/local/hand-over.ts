import type { ModelMessage } from "ai";
import type { Session, Turn } from "holdfast";
import type { TurnResult } from "../../agent/loop.ts";
import type { AgentRuntime } from "../../agent/runtime.ts";
import type { SessionTrust } from "../../trust/trust.ts";
import { describeInterruption } from "./chat-state.ts";
import type { ChatStateStore } from "./chat-state-store.ts";

/** How long tools that are ended may take: longer than it takes to kill a command that ignores SIGTERM. */
const HALTING_MS = 6000;

/**
 * Closes the session, so that the next process continues its turn. What is under way has `withinMs` to end; then the
 * answer is cut off, tools are ended, and the turn is handed over all the same. `hurry` aborts it instead.
 */
export async function handOverSession(
  session: Session<ModelMessage>,
  agent: AgentRuntime,
  {
    withinMs,
    hurry,
    trust,
  }: { readonly withinMs: number; readonly hurry: AbortSignal | undefined; readonly trust: SessionTrust },
): Promise<void> {
  const { turn } = session;
  // If the process is killed meanwhile, the next one continues the turn as well.
  if (turn) trust.setHandedOver(turn.number);
  agent.handOverMs = withinMs + HALTING_MS;
  const late = setTimeout(() => agent.halt(), withinMs);
  const stop = (): void => {
    trust.setHandedOver(null);
    // Closing the session reports what cannot be recorded.
    session.turn?.abort({ by: "server" }).catch(() => {});
  };
  hurry?.addEventListener("abort", stop, { once: true });
  try {
    const closed = session.close({ handOver: true, withinMs: agent.handOverMs });
    if (hurry?.aborted) stop();
    await closed;
  } finally {
    clearTimeout(late);
    hurry?.removeEventListener("abort", stop);
  }
}

/** There was no more time: its tools and its answer were ended, and the turn is handed over all the same. */
export function isCutShort({ kind }: TurnResult, { handOver, signal }: Turn<ModelMessage>): boolean {
  return kind === "aborted" && handOver.aborted && !signal.aborted;
}

/** The loop is at its end, and the next process continues the turn. */
export async function leaveTurn(
  session: Session<ModelMessage>,
  turn: Turn<ModelMessage>,
  states: ChatStateStore,
): Promise<void> {
  // The hand-over need not wait for anything else. A failure of the store is reported by closing the session.
  await turn.fail(turn.handOver.reason).catch(() => {});
  const { interruption } = session;
  states.refresh();
  const shown = interruption && describeInterruption(interruption, states.state.account);
  states.update({ status: shown ? "interrupted" : "idle", interruption: shown }, { type: "changed" });
}

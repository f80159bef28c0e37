import { shapeOf } from "../../dialects/shape.ts";
import type { DueQuery, JournalStore, Listed } from "../../journal/contract.ts";
import { attemptsIn, labelsIn, lastTurnIn, wakeAtIn } from "../../listing/row.ts";
import type { LastTurn } from "../../session-state.ts";

/** A session that was written this far in the future was written by a clock that is wrong. */
const AHEAD_MS = 60_000;

/** Whether a worker continues a turn that stands so. What waits for a person, or is parked, is not its to continue. */
export function isWanted(last: LastTurn, alsoEnded: boolean): boolean {
  if (last === "cut" || last === "open" || last === "paused") return true;
  return alsoEnded && (last === "stopped" || last === "failed" || last === "crashed");
}

/** The pause after so many tries without progress. */
export function backoff(attempts: number, { backoffMs, backoffMaxMs }: DueQuery): number {
  return attempts === 0 ? 0 : Math.min(backoffMaxMs, backoffMs * 2 ** (attempts - 1));
}

/** From when on a worker may try the session, in milliseconds since 1970; null: not as it stands. */
export function dueAt({ id, at, summary, unreadable }: Listed, query: DueQuery): number | null {
  const shape = shapeOf(summary) ?? {};
  const last = lastTurnIn(shape);
  if (unreadable || query.skip.includes(id) || !isWanted(last, query.ended) || !hasLabels(shape, query)) return null;
  const { nowMs, olderThanMs, youngerThanMs } = query;
  const written = Date.parse(at);
  const wakes = last === "paused" ? Date.parse(wakeAtIn(shape)!) : null;
  // A time in the future tells nothing.
  const isAhead = written > nowMs + AHEAD_MS;
  if (!isAhead && Math.max(written, wakes ?? written) < nowMs - youngerThanMs) return null;
  const due = wakes ?? (isAhead ? nowMs : written + backoff(attemptsIn(shape), query));
  return olderThanMs > 0 && !isAhead ? Math.max(due, written + olderThanMs) : due;
}

function hasLabels(shape: Parameters<typeof labelsIn>[0], { hints }: DueQuery): boolean {
  const labels = labelsIn(shape) ?? {};
  return Object.entries(hints.within?.["labels"] ?? {}).every(
    ([name, value]) => Object.hasOwn(labels, name) && labels[name] === value,
  );
}

/** `JournalStore.due` for stores that have none: from their lists. */
export async function dueInLists(store: JournalStore, query: DueQuery): Promise<Listed[]> {
  const { where, hints } = query;
  const found: { readonly listed: Listed; readonly dueMs: number }[] = [];
  const visit = (listed: Listed): void => {
    const dueMs = dueAt(listed, query);
    if (dueMs !== null) found.push({ listed, dueMs });
  };
  const { sessions } = await store.list({ where, hints, visit });
  for (const listed of sessions) visit(listed);
  return found.sort((a, b) => a.dueMs - b.dueMs).map(({ listed }) => listed);
}

import type { Unit } from "./agent.ts";

/** How two conversations differ. */
export interface UnitDifference {
  readonly missing: readonly Unit[];
  /** Units that were not there before: made up, or said twice. */
  readonly added: readonly Unit[];
  readonly isReordered: boolean;
}

const keyOf = ({ kind, text, call = "", name = "" }: Unit): string => JSON.stringify([kind, text, call, name]);

export function compareUnits(before: readonly Unit[], after: readonly Unit[]): UnitDifference {
  const left = (units: readonly Unit[], of: readonly Unit[]): Unit[] => {
    const counts = new Map<string, number>();
    for (const unit of of) counts.set(keyOf(unit), (counts.get(keyOf(unit)) ?? 0) + 1);
    return units.filter((unit) => {
      const count = counts.get(keyOf(unit)) ?? 0;
      counts.set(keyOf(unit), count - 1);
      return count <= 0;
    });
  };
  const missing = left(before, after);
  const added = left(after, before);
  const rest = (units: readonly Unit[], without: readonly Unit[]): string[] => {
    const keys = new Set(without.map(keyOf));
    return units.map(keyOf).filter((key) => !keys.has(key));
  };
  const isReordered = rest(before, missing).join() !== rest(after, added).join() && added.length === 0;
  return { missing, added, isReordered };
}

/** What an API refuses in a conversation: it answers 400 to every prompt that follows. */
export function breachesOf(units: readonly Unit[]): string[] {
  const breaches: string[] = [];
  const open = new Set<string>();
  const known = new Set<string>();
  for (const { kind, call, text } of units) {
    if (kind === "call") {
      if (known.has(call!)) breaches.push(`call ${call} comes twice`);
      if (text === "null" || text === "") breaches.push(`call ${call} has no input`);
      known.add(call!);
      open.add(call!);
    } else if (kind === "result") {
      if (!open.delete(call!)) breaches.push(`a result of ${call} without its call before it`);
    } else if (open.size > 0 && kind !== "reasoning") {
      // Codex and Gemini put text between the calls of one answer.
      if (kind === "user") for (const each of open) breaches.push(`call ${each} has no result`);
      if (kind === "user") open.clear();
    }
  }
  for (const each of open) breaches.push(`call ${each} has no result`);
  return breaches;
}

/** What was said: two programs that show the same session write its calls and its reasoning differently. */
export function spokenIn(units: readonly Unit[]): Unit[] {
  return units.filter(({ kind }) => kind === "user" || kind === "assistant");
}

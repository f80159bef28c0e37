import type { Status, Summary } from "../api/wire.ts";

export interface Filters {
  readonly folder: string;
  readonly agent: string;
  readonly status: Status | "";
  /** Written in the last so many days; 0: at any time. */
  readonly days: number;
}

export const NO_FILTERS: Filters = { folder: "", agent: "", status: "", days: 0 };

export function isFiltered({ folder, agent, status, days }: Filters): boolean {
  return folder !== "" || agent !== "" || status !== "" || days !== 0;
}

export function passes(session: Summary, { folder, agent, status, days }: Filters, nowMs: number): boolean {
  if (folder !== "" && session.cwd !== folder) return false;
  if (agent !== "" && session.app !== agent) return false;
  if (status !== "" && session.status !== status) return false;
  return days === 0 || nowMs - Date.parse(session.at) <= days * 86_400_000;
}

/** The folders and agents that occur, the most frequent first. */
export function choicesIn(sessions: readonly Summary[]): { folders: string[]; agents: string[] } {
  const byCount = (values: readonly (string | undefined)[]): string[] => {
    const counts = new Map<string, number>();
    for (const value of values) if (value) counts.set(value, (counts.get(value) ?? 0) + 1);
    return [...counts].toSorted((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([value]) => value);
  };
  return { folders: byCount(sessions.map(({ cwd }) => cwd)), agents: byCount(sessions.map(({ app }) => app)) };
}

/** The newest first, each session once: `fresh` counts more than what was known before. */
export function mergeSessions(known: readonly Summary[], fresh: readonly Summary[]): Summary[] {
  const ids = new Set(fresh.map(({ id }) => id));
  const rest = known.filter(({ id }) => !ids.has(id));
  const merged: Summary[] = [];
  let [a, b] = [0, 0];
  while (a < fresh.length || b < rest.length) {
    const takeFresh = b >= rest.length || (a < fresh.length && fresh[a]!.at >= rest[b]!.at);
    merged.push(takeFresh ? fresh[a++]! : rest[b++]!);
  }
  return merged;
}

import type { FoundSession } from "../diagnosis/sessions.ts";
import type { SessionFacts } from "./session-files.ts";
import type { SessionState } from "./session-state.ts";

/** A session that is followed. */
export interface Tracked {
  found: FoundSession;
  /** As it was at the last look; null before the first. */
  facts: SessionFacts | null;
  state: SessionState | null;
  /** Of its files, in bytes, as far as it is known. */
  size: number;
  /** What the system said of its files then. */
  stat: string | null;
  /** When it grew last, since it is followed. */
  grownAt: number | null;
  /** When its conversation may be brought into the store again: the more that costs, the later. */
  bringAt: number;
  /** When all of it is compared and judged; null if that was done since its last change. */
  checkAt: number | null;
  checkCostMs: number;
  /** How often in a row it failed. */
  failures: number;
  /** Since when it is gone. */
  goneAt: number | null;
  isTooLong: boolean;
}

export const track = (found: FoundSession, size: number): Tracked => ({
  ...{ found, size, facts: null, state: null, stat: null, grownAt: null, bringAt: 0, checkAt: null, checkCostMs: 0 },
  ...{ failures: 0, goneAt: null, isTooLong: false },
});

/** Two places of one session, such as a file that was moved, are two that are followed. */
export const keyOf = ({ agent, session }: FoundSession): string =>
  JSON.stringify([agent.name, session.path, session.isShared ? session.id : null]);

export const nameOf = ({ agent, session }: FoundSession): string => JSON.stringify([agent.name, session.id]);

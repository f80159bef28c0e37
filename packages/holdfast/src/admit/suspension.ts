import type { Suspension } from "../conversation/records/records.ts";
import { defined } from "../defined.ts";
import { isTime } from "../journal/record.ts";
import { type Admission, reading } from "./admit.ts";
import { invalid } from "./refusals.ts";

/** Why a turn is suspended, and for how long. */
export interface SuspendOptions {
  readonly reason: string;
  /** Ids of the calls that wait for a decision. */
  readonly calls?: readonly string[];
  /**
   * The turn continues by itself from then on: a `Date`, a time like "2026-11-15T02:30:00Z", or milliseconds since
   * 1970. Workers look for it, by their own clock. Without it, the turn waits for a person.
   */
  readonly until?: Date | string | number;
}

/** Also recorded by workers: `parked`, the tries after which they gave up; `attempts`, the tries so far. */
export type TrySuspension = SuspendOptions & Pick<Suspension, "parked" | "attempts">;

/** Throws RECORD_INVALID. */
export function admitSuspension<M>(admission: Admission<M>, given: TrySuspension): Suspension {
  const { reason, calls, until, parked, attempts } = reading("why", () => ({
    ...{ reason: String(given.reason), parked: given.parked, attempts: given.attempts },
    ...{ calls: given.calls && [...given.calls], until: given.until === undefined ? undefined : timeOf(given.until) },
  }));
  if (calls && !calls.every((id) => typeof id === "string")) throw invalid("calls are given as a list of ids");
  if (until === null)
    throw invalid('`until` is a Date, a time like "2026-11-15T02:30:00Z", or milliseconds since 1970');
  return { reason: admission.words(reason), ...defined({ calls, until, parked, attempts }) };
}

/** In the form of records; null if it is none that they can hold. */
function timeOf(given: unknown): string | null {
  const isIso = typeof given === "string" && /^\d{4}-\d\d(?:-\d\d|$)/.test(given);
  if (!isIso && typeof given !== "number" && !(given instanceof Date)) return null;
  const date = new Date(given);
  if (Number.isNaN(date.getTime())) return null;
  const time = date.toISOString();
  return isTime(time) ? time : null;
}

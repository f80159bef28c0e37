import type { PlannedRecord } from "./workload.ts";

/** What is known about one attempt to write. */
export type State =
  /** Not answered: it may be there or not. */
  | "open"
  /** Acknowledged, or seen after a recovery: it survives everything. */
  | "power"
  /** Acknowledged under `process`: it survives SIGKILL. */
  | "process"
  /** Refused with nothing written, or missing after a recovery: it must never appear. */
  | "out";

/** Records that count together or not at all, in the order of the call. */
export interface Entry {
  readonly records: readonly PlannedRecord[];
  /** The first records of a session, a unit, or the beginning of an epoch. */
  readonly kind: "first" | "unit" | "epoch";
  readonly key?: string;
  readonly state: State;
  /**
   * There are faults: while it is open, it may have failed although its promise has not settled, and be missing before
   * others.
   */
  readonly mayBeRefused?: boolean;
  /** The seq that the store returned. */
  readonly seq?: number;
}

/** `maybe`: a call that would change it got no answer. */
export type Existence = "no" | "maybe" | "yes";

/** What to expect of one session. Never changed, only replaced: a copy at a step costs nothing. */
export interface Ledger {
  readonly entries: readonly Entry[];
  readonly existence: Existence;
  /** A deletion was requested: a missing session is not created again. */
  readonly deleting: boolean;
  /** The last writer closed it, and that was acknowledged. */
  readonly closed: boolean;
  /** `journal.durable`: every seq up to it survives a power cut. */
  readonly durable: number;
}

export const emptyLedger: Ledger = { entries: [], existence: "no", deleting: false, closed: false, durable: 0 };

export type Crash = "power" | "kill";

/**
 * What to expect after the machine, or the process, has died. Data that has only survived SIGKILL stays at risk until
 * the session is opened (S10).
 */
export function afterCrash(ledger: Ledger, crash: Crash): Ledger {
  if (crash === "kill") return ledger;
  const entries = ledger.entries.map(
    (entry): Entry => (entry.state === "process" ? { ...entry, state: "open" } : entry),
  );
  return { ...ledger, entries };
}

/** One of our records, as read back after a crash. */
export interface RecoveredRecord {
  readonly n: string;
  readonly seq: number;
  readonly pad: string;
}

/** A session as found on a disk. */
export interface RecoveredSession {
  /** All our records in it, in order. */
  readonly history: readonly RecoveredRecord[];
  /** Those of the current epoch. */
  readonly current: readonly RecoveredRecord[];
  /** Of the last record, ours or not. */
  readonly head: number;
}

/**
 * The oracle: `acknowledged ⊆ recovered ⊆ attempted`, in order, complete units, nothing twice. Returns what is wrong,
 * and what is known now.
 */
export function compare(
  ledger: Ledger,
  found: RecoveredSession | null,
  padOf: (record: PlannedRecord) => string,
): { readonly problems: readonly string[]; readonly ledger: Ledger } {
  if (found === null) {
    if (ledger.existence === "yes") return { problems: ["the session is gone"], ledger };
    // A deletion without an answer may be undone: then all of it is there.
    if (ledger.deleting && ledger.existence === "maybe") return { problems: [], ledger };
    const entries = ledger.entries.map((entry): Entry => ({ ...entry, state: "out" }));
    return { problems: [], ledger: { ...ledger, entries, existence: "no", durable: 0 } };
  }
  const problems: string[] = [];
  if (ledger.existence === "no") problems.push("a session is there that was never created, or was deleted");
  const at = new Map<string, number>();
  for (const [index, record] of found.history.entries()) {
    if (at.has(record.n)) problems.push(`record ${record.n} is there twice`);
    at.set(record.n, index);
    const before = found.history[index - 1];
    if (before !== undefined && before.seq >= record.seq) problems.push(`seq ${record.seq} comes after ${before.seq}`);
  }
  const known = new Set(ledger.entries.flatMap((entry) => entry.records.map((record) => record.n)));
  for (const n of at.keys()) if (!known.has(n)) problems.push(`record ${n} was never attempted`);

  let next = 0;
  let missing: Entry | null = null;
  let epochStart = 0;
  const entries = ledger.entries.map((entry): Entry => {
    const there = entry.records.filter((record) => at.has(record.n)).length;
    const name = nameOf(entry);
    if (there === 0) {
      if (entry.state === "power" || entry.state === "process") {
        problems.push(`${name} was acknowledged (${entry.state}) and is missing`);
      }
      if (entry.state === "open" && entry.mayBeRefused !== true) missing ??= entry;
      return { ...entry, state: "out" };
    }
    if (entry.state === "out") problems.push(`${name} was refused, or was gone before, and is there`);
    if (there < entry.records.length) problems.push(`${name} is there in part: ${there} of ${entry.records.length}`);
    if (missing !== null) problems.push(`${name} is there though ${nameOf(missing)} before it is not`);
    const first = at.get(entry.records[0]!.n);
    if (first !== undefined && first !== next) problems.push(`${name} is out of order: place ${first} and not ${next}`);
    if (entry.kind === "epoch") epochStart = first ?? epochStart;
    next = (first ?? next) + there;
    const seq = found.history[first ?? -1]?.seq;
    if (entry.seq !== undefined && seq !== undefined && seq !== entry.seq) {
      problems.push(`${name} was answered with seq ${entry.seq} and has ${seq}`);
    }
    for (const record of entry.records) {
      const index = at.get(record.n);
      if (index !== undefined && found.history[index]!.pad !== padOf(record))
        problems.push(`record ${record.n} was altered`);
    }
    return { ...entry, state: "power", ...(seq === undefined ? {} : { seq }) };
  });
  const current = found.current.map((record) => record.n).join(" ");
  const expected = found.history
    .slice(epochStart)
    .map((record) => record.n)
    .join(" ");
  if (current !== expected) problems.push(`the current epoch is [${current}] and not [${expected}]`);
  if (found.head < ledger.durable) {
    problems.push(`the journal called seq ${ledger.durable} durable, and ends at ${found.head}`);
  }
  return { problems, ledger: { ...ledger, entries, existence: "yes", deleting: false } };
}

export function nameOf(entry: Entry): string {
  const names = entry.records.map((record) => record.n);
  return `${entry.kind} ${names.length > 1 ? `${names[0]}…${names.at(-1)}` : names[0]}`;
}

/** A new attempt, after all others; an earlier one with the same records has failed. */
export function attempt(ledger: Ledger, entry: Entry): Ledger {
  const others = ledger.entries.filter((other) => !isSame(other, entry));
  return { ...ledger, entries: [...others, entry] };
}

/** The outcome of an attempt. */
export function answered(
  ledger: Ledger,
  entry: Entry,
  answer: { readonly state: State; readonly seq?: number },
): Ledger {
  const entries = ledger.entries.map((other) => (isSame(other, entry) ? { ...other, ...answer } : other));
  return { ...ledger, entries };
}

/** Everything up to an entry is known to survive a power cut, except what was refused. */
export function synced(ledger: Ledger, entries: readonly Entry[]): Ledger {
  const covered = (entry: Entry): boolean => entry.state !== "out" && entries.some((other) => isSame(other, entry));
  return { ...ledger, entries: ledger.entries.map((entry) => (covered(entry) ? { ...entry, state: "power" } : entry)) };
}

export function isSame(a: Entry, b: Entry): boolean {
  return a.records[0]!.n === b.records[0]!.n;
}

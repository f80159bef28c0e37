import type { JournalRecord } from "holdfast";
import { type LabRecord, labRecordOf } from "./content.ts";
import type { Log, LoggedAttempt } from "./log.ts";

/** A journal as found: every record of its history, in the store's order. */
export interface View {
  readonly all: readonly { readonly seq: number; readonly crc: string }[];
  readonly found: readonly LabRecord[];
}

export const emptyView: View = { all: [], found: [] };

/** `read` identifies the attempt of a record: the laboratory's own, or an agent's under test. */
export async function viewOf(
  records: Iterable<JournalRecord> | AsyncIterable<JournalRecord>,
  read: (record: JournalRecord) => LabRecord | null = labRecordOf,
): Promise<View> {
  const all: { seq: number; crc: string }[] = [];
  const found: LabRecord[] = [];
  for await (const record of records) {
    all.push({ seq: record.seq, crc: record.crc });
    const own = read(record);
    if (own) found.push(own);
  }
  return { all, found };
}

export interface Fault {
  readonly what: /** An acknowledged attempt is not there. */
    | "lost"
    /** Something is there that nobody tried to store. */
    | "invented"
    /** A unit is there in part. */
    | "half"
    /** It is there with other content, or at another seq than was reported. */
    | "altered"
    | "twice"
    /** The store had said that nothing was written. */
    | "refused"
    | "order"
    /** Something is missing before something that is there. */
    | "gap"
    /** Reopening showed more, or something else (P2). */
    | "shrunk"
    /** The current epoch is a mixture (C7). */
    | "epoch"
    /** The store, or a process, did something it must not. */
    | "conduct";
  readonly message: string;
}

/**
 * `acknowledged ⊆ recovered ⊆ attempted`, in order, complete units, nothing twice, no gap. Returns the faults. Pure.
 *
 * `settled` is what an earlier reopening showed: it can only have grown since.
 */
export function judge(log: Log, view: View, settled: View = emptyView): Fault[] {
  const triesOf = Map.groupBy(log.tried, ({ attempt }) => attempt.id);
  const { units, faults } = unitsOf(view.found);
  return [
    ...faults,
    ...[...units.values()].flatMap((unit) => contentFaults(unit, triesOf.get(unit.id))),
    ...[...triesOf].flatMap(([id, tries]) => answerFaults(id, tries, units.get(id))),
    ...orderFaults(log.tried, units),
    ...holeFaults(log.tried, units),
    ...seqFaults(view),
    ...growthFaults(settled, view),
  ];
}

/**
 * The current epoch must be the end of the history, from the newest replacement on: the old conversation or the new
 * one, never a mixture (C7).
 */
export function judgeEpoch(log: Log, history: View, current: View): Fault[] {
  const end = { all: history.all.slice(history.all.length - current.all.length), found: [] };
  if (growthFaults(current, end).length > 0)
    return [{ what: "epoch", message: "the current epoch is not the end of the history" }];
  const kinds = new Map(log.tried.map(({ attempt }) => [attempt.id, attempt.kind]));
  const start = history.found.findLast(({ id, part }) => part === 0 && kinds.get(id) === "epoch") ?? history.found[0];
  const first = current.found[0];
  if (first?.seq === start?.seq) return [];
  return [{ what: "epoch", message: `the current epoch begins with seq ${first?.seq}, and not with ${start?.seq}` }];
}

interface Unit {
  readonly id: number;
  readonly seq: number;
  readonly chars: number;
  parts: number;
  intact: boolean;
}

function unitsOf(found: readonly LabRecord[]): { units: Map<number, Unit>; faults: Fault[] } {
  const units = new Map<number, Unit>();
  const faults: Fault[] = [];
  for (const { id, part, seq, chars, intact } of found) {
    const unit = units.get(id);
    if (!unit) {
      units.set(id, { id, seq, chars, parts: 1, intact });
      if (part !== 0) faults.push({ what: "half", message: `attempt ${id} begins with part ${part}, at seq ${seq}` });
    } else if (part === unit.parts && seq === unit.seq + part) {
      unit.parts++;
      unit.intact &&= intact && chars === unit.chars;
    } else faults.push({ what: "twice", message: `part ${part} of attempt ${id} at seq ${seq}, and at ${unit.seq}` });
  }
  return { units, faults };
}

function contentFaults(unit: Unit, tries: readonly LoggedAttempt[] | undefined): Fault[] {
  const { id, seq } = unit;
  const attempt = tries?.[0]?.attempt;
  if (!attempt) return [{ what: "invented", message: `attempt ${id}, at seq ${seq}, was never made` }];
  if (unit.parts !== attempt.parts)
    return [{ what: "half", message: `${unit.parts} of ${attempt.parts} records of attempt ${id}, at seq ${seq}` }];
  if (!unit.intact || unit.chars !== attempt.chars)
    return [{ what: "altered", message: `attempt ${id}, at seq ${seq}, is not what was appended` }];
  return [];
}

/** Compares what was reported with what is there. */
function answerFaults(id: number, tries: readonly LoggedAttempt[], unit: Unit | undefined): Fault[] {
  const told = tries.flatMap(({ outcome }) => (outcome.is === "acknowledged" ? [outcome] : []));
  if (!unit) {
    const [first] = told;
    return first ? [{ what: "lost", message: `attempt ${id}, acknowledged with seq ${first.seq ?? "unsaid"}` }] : [];
  }
  if (tries.every(({ outcome }) => outcome.is === "refused"))
    return [{ what: "refused", message: `attempt ${id} was refused, and is at seq ${unit.seq}` }];
  const elsewhere = told.find(
    ({ seq, last }) => seq !== undefined && (seq !== unit.seq || last !== seq + unit.parts - 1),
  );
  if (!elsewhere) return [];
  const { seq, last } = elsewhere;
  return [{ what: "altered", message: `attempt ${id}, acknowledged with seq ${seq} to ${last}, is at ${unit.seq}` }];
}

/** Recovered in the order in which they were tried. */
function orderFaults(tried: readonly LoggedAttempt[], units: ReadonlyMap<number, Unit>): Fault[] {
  const faults: Fault[] = [];
  const known = new Set(tried.map(({ attempt }) => attempt.id));
  let at = 0;
  for (const { id, seq } of [...units.values()].sort((a, b) => a.seq - b.seq)) {
    let next = at;
    while (next < tried.length && tried[next]!.attempt.id !== id) next++;
    if (next < tried.length) at = next + 1;
    else if (known.has(id)) faults.push({ what: "order", message: `attempt ${id}, at seq ${seq}, was made earlier` });
  }
  return faults;
}

/** Of one writer's attempts, a prefix is there: nothing is missing before something that was written. */
function holeFaults(tried: readonly LoggedAttempt[], units: ReadonlyMap<number, Unit>): Fault[] {
  const faults: Fault[] = [];
  const lastLife = new Map(tried.map(({ attempt, life }) => [attempt.id, life]));
  const seen = new Set<number>();
  let hole: LoggedAttempt | undefined;
  for (const entry of tried) {
    const { id } = entry.attempt;
    const again = seen.has(id);
    seen.add(id);
    if (hole && hole.life !== entry.life) hole = undefined;
    // A retry writes nothing if the first attempt was written, so its position means nothing.
    if (again || entry.outcome.is === "refused") continue;
    if (!units.has(id)) hole ??= entry;
    // A later writer's retry may have written it.
    else if (hole && lastLife.get(id) === entry.life)
      faults.push({ what: "gap", message: `attempt ${id} is there, and ${hole.attempt.id}, made before it, is not` });
  }
  return faults;
}

function seqFaults(view: View): Fault[] {
  const i = view.all.findIndex(({ seq }, at) => seq !== at + 1);
  return i === -1 ? [] : [{ what: "gap", message: `record ${i + 1} in order has seq ${view.all[i]!.seq}` }];
}

function growthFaults(before: View, after: View): Fault[] {
  for (const [i, { seq, crc }] of before.all.entries()) {
    const now = after.all[i];
    if (!now) return [{ what: "shrunk", message: `seq ${seq} was there after an earlier reopening, and is gone` }];
    if (now.seq !== seq || now.crc !== crc)
      return [
        { what: "shrunk", message: `seq ${seq} (${crc}) of an earlier reopening is now ${now.seq} (${now.crc})` },
      ];
  }
  return [];
}

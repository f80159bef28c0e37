import type { Durability } from "holdfast/store";
import { mixSeeds, type Random, seededRandom } from "./random.ts";

/** One record to write. `n` is unique in the workload: it identifies the record for the oracle. */
export interface PlannedRecord {
  readonly n: string;
  readonly bytes: number;
}

/** One call of `append`: a record, or several as a unit. */
export interface PlannedAppend {
  readonly records: readonly PlannedRecord[];
  readonly durability: Durability;
  readonly key?: string;
  /** With `appendSync`. */
  readonly sync: boolean;
}

/** What a program does to a store, in terms of the contract. `session` is a number; its id is `sessionId(number)`. */
export type Task =
  | { readonly task: "open"; readonly session: number; readonly first: readonly PlannedRecord[] }
  /** Calls without a wait between them; `wait: false` continues before they are acknowledged. */
  | {
      readonly task: "append";
      readonly session: number;
      readonly appends: readonly PlannedAppend[];
      readonly wait: boolean;
    }
  /** The same key, with the same records, again. */
  | { readonly task: "again"; readonly session: number; readonly append: PlannedAppend }
  | { readonly task: "flush"; readonly session: number; readonly sync: boolean }
  | { readonly task: "epoch"; readonly session: number; readonly records: readonly PlannedRecord[] }
  | { readonly task: "close"; readonly session: number }
  | { readonly task: "pack"; readonly session: number }
  | { readonly task: "delete"; readonly session: number }
  | { readonly task: "read"; readonly session: number }
  | { readonly task: "verify"; readonly session: number }
  | { readonly task: "list" }
  /** Removes everything from the trash, and what unfinished work left behind. */
  | { readonly task: "gc" }
  /** All sessions are closed, and the store is opened again. */
  | { readonly task: "restart" };

export interface Workload {
  readonly seed: number;
  readonly sessions: number;
  readonly segmentBytesMax: number;
  readonly tasks: readonly Task[];
}

export function sessionId(session: number): string {
  return `0199a000-0000-7000-8000-${session.toString(16).padStart(12, "0")}`;
}

/** The text that gives a record its planned length, with characters of up to four bytes, for tears inside them. */
export function padding(record: PlannedRecord): string {
  const pattern = `${record.n}·ß→𝄞 "quoted",\\back\n`;
  return pattern.repeat(Math.ceil(record.bytes / Buffer.byteLength(pattern)));
}

/** How often each task occurs, as weights. Some questions need more of one task than a mixture has. */
const profiles = {
  /** A little of everything. */
  mixed: {
    append: 50,
    again: 8,
    flush: 8,
    epoch: 10,
    close: 8,
    pack: 5,
    read: 4,
    list: 2,
    restart: 3,
    delete: 2,
    gc: 1,
  },
  /** Replacements of the conversation, packed and reopened (C7). */
  epochs: {
    append: 30,
    again: 4,
    flush: 4,
    epoch: 36,
    close: 8,
    pack: 12,
    read: 2,
    list: 0,
    restart: 4,
    delete: 0,
    gc: 0,
  },
  /** Short sessions. */
  births: {
    append: 24,
    again: 2,
    flush: 2,
    epoch: 4,
    close: 20,
    pack: 2,
    read: 6,
    list: 8,
    restart: 10,
    delete: 22,
    gc: 8,
  },
  /** Writers that write a little and leave. */
  visits: {
    append: 34,
    again: 4,
    flush: 0,
    epoch: 10,
    close: 36,
    pack: 6,
    read: 4,
    list: 0,
    restart: 6,
    delete: 0,
    gc: 0,
  },
  /** Many unfinished appends at a time. */
  bursts: {
    append: 80,
    again: 8,
    flush: 6,
    epoch: 2,
    close: 2,
    pack: 0,
    read: 0,
    list: 0,
    restart: 2,
    delete: 0,
    gc: 0,
  },
} as const satisfies Record<string, Readonly<Record<string, number>>>;

export type ProfileName = keyof typeof profiles;
export const profileNames = Object.keys(profiles) as readonly ProfileName[];

/** A seeded program of some length. */
export function makeWorkload(seed: number, length: number, profile: ProfileName): Workload {
  const random = seededRandom(mixSeeds(seed, 0x10ad));
  const sessions = profile === "births" ? 4 : 1 + random.below(3);
  const bag = Object.entries(profiles[profile]).flatMap(([task, weight]) => Array.from({ length: weight }, () => task));
  const names = nameRecords();
  const keyed = new Map<number, PlannedAppend[]>();
  const tasks: Task[] = [];
  let keys = 0;

  const makeAppend = (session: number): PlannedAppend => {
    const count = random.pick([1, 1, 1, 2, 3, 6]);
    const append: PlannedAppend = {
      records: Array.from({ length: count }, () => names(session, sizeOf(random))),
      durability: random.pick(["power", "power", "process"] as const),
      sync: random.chance(0.15),
      ...(random.chance(0.3) ? { key: `key ${++keys}` } : {}),
    };
    if (append.key !== undefined) keyed.set(session, [...(keyed.get(session) ?? []), append]);
    return append;
  };

  const makeTask = (session: number): Task => {
    const task = random.pick(bag);
    const known = keyed.get(session) ?? [];
    if (task === "again" && known.length > 0) return { task, session, append: random.pick(known) };
    if (task === "flush") return { task, session, sync: random.chance(0.3) };
    if (task === "epoch") {
      return {
        task,
        session,
        records: Array.from({ length: 1 + random.below(5) }, () => names(session, sizeOf(random))),
      };
    }
    if (task === "close" || task === "pack" || task === "read" || task === "delete") return { task, session };
    if (task === "list" || task === "restart" || task === "gc") return { task };
    const count = profile === "bursts" ? 1 + random.below(8) : random.pick([1, 1, 2, 4]);
    const appends = Array.from({ length: count }, () => makeAppend(session));
    return { task: "append", session, appends, wait: random.chance(profile === "bursts" ? 0.3 : 0.7) };
  };

  for (let session = 1; session <= sessions; session++) {
    const first = Array.from({ length: 1 + random.below(3) }, () => names(session, sizeOf(random)));
    tasks.push({ task: "open", session, first });
    const share = Math.ceil(length / sessions);
    for (let at = 0; at < share; at++) tasks.push(makeTask(1 + random.below(session)));
  }
  const segmentBytesMax = random.pick([2048, 8192, 16_384, 65_536]);
  return { seed, sessions, segmentBytesMax, tasks };
}

/** 20 B to 20 KB, most of them small: several per page, and some across several pages. */
function sizeOf(random: Random): number {
  const roll = random.next();
  if (roll < 0.6) return 20 + random.below(200);
  if (roll < 0.9) return 200 + random.below(1200);
  if (roll < 0.97) return 2000 + random.below(6000);
  return 8000 + random.below(12_000);
}

function nameRecords(): (session: number, bytes: number) => PlannedRecord {
  let made = 0;
  return (session, bytes) => ({ n: `s${session}.${++made}`, bytes });
}

import { mixSeeds, seededRandom } from "./random.ts";

/** A page of a file that was written and may not be durable. */
export interface DirtyPage {
  /** Which of the file's dirty pages this is, counted from 0, and how many there are. */
  readonly ordinal: number;
  readonly count: number;
  /**
   * How many contents the page has had since it was durable, including that one: version 0 is durable, the last is the
   * newest.
   */
  readonly versions: number;
}

/** The sizes that a file has had since its size was durable; the first is the durable one, the last the newest. */
export type SizeHistory = readonly number[];

/** A change of names in a folder that may not be durable. */
export interface NameChange {
  readonly kind: "add" | "remove" | "move";
  readonly name: string;
}

/**
 * What a power cut leaves of everything that was not durable. Each question concerns one thing, and the answers are
 * independent (S22).
 */
export interface Survival {
  /** For each 512-byte sector of the page, the version that is on the disk. */
  page(page: DirtyPage): (sector: number) => number;
  /** Anything between the smallest and the largest of them. */
  size(sizes: SizeHistory): number;
  /** Whether the change is on the disk. */
  name(change: NameChange): boolean;
}

const durable = (): number => 0;
const newest =
  (page: DirtyPage): (() => number) =>
  () =>
    page.versions - 1;
const newestSize = (sizes: SizeHistory): number => sizes.at(-1)!;
const largestSize = (sizes: SizeHistory): number => Math.max(...sizes);
const kept = (): boolean => true;
const lost = (): boolean => false;

/**
 * States at the edge of what is legal, worth trying at each crash before any random one:
 * - `old`: nothing unsynced is there; `new`: everything is;
 * - `zeros`: names and sizes are there, and none of the data: a run of NULs;
 * - `late`: the first dirty page of each file is missing and every later one is there: NULs, then whole records;
 * - `early`: the last dirty page of each file is missing;
 * - `torn`: of each page the first half of the sectors; `shuffled`: of each page every other sector;
 * - `nameless`: the data is there, the names are not; `empty`: the names are there, data and sizes are not;
 * - `grown`: every file is as large as it ever was (an undone ftruncate), with its newest data.
 */
export const extremes: Readonly<Record<ExtremeName, Survival>> = {
  old: { page: () => durable, size: (sizes) => sizes[0]!, name: lost },
  new: { page: newest, size: newestSize, name: kept },
  zeros: { page: () => durable, size: newestSize, name: kept },
  late: { page: (page) => (page.ordinal === 0 ? durable : newest(page)), size: newestSize, name: kept },
  early: { page: (page) => (page.ordinal === page.count - 1 ? durable : newest(page)), size: newestSize, name: kept },
  torn: { page: (page) => (sector) => (sector < 4 ? page.versions - 1 : 0), size: newestSize, name: kept },
  shuffled: { page: (page) => (sector) => (sector % 2 === 1 ? page.versions - 1 : 0), size: newestSize, name: kept },
  nameless: { page: newest, size: newestSize, name: lost },
  empty: { page: () => durable, size: (sizes) => sizes[0]!, name: kept },
  grown: { page: newest, size: largestSize, name: kept },
};

export type ExtremeName =
  | "old"
  | "new"
  | "zeros"
  | "late"
  | "early"
  | "torn"
  | "shuffled"
  | "nameless"
  | "empty"
  | "grown";

export const extremeNames = Object.keys(extremes) as readonly ExtremeName[];

/** One legal state, chosen by a seed. */
export function seededSurvival(seed: number): Survival {
  const random = seededRandom(mixSeeds(seed, 0x5eed));
  // One tendency for a whole crash: fair coins for every page would almost never lose, or keep, all of many pages.
  const keepsPage = random.pick([0.1, 0.5, 0.9]);
  const keepsName = random.pick([0, 0.5, 0.5, 1, 1]);
  const mixes = random.pick([0, 0.2, 0.8]);
  const sizing = random.pick(["durable", "newest", "newest", "written", "any"] as const);
  return {
    page(page) {
      const version = random.chance(keepsPage) ? page.versions - 1 : random.below(page.versions);
      if (!random.chance(mixes)) return () => version;
      const sectors = Array.from({ length: 8 }, () => random.below(page.versions));
      return (sector) => sectors[sector % sectors.length]!;
    },
    size(sizes) {
      if (sizing === "durable") return sizes[0]!;
      if (sizing === "newest") return sizes.at(-1)!;
      if (sizing === "written") return random.pick(sizes);
      const low = Math.min(...sizes);
      return low + random.below(Math.max(...sizes) - low + 1);
    },
    name: () => random.chance(keepsName),
  };
}

/**
 * Every combination of old and new: pages, sizes and names. Their number is two to the power of the dirty things, so
 * this is for few of them; it ends after `limit` states. Use each state for one crash before you ask for the next:
 * enumeration counts the questions that the crash asks.
 */
export function* everySurvival(limit: number): Generator<Survival, void, undefined> {
  let digits: number[] = [];
  for (let made = 0; made < limit; made++) {
    const bases: number[] = [];
    const next = (base: number): number => {
      bases.push(base);
      return digits[bases.length - 1] ?? 0;
    };
    yield {
      page(page) {
        const version = next(2) === 0 ? 0 : page.versions - 1;
        return () => version;
      },
      size(sizes) {
        const edges = [...new Set([sizes[0]!, sizes.at(-1)!, Math.min(...sizes), Math.max(...sizes)])];
        return edges[next(edges.length)]!;
      },
      name: () => next(2) === 1,
    };
    digits = bases.map((_, at) => digits[at] ?? 0);
    let place = digits.length - 1;
    while (place >= 0 && digits[place] === bases[place]! - 1) digits[place--] = 0;
    if (place < 0) return;
    digits[place] = digits[place]! + 1;
    // After the counted position there may be other questions next time: they start at 0 again.
    digits.length = place + 1;
  }
}

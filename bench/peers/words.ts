import { type Cell, type Comparison, middleOf, type PeerResult } from "./comparison.ts";

export type Unit = "µs" | "ms" | "MB" | "×";

/** A number that can be read at a glance: two or three digits and the unit that fits. */
export function amount(value: number, unit: Unit): string {
  if (unit === "×") return digits(value);
  if (unit === "MB") return `${digits(value)} MB`;
  const us = unit === "µs" ? value : value * 1000;
  if (us < 1000) return `${digits(us)} µs`;
  return us < 1_000_000 ? `${digits(us / 1000)} ms` : `${digits(us / 1_000_000)} s`;
}

function digits(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString("en") : value >= 10 ? value.toFixed(0) : value.toFixed(1);
}

/** The median, and the spread if there were several rounds. */
export function cellWords(cell: Cell | undefined, unit: Unit): string {
  if (!cell || "none" in cell) return "–";
  if ("over" in cell) return `> ${amount(cell.over, unit)}`;
  const middle = amount(middleOf(cell)!, unit);
  if (cell.rounds.length === 1) return `${middle} (once)`;
  return `${middle} (${amount(Math.min(...cell.rounds), unit)} .. ${amount(Math.max(...cell.rounds), unit)})`;
}

/** The fastest round of one is slower than the slowest of the other: not a matter of the day. */
export function isClearlyLess(one: Cell | undefined, other: Cell | undefined): boolean {
  const [mostOfOne, leastOfOther] = [most(one), least(other)];
  return mostOfOne !== null && leastOfOther !== null && mostOfOne < leastOfOther;
}

/** What was not finished has no most. */
function most(cell: Cell | undefined): number | null {
  return cell && "rounds" in cell ? Math.max(...cell.rounds) : null;
}

function least(cell: Cell | undefined): number | null {
  if (!cell || "none" in cell) return null;
  return "over" in cell ? cell.over : Math.min(...cell.rounds);
}

/** One kind of figure: where it is in a result, and what it is called. */
export interface Job {
  readonly what: string;
  readonly unit: Unit;
  /** Depends on durability: only stores that survive the same are compared. */
  readonly writes: boolean;
  readonly of: (peer: PeerResult) => Cell | undefined;
}

export function jobsOf({ plan }: Comparison): readonly Job[] {
  const number = (value: number): string => value.toLocaleString("en");
  return [
    ...plan.ages.map((age): Job => {
      return { what: `store a message at ${number(age)}`, unit: "µs", writes: true, of: ({ append }) => append[age] };
    }),
    ...plan.ages.map((age): Job => {
      return {
        what: `bytes written per byte at ${number(age)}`,
        unit: "×",
        writes: true,
        of: ({ bytes }) => bytes[age],
      };
    }),
    ...plan.resumes.flatMap((size): Job[] => [
      { what: `resume ${number(size)} messages`, unit: "ms", writes: false, of: ({ resumeMs }) => resumeMs[size] },
      { what: `memory to resume ${number(size)}`, unit: "MB", writes: false, of: ({ resumeMB }) => resumeMB[size] },
    ]),
    { what: `list ${number(plan.sessions)} sessions`, unit: "ms", writes: false, of: ({ listMs }) => listMs },
  ];
}

import type { ProblemKind } from "../../src/index.ts";

/** Every kind of damage that the text of a file of lines takes, at a place of one's choice. */

/** A random number from 0 to below 1: `seeded` makes one. */
export type Random = () => number;

export interface LineDamage {
  readonly kind: ProblemKind;
  /** Whether everything can still be read. */
  readonly isLossless: boolean;
  /** The file with damage at this line; null if this line cannot have it. */
  apply(lines: readonly Buffer[], at: number, random: Random): Buffer | null;
}

export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const linesOf = (bytes: Buffer): Buffer[] => {
  const lines: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(10, at);
    lines.push(bytes.subarray(at, end < 0 ? bytes.length : end));
    at = end < 0 ? bytes.length : end + 1;
  }
  return lines;
};

const LF = Buffer.from("\n");
export const fileOf = (lines: readonly Buffer[]): Buffer => Buffer.concat(lines.flatMap((line) => [line, LF]));
const replaced = (lines: readonly Buffer[], at: number, ...by: readonly Buffer[]): Buffer =>
  fileOf([...lines.slice(0, at), ...by, ...lines.slice(at + 1)]);
const before = (lines: readonly Buffer[], at: number): Buffer => fileOf(lines.slice(0, at));
const from = (lines: readonly Buffer[], at: number): Buffer => fileOf(lines.slice(at));

/** Any place inside of the line. */
const within = (line: Buffer, random: Random): number => 1 + Math.floor(random() * (line.length - 2));

export const LINE_DAMAGE: readonly LineDamage[] = [
  {
    kind: "torn-record",
    isLossless: false,
    apply: (lines, at, random) =>
      at === lines.length - 1
        ? Buffer.concat([before(lines, at), lines[at]!.subarray(0, within(lines[at]!, random))])
        : null,
  },
  {
    kind: "glued-records",
    isLossless: true,
    apply: (lines, at) =>
      at < lines.length - 1 ? Buffer.concat([before(lines, at), lines[at]!, from(lines, at + 1)]) : null,
  },
  {
    kind: "nul-run",
    isLossless: true,
    apply: (lines, at, random) =>
      Buffer.concat([before(lines, at), Buffer.alloc(1 + Math.floor(random() * 9_000)), from(lines, at)]),
  },
  {
    kind: "raw-line-break",
    isLossless: true,
    apply(lines, at) {
      const place = lines[at]!.indexOf("\\n");
      // Not one that belongs to another backslash.
      if (place < 1 || lines[at]![place - 1] === 0x5c) return null;
      return replaced(lines, at, Buffer.concat([lines[at]!.subarray(0, place), LF, lines[at]!.subarray(place + 2)]));
    },
  },
  {
    kind: "split-record",
    isLossless: true,
    apply(lines, at) {
      const place = lines[at]!.indexOf(',"');
      return place < 0 ? null : replaced(lines, at, lines[at]!.subarray(0, place + 1), lines[at]!.subarray(place + 1));
    },
  },
  { kind: "unclosed-record", isLossless: true, apply: (lines, at) => replaced(lines, at, lines[at]!.subarray(0, -1)) },
  {
    kind: "invalid-utf8",
    isLossless: false,
    apply(lines, at) {
      const place = lines[at]!.findIndex((byte) => byte >= 0xc0);
      return place < 0
        ? null
        : replaced(lines, at, Buffer.concat([lines[at]!.subarray(0, place), lines[at]!.subarray(place + 1)]));
    },
  },
  {
    kind: "byte-order-mark",
    isLossless: true,
    apply: (lines, at) => (at === 0 ? Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), fileOf(lines)]) : null),
  },
  {
    kind: "crlf",
    isLossless: true,
    apply: (lines, at) => (at === 0 ? Buffer.concat(lines.flatMap((line) => [line, Buffer.from("\r\n")])) : null),
  },
  {
    kind: "garbage",
    isLossless: true,
    apply: (lines, at) => Buffer.concat([before(lines, at), Buffer.from("<<<<<<< HEAD\n"), from(lines, at)]),
  },
  { kind: "doubled-file", isLossless: true, apply: (lines, at) => (at === 0 ? fileOf([...lines, ...lines]) : null) },
];

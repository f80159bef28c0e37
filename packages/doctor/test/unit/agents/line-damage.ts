import { seededRandom } from "../../../../testkit/src/simulation/random.ts";

export type Random = ReturnType<typeof seededRandom>;
export { seededRandom };

/** What a damage leaves: the bytes, and which of the lines before can no longer be read whole. */
export interface Harm {
  readonly bytes: Buffer;
  readonly lost: readonly number[];
}

/** One kind of damage, at a place that the random numbers choose; null if this file has no such place. */
export interface LineDamage {
  readonly kind: string;
  /** A reader names at least one of these. */
  readonly named: readonly string[];
  harm(lines: readonly string[], random: Random): Harm | null;
}

const HEADER = ["header-missing", "header-damaged"];
const whole = (lines: readonly string[]): Buffer => Buffer.from(lines.map((line) => `${line}\n`).join(""));
const without = (lines: readonly string[], n: number, ...instead: string[]): string[] =>
  lines.toSpliced(n, 1, ...instead);
const anywhere = (lines: readonly string[], random: Random): number => random.below(lines.length);
const behindHeader = (lines: readonly string[], random: Random): number => 1 + random.below(lines.length - 1);
/** Somewhere inside, so that something is left on both sides. */
const inside = (line: string, random: Random): number => 1 + random.below(Math.max(1, line.length - 2));

/** Damage to the text of any format with one record in each line. */
export const LINE_DAMAGE: readonly LineDamage[] = [
  {
    kind: "torn last record",
    named: ["torn-record", "unclosed-record", "garbage"],
    harm(lines, random) {
      const last = lines.length - 1;
      const cut = Buffer.from(lines[last]!).subarray(0, inside(lines[last]!, random));
      return { bytes: Buffer.concat([whole(lines.slice(0, last)), cut]), lost: [last] };
    },
  },
  {
    kind: "two records on a line",
    named: ["glued-records"],
    harm(lines, random) {
      const n = behindHeader(lines, random);
      return { bytes: whole(lines.toSpliced(n - 1, 2, lines[n - 1]! + lines[n]!)), lost: [] };
    },
  },
  {
    kind: "half a record, and another behind it",
    named: ["glued-records", "torn-record", "garbage"],
    harm(lines, random) {
      const n = behindHeader(lines, random);
      // Behind a comma, a record could be a part of the half one.
      const half = lines[n - 1]!.slice(0, inside(lines[n - 1]!, random)).replace(/[,[]+$/, "");
      return { bytes: whole(lines.toSpliced(n - 1, 2, half + lines[n]!)), lost: [n - 1] };
    },
  },
  {
    kind: "NUL at the end",
    named: ["nul-run"],
    harm: (lines, random) => ({
      bytes: Buffer.concat([whole(lines), Buffer.alloc(1 + random.below(9_000))]),
      lost: [],
    }),
  },
  {
    kind: "NUL in place of a record",
    named: ["nul-run"],
    harm(lines, random) {
      const n = anywhere(lines, random);
      return { bytes: whole(without(lines, n, "\0".repeat(lines[n]!.length))), lost: [n] };
    },
  },
  {
    kind: "a raw line break in a string",
    named: ["raw-line-break", "split-record"],
    harm(lines, random) {
      const places = lines.flatMap((line, n) => (/[^\\]\\n/.test(line) ? [n] : []));
      if (places.length === 0) return null;
      const n = random.pick(places);
      return { bytes: whole(without(lines, n, lines[n]!.replace(/([^\\])\\n/, "$1\n"))), lost: [] };
    },
  },
  {
    kind: "a record over two lines",
    named: ["split-record"],
    harm(lines, random) {
      const n = anywhere(lines, random);
      const commas = [...lines[n]!.matchAll(/,/g)].map(({ index }) => index);
      const splits = commas
        .map((at) => `${lines[n]!.slice(0, at + 1)}\n${lines[n]!.slice(at + 1)}`)
        .filter((text) => isJson(text));
      return splits.length === 0 ? null : { bytes: whole(without(lines, n, random.pick(splits))), lost: [] };
    },
  },
  {
    kind: "the last brace is missing",
    named: ["unclosed-record"],
    harm(lines, random) {
      const n = anywhere(lines, random);
      return { bytes: whole(without(lines, n, lines[n]!.slice(0, -1))), lost: [] };
    },
  },
  {
    kind: "a byte that is not UTF-8",
    named: ["invalid-utf8"],
    harm(lines, random) {
      // In what somebody said: names of fields and kinds have no character that could lose a part.
      const wordsIn = (n: number) => [...lines[n]!.matchAll(/(?<=[a-z] )[a-z]{3}/g)].map(({ index }) => index + 1);
      let n = anywhere(lines, random);
      for (let tries = 0; wordsIn(n).length === 0 && tries < 200; tries++) n = anywhere(lines, random);
      const letters = wordsIn(n);
      if (letters.length === 0) return null;
      const at = random.pick(letters);
      const line = lines[n]!;
      const parts = [whole(lines.slice(0, n)), line.slice(0, at), Buffer.from([0xe9]), line.slice(at), "\n"];
      const rest = whole(lines.slice(n + 1));
      return { bytes: Buffer.concat([...parts, rest].map((part) => Buffer.from(part as string))), lost: [n] };
    },
  },
  {
    kind: "a byte order mark",
    named: ["byte-order-mark"],
    harm: (lines) => ({ bytes: Buffer.concat([Buffer.from("\ufeff"), whole(lines)]), lost: [] }),
  },
  { kind: "CR LF", named: ["crlf"], harm: (lines) => ({ bytes: whole(lines.map((line) => `${line}\r`)), lost: [] }) },
  {
    kind: "garbage between records",
    named: ["garbage", "torn-record"],
    harm(lines, random) {
      const n = behindHeader(lines, random);
      const noise = Array.from({ length: 1 + random.below(60) }, () => random.pick([..."#%&@!;x{}]["])).join("");
      return { bytes: whole(lines.toSpliced(n, 0, `%${noise}`)), lost: [] };
    },
  },
  { kind: "no header", named: HEADER, harm: (lines) => ({ bytes: whole(lines.slice(1)), lost: [0] }) },
  {
    kind: "half a header",
    // Sometimes only its last brackets are gone.
    named: [...HEADER, "unclosed-record"],
    harm(lines, random) {
      return { bytes: whole(without(lines, 0, lines[0]!.slice(0, inside(lines[0]!, random)))), lost: [0] };
    },
  },
  {
    kind: "garbage in place of the header",
    named: HEADER,
    harm: (lines) => ({ bytes: whole(without(lines, 0, "\u0001garbage")), lost: [0] }),
  },
  {
    kind: "an empty file",
    named: ["empty-file"],
    harm: (lines) => ({ bytes: Buffer.alloc(0), lost: [...lines.keys()] }),
  },
  {
    kind: "the whole file twice",
    named: ["doubled-file", "doubled-record"],
    harm: (lines) => ({ bytes: whole([...lines, ...lines]), lost: [] }),
  },
];

/** A change of whole lines, such as one that is gone. */
export function linesDamage(
  kind: string,
  named: readonly string[],
  change: (
    lines: readonly string[],
    random: Random,
  ) => { readonly lines: readonly string[]; readonly lost: number[] } | null,
): LineDamage {
  return {
    kind,
    named,
    harm(lines, random) {
      const changed = change(lines, random);
      return changed && { bytes: whole(changed.lines), lost: changed.lost };
    },
  };
}

/** One of the lines that fit is gone. */
export function lineGone(kind: string, named: readonly string[], fits: (line: string) => boolean): LineDamage {
  return linesDamage(kind, named, (lines, random) => {
    const places = lines.flatMap((line, n) => (n > 0 && n < lines.length - 1 && fits(line) ? [n] : []));
    if (places.length === 0) return null;
    const n = random.pick(places);
    return { lines: without(lines, n), lost: [n] };
  });
}

export function lineTwice(fits: (line: string) => boolean): LineDamage {
  return linesDamage("a record twice", ["doubled-record"], (lines, random) => {
    const places = lines.flatMap((line, n) => (n > 0 && fits(line) ? [n] : []));
    if (places.length === 0) return null;
    const n = random.pick(places);
    return { lines: lines.toSpliced(n, 0, lines[n]!), lost: [] };
  });
}

/** A line is changed into another that is a record still. */
export function lineChanged(
  kind: string,
  named: readonly string[],
  change: (line: string) => string | null,
): LineDamage {
  return linesDamage(kind, named, (lines, random) => {
    const places = lines.flatMap((line, n) => {
      const other = change(line);
      return other === null || other === line ? [] : [{ n, other }];
    });
    if (places.length === 0) return null;
    const { n, other } = random.pick(places);
    return { lines: without(lines, n, other), lost: [n] };
  });
}

/** The line that fits `second` is moved before the one that fits `first`, for a pair that belongs together. */
export function lineMoved(
  kind: string,
  named: readonly string[],
  pairs: (lines: readonly string[]) => readonly (readonly [first: number, second: number])[],
): LineDamage {
  return linesDamage(kind, named, (lines, random) => {
    const found = pairs(lines);
    if (found.length === 0) return null;
    const [first, second] = random.pick(found);
    const moved = lines.toSpliced(second, 1).toSpliced(first, 0, lines[second]!);
    return { lines: moved, lost: [] };
  });
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

import { readFileSync, writeFileSync } from "node:fs";
import type { Agent, ProblemKind, SessionPlace } from "../../src/index.ts";
import { LINE_DAMAGE, linesOf, type Random } from "./line-damage.ts";

/** What a campaign does to the sessions of any agent: one damage harms the files of one session, at a random place. */

/** A session in a home of its own, which a damage may change. */
export interface Target {
  readonly agent: Agent;
  readonly session: SessionPlace;
  readonly home: string;
  readonly random: Random;
}

export interface SessionDamage {
  /** In words; unique for an agent. */
  readonly name: string;
  /** The diagnosis must name at least one of them. If there are none, it may also find nothing. */
  readonly named: readonly ProblemKind[];
  /** Everything can still be read: nothing may be missing after the fix, and nothing may be made up. */
  readonly isLossless: boolean;
  /** Problems that are still reported after the fix, because nothing can be done about them. */
  readonly leaves?: readonly ProblemKind[];
  /** False if this session has no such place; it is then as it was. */
  harm(target: Target): boolean;
}

/** Damage to the bytes of the session's file. */
export function bytesDamage(
  damage: Omit<SessionDamage, "harm">,
  change: (bytes: Buffer, random: Random) => Buffer | null,
): SessionDamage {
  return {
    ...damage,
    harm({ session, random }) {
      const bytes = readFileSync(session.path);
      const harmed = change(bytes, random);
      if (harmed === null || harmed.equals(bytes)) return false;
      writeFileSync(session.path, harmed);
      return true;
    },
  };
}

/** Damage to its lines: `change` gets the lines, and the number of one of those that `isPlace` finds. */
export function lineDamage(
  damage: Omit<SessionDamage, "harm">,
  isPlace: (line: string, at: number, lines: readonly string[]) => boolean,
  change: (lines: string[], at: number, random: Random) => unknown,
): SessionDamage {
  return bytesDamage(damage, (bytes, random) => {
    const lines = linesOf(bytes).map((line) => line.toString("utf8"));
    const places = lines.flatMap((line, at) => (isPlace(line, at, lines) ? [at] : []));
    if (places.length === 0) return null;
    const at = pick(places, random);
    return change(lines, at, random) === false ? null : Buffer.from(lines.map((line) => `${line}\n`).join(""));
  });
}

export const pick = <T>(all: readonly T[], random: Random): T => all[Math.floor(random() * all.length)]!;
const below = (max: number, random: Random): number => Math.floor(random() * max);

/** What happens to the text of any file with one record in each line. */
export const TEXT_DAMAGE: readonly SessionDamage[] = LINE_DAMAGE.map(({ kind, isLossless, apply }) =>
  bytesDamage({ name: kind, named: [kind], isLossless }, (bytes, random) => {
    const lines = linesOf(bytes);
    const places = lines.map((_, at) => at).filter((at) => apply(lines, at, () => 0.5) !== null);
    return places.length === 0 ? null : apply(lines, pick(places, random), random);
  }),
);

const HEADER = ["header-missing", "header-damaged"] as const;

/** For formats that begin with a header. */
export const HEADER_DAMAGE: readonly SessionDamage[] = [
  lineDamage(
    { name: "no header", named: HEADER, isLossless: true },
    (_, at) => at === 0,
    (lines) => lines.shift(),
  ),
  lineDamage(
    { name: "half a header", named: [...HEADER, "unclosed-record"], isLossless: true },
    (_, at) => at === 0,
    (lines, at, random) => {
      lines[at] = lines[at]!.slice(0, 1 + below(lines[at]!.length - 1, random));
    },
  ),
  lineDamage(
    { name: "half a header, glued to the next record", named: [...HEADER, "glued-records"], isLossless: true },
    (_, at, lines) => at === 0 && lines.length > 1,
    // Behind a comma, a record could be a part of the half one.
    (lines, _, random) =>
      lines.splice(
        0,
        2,
        lines[0]!.slice(0, 1 + below(lines[0]!.length - 1, random)).replace(/[,[:{]+$/, "") + lines[1]!,
      ),
  ),
  lineDamage(
    { name: "garbage for a header", named: HEADER, isLossless: true },
    (_, at) => at === 0,
    (lines) => {
      lines[0] = "\u0001garbage";
    },
  ),
  lineDamage(
    { name: "zeros for a header", named: [...HEADER, "nul-run"], isLossless: true },
    (_, at) => at === 0,
    (lines) => {
      lines[0] = "\0".repeat(lines[0]!.length);
    },
  ),
];

/** What nobody listed. */
export const WILD_DAMAGE: readonly SessionDamage[] = [
  bytesDamage({ name: "wild: noise over some bytes", named: [], isLossless: false }, (bytes, random) => {
    const harmed = Buffer.from(bytes);
    const at = below(bytes.length, random);
    const end = Math.min(bytes.length, at + 1 + below(200, random));
    for (let n = at; n < end; n++) harmed[n] = below(256, random);
    return harmed;
  }),
  bytesDamage({ name: "wild: a stretch cut out", named: [], isLossless: false }, (bytes, random) => {
    const at = below(bytes.length, random);
    return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + below(2_000, random))]);
  }),
  bytesDamage({ name: "wild: a stretch twice", named: [], isLossless: false }, (bytes, random) => {
    const at = below(bytes.length, random);
    const end = Math.min(bytes.length, at + 1 + below(4_000, random));
    return Buffer.concat([bytes.subarray(0, end), bytes.subarray(at)]);
  }),
  bytesDamage({ name: "wild: blocks of zeros", named: [], isLossless: false }, (bytes, random) => {
    const at = 512 * below(Math.ceil(bytes.length / 512), random);
    return Buffer.from(bytes).fill(0, at, Math.min(bytes.length, at + 512 * (1 + below(4, random))));
  }),
  bytesDamage({ name: "wild: the rest is gone", named: [], isLossless: false }, (bytes, random) =>
    bytes.subarray(0, 1 + below(bytes.length - 1, random)),
  ),
  lineDamage(
    { name: "wild: two lines swapped", named: [], isLossless: false },
    (_, at, lines) => at > 0 && at < lines.length - 1,
    (lines, at) => lines.splice(at, 2, lines[at + 1]!, lines[at]!),
  ),
];

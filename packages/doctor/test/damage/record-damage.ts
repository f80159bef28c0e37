import { lineDamage, pick, type SessionDamage } from "./session-damage.ts";

/** What happens to whole records of a format with one in each line: the places come from a few patterns. */
export interface Landmarks {
  /** Somebody says something in it. */
  readonly speech: RegExp;
  readonly result: RegExp;
  readonly call: RegExp;
  /** The input of a call, with what stands before it as the first group. */
  readonly input: RegExp;
  /** The text of a result, with what stands before it as the first group. */
  readonly output: RegExp;
  /** What may be missing without a sign. */
  readonly unnoticed?: RegExp;
}

const POISON = JSON.stringify(`\u0000\u0001\u0002PNG${"\u0000\u0007".repeat(100)}`).slice(1, -1);

export function recordDamage({
  speech,
  result,
  call,
  input,
  output,
  unnoticed = /$^/,
}: Landmarks): readonly SessionDamage[] {
  const isInside = (at: number, lines: readonly string[]): boolean =>
    at > 0 && lines.slice(at + 1).some((line) => speech.test(line));
  const lost = ["lost-record"] as const;
  return [
    lineDamage(
      { name: "record: lost", named: lost, isLossless: false },
      (line, at, lines) => at > 0 && at < lines.length - 1 && !unnoticed.test(line),
      (lines, at) => lines.splice(at, 1),
    ),
    lineDamage(
      { name: "record: speech lost", named: lost, isLossless: false },
      (line, at, lines) => speech.test(line) && isInside(at, lines),
      (lines, at) => lines.splice(at, 1),
    ),
    lineDamage(
      { name: "record: three lost", named: lost, isLossless: false },
      (line, at, lines) => at > 0 && at < lines.length - 4 && !unnoticed.test(line + lines[at + 3]!),
      (lines, at) => lines.splice(at, 3),
    ),
    lineDamage(
      { name: "record: result lost", named: [...lost, "call-without-result"], isLossless: false },
      (line, at, lines) => result.test(line) && isInside(at, lines),
      (lines, at) => lines.splice(at, 1),
    ),
    lineDamage(
      { name: "record: call lost", named: [...lost, "result-without-call"], isLossless: false },
      (line, at, lines) => call.test(line) && isInside(at, lines),
      (lines, at) => lines.splice(at, 1),
    ),
    lineDamage(
      { name: "record: doubled", named: ["doubled-record"], isLossless: true },
      (_, at) => at > 0,
      (lines, at) => lines.splice(at, 0, lines[at]!),
    ),
    lineDamage(
      { name: "record: doubled, far away", named: ["doubled-record"], isLossless: true },
      (_, at, lines) => at > 0 && at < lines.length - 3,
      (lines, at) => lines.splice(at + 3, 0, lines[at]!),
    ),
    lineDamage(
      { name: "record: result before its call", named: ["result-before-call", "lost-record"], isLossless: false },
      (line, at, lines) => call.test(line) && lines.slice(at).some((other) => result.test(other)),
      (lines, at) => {
        const from = lines.findIndex((other, index) => index > at && result.test(other));
        lines.splice(at, 0, ...lines.splice(from, 1));
      },
    ),
    lineDamage(
      { name: "record: call without input", named: ["bad-tool-input"], isLossless: false },
      (line) => call.test(line) && input.test(line),
      (lines, at, random) => {
        lines[at] = lines[at]!.replace(input, pick(["$1null", '$1"{\\"half"'], random));
      },
    ),
    lineDamage(
      { name: "record: binary output", named: ["poisoned-result"], isLossless: false },
      (line) => result.test(line) && output.test(line),
      (lines, at) => {
        const text = new RegExp(`${output.source}(?:[^"\\\\]|\\\\.)*"`);
        lines[at] = lines[at]!.replace(text, (_, before: string) => `${before}"${POISON}"`);
      },
    ),
    lineDamage(
      { name: "record: zeros in its place", named: ["nul-run"], isLossless: false },
      (_, at) => at > 0,
      (lines, at) => {
        lines[at] = "\0".repeat(Buffer.byteLength(lines[at]!));
      },
    ),
    lineDamage(
      {
        name: "record: half of it, glued to the next",
        named: ["glued-records", "torn-record", "garbage"],
        isLossless: false,
      },
      (_, at, lines) => at > 0 && at < lines.length - 1,
      (lines, at, random) => {
        const half = lines[at]!.slice(0, 1 + Math.floor(random() * (lines[at]!.length - 1))).replace(/[,[:{]+$/, "");
        lines.splice(at, 2, half + lines[at + 1]!);
      },
    ),
  ];
}

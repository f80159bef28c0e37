import type { ProblemKind } from "../../src/index.ts";
import { fileOf, type Random } from "./line-damage.ts";

/** What happens to whole records of Claude Code. */

interface Line {
  readonly type: string;
  readonly uuid?: string;
  readonly parentUuid?: string | null;
  message?: { role: string; content: string | Record<string, unknown>[] };
}
export const parse = (line: Buffer): Line => JSON.parse(line.toString("utf8"));
const blocksOf = (line: Line): Record<string, unknown>[] =>
  line.uuid !== undefined && Array.isArray(line.message?.content) ? line.message.content : [];
const has = (line: Line, type: string): boolean => blocksOf(line).some((block) => block["type"] === type);

/** What happens to whole records. */
export const RECORD_DAMAGE: readonly {
  readonly kind: ProblemKind;
  apply(lines: readonly Buffer[], at: number, random: Random): Buffer | null;
}[] = [
  {
    kind: "lost-record",
    apply(lines, at) {
      const { uuid } = parse(lines[at]!);
      const isParent = lines.some((line) => parse(line).parentUuid === uuid);
      return uuid && isParent ? fileOf(lines.toSpliced(at, 1)) : null;
    },
  },
  {
    kind: "doubled-record",
    apply: (lines, at) => (parse(lines[at]!).uuid ? fileOf(lines.toSpliced(at, 0, lines[at]!)) : null),
  },
  {
    kind: "bad-tool-input",
    apply(lines, at) {
      const line = parse(lines[at]!);
      if (!has(line, "tool_use")) return null;
      for (const block of blocksOf(line)) block["input"] = null;
      return fileOf(lines.toSpliced(at, 1, Buffer.from(JSON.stringify(line))));
    },
  },
  {
    kind: "result-without-call",
    apply: (lines, at) =>
      has(parse(lines[at]!), "tool_use") && isAnswered(lines, at) ? fileOf(lines.toSpliced(at, 1)) : null,
  },
  {
    kind: "call-without-result",
    apply(lines, at) {
      const isInside = lines.slice(at + 1).some((line) => parse(line).type === "assistant");
      return has(parse(lines[at]!), "tool_result") && isInside ? fileOf(lines.toSpliced(at, 1)) : null;
    },
  },
  {
    kind: "poisoned-result",
    apply(lines, at) {
      const line = parse(lines[at]!);
      if (!has(line, "tool_result")) return null;
      for (const block of blocksOf(line)) block["content"] = `\u0000\u0001\u0002PNG\ud800${"\u0000".repeat(200)}`;
      return fileOf(lines.toSpliced(at, 1, Buffer.from(JSON.stringify(line))));
    },
  },
];

function isAnswered(lines: readonly Buffer[], at: number): boolean {
  const ids = blocksOf(parse(lines[at]!)).map((block) => block["id"]);
  return lines.some((line) => blocksOf(parse(line)).some((block) => ids.includes(block["tool_use_id"])));
}

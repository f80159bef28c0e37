import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  AGENTS,
  Door,
  diagnose,
  fix,
  listBackups,
  type ProblemKind,
  sessionsHere,
  undo,
} from "../../../../src/index.ts";
import { fileOf, LINE_DAMAGE, linesOf, type Random, seeded } from "../../../damage/line-damage.ts";
import { listRecordings, placeRecording } from "../../../real/recording.ts";

let scratch = "";
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), "holdfast-doctor-fix-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const SEED = Number(process.env["HOLDFAST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
const again = `HOLDFAST_SEED=${SEED} npx vitest run packages/doctor/test/unit/agents/claude-code/fix.test.ts`;

/** How many places each session is damaged at. */
const PLACES = Number(process.env["HOLDFAST_PLACES"] ?? 2);

interface Line {
  readonly type: string;
  readonly uuid?: string;
  readonly parentUuid?: string | null;
  message?: { role: string; content: string | Record<string, unknown>[] };
}
const parse = (line: Buffer): Line => JSON.parse(line.toString("utf8"));
const blocksOf = (line: Line): Record<string, unknown>[] =>
  line.uuid !== undefined && Array.isArray(line.message?.content) ? line.message.content : [];
const has = (line: Line, type: string): boolean => blocksOf(line).some((block) => block["type"] === type);

/** What happens to whole records. */
const RECORD_DAMAGE: readonly {
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

/** Places a recording in a folder of its own. */
function place(story: string, name: string) {
  const recording = listRecordings("claude-code").find((each) => each.story === story)!;
  const { home } = placeRecording(recording, join(scratch, name));
  using door = new Door();
  const [found] = [...sessionsHere(AGENTS, { environment: {}, home }, door)];
  return { ...found!, backups: join(scratch, name, "backups") };
}

const CASES = [
  ...LINE_DAMAGE.map((damage) => ({ ...damage })),
  ...RECORD_DAMAGE.map((damage) => ({ ...damage, isLossless: false })),
];

describe(`Claude Code, repaired (again: ${again})`, () => {
  for (const { kind, isLossless, apply } of CASES) {
    test(kind, async () => {
      const random = seeded(SEED);
      let tried = 0;
      for (const story of ["work", "compacted", "killed-resumed", "subagent"]) {
        const { agent, session, backups } = place(story, `${kind}-${story}`);
        const whole = readFileSync(session.path);
        const lines = linesOf(whole);
        const places = lines.map((_, at) => at).filter((at) => apply(lines, at, seeded(0)) !== null);
        const chosen = new Set(Array.from({ length: PLACES }, () => places[Math.floor(random() * places.length)]));
        for (const at of chosen) {
          if (at === undefined) continue;
          tried++;
          const damaged = apply(lines, at, random)!;
          writeFileSync(session.path, damaged);
          const where = `${kind} in ${story} at line ${at + 1}; ${again}`;
          const before = await diagnose(agent, session);
          expect(
            before.problems.map((problem) => problem.kind),
            where,
          ).toContain(kind);

          const { mode } = statSync(session.path);
          const fixed = await fix(agent, session, { backups });
          expect(fixed?.diagnosis.problems, where).toEqual([]);
          expect(statSync(session.path).mode, where).toBe(mode);
          const after = readFileSync(session.path);
          // What was not touched by the damage is there, byte for byte, once.
          const left = new Map<string, number>();
          for (const line of linesOf(after))
            left.set(line.toString("latin1"), (left.get(line.toString("latin1")) ?? 0) + 1);
          const untouched = linesOf(damaged).filter((line) => lines.some((each) => each.equals(line)));
          for (const line of new Set(untouched.map((each) => each.toString("latin1")))) {
            if (kind === "lost-record" || kind.startsWith("result") || kind.startsWith("call")) continue;
            expect(left.has(line), where).toBe(true);
          }
          if (isLossless) expect(linesOf(after).map(parse), where).toEqual(lines.map(parse));
          expect(await fix(agent, session, { backups }), where).toBe(null);
          expect(readFileSync(session.path), where).toEqual(after);

          using door = new Door();
          const backup = listBackups(backups, door).find(({ id }) => id === fixed!.backup)!;
          undo(backups, backup);
          expect(readFileSync(session.path), where).toEqual(damaged);
        }
      }
      expect(tried).toBeGreaterThan(0);
    });
  }

  test("a healthy session is left alone", async () => {
    for (const recording of listRecordings("claude-code")) {
      const { agent, session, backups } = place(recording.story, `healthy-${recording.story}`);
      expect(await fix(agent, session, { backups })).toBe(null);
    }
  });
});

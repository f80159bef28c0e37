import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AGENTS, Door, diagnose, fix, listBackups, sessionsHere, undo } from "../../../../src/index.ts";
import { parse, RECORD_DAMAGE } from "../../../damage/claude-code-damage.ts";
import { LINE_DAMAGE, linesOf, seeded } from "../../../damage/line-damage.ts";
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

import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { AGENTS, Door, diagnose, fix, listBackups, sessionsHere, undo } from "../../../src/index.ts";
import { listRecordings, placeRecording } from "../../real/recording.ts";

let scratch = "";
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "holdfast-doctor-permissions-"));
});
afterEach(() => rmSync(scratch, { recursive: true, force: true }));

for (const format of ["claude-code", "codex", "pi", "copilot", "gemini"])
  for (const mode of [0o000, 0o200, 0o400, 0o444])
    test(`${format}: permissions of ${mode.toString(8)} are found and restored, and undo brings them back`, async () => {
      const recording = listRecordings(format).find(({ story }) => story === "work")!;
      const { home } = placeRecording(recording, scratch);
      using door = new Door();
      const [found] = [...sessionsHere(AGENTS, { environment: {}, home }, door)];
      const { agent, session } = found!;
      const whole = readFileSync(session.path);
      // Codex's index counts bytes, and the paths in this copy have other lengths.
      const others = (await diagnose(agent, session)).problems.map(({ kind }) => kind);
      chmodSync(session.path, mode);
      const { problems } = await diagnose(agent, session);
      expect(problems.map(({ kind }) => kind)).toContain("wrong-permissions");
      expect(problems.map(({ kind }) => kind)).not.toContain("unopenable");
      const backups = join(scratch, "backups");
      const fixed = await fix(agent, session, { backups });
      expect(fixed?.diagnosis.problems.map(({ kind }) => kind)).toEqual(others);
      expect(statSync(session.path).mode & 0o777).toBe(mode | 0o600);
      expect(readFileSync(session.path)).toEqual(whole);
      undo(backups, listBackups(backups, door)[0]!);
      expect(statSync(session.path).mode & 0o777).toBe(mode);
    });

test("a damaged file that cannot be read: the permission first, then what is in it", async () => {
  const recording = listRecordings("pi").find(({ story }) => story === "work")!;
  const { home } = placeRecording(recording, scratch);
  using door = new Door();
  const [found] = [...sessionsHere(AGENTS, { environment: {}, home }, door)];
  const { agent, session } = found!;
  writeFileSync(session.path, readFileSync(session.path).subarray(0, -20));
  chmodSync(session.path, 0o000);
  const backups = join(scratch, "backups");
  const first = await fix(agent, session, { backups });
  expect(first?.plan.changes.map(({ type }) => type)).toEqual(["mode"]);
  expect(first?.diagnosis.problems.length).toBeGreaterThan(0);
  const second = await fix(agent, session, { backups });
  expect(second?.diagnosis.problems).toEqual([]);
});

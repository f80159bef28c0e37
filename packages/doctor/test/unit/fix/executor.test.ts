import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Executor, stampOf } from "../../../src/fix/executor.ts";
import { Door, isUndone, listBackups, undo } from "../../../src/index.ts";
import { applyPlan } from "./apply-plan.ts";
import { type Fault, failAt } from "./fault.ts";
import { fillFolder, planIn, stateOf } from "./plan-of-everything.ts";

let scratch = "";
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "holdfast-doctor-executor-"));
});
afterEach(() => rmSync(scratch, { recursive: true, force: true }));

const OLD = {
  edited: "one two three 640",
  moved: expect.stringMatching(/^moved/),
  parts: "folder",
  "parts/a": expect.stringMatching(/^part/),
  replaced: expect.stringMatching(/^old/),
  sealed: "? 200",
};

function backupsIn(folder: string) {
  using door = new Door();
  return listBackups(join(folder, "backups"), door);
}

/** Whether the fault came: at the first call that is not made any more, the plan was applied before it. */
function applyWith(folder: string, at: number, fault: Fault): boolean {
  using failure = failAt(at, fault);
  try {
    applyPlan(folder);
  } catch (error) {
    if (!failure.hasFailed) throw error;
  }
  return failure.hasFailed;
}

const draftsIn = (folder: string): string[] =>
  Object.keys(stateOf(folder)).filter((name) => name.includes(".holdfast-"));

describe("a plan with a change of each type", () => {
  test("is applied, and undone to the byte and the permission; undone again, nothing happens", () => {
    fillFolder(scratch);
    expect(stateOf(scratch)).toEqual(OLD);
    applyPlan(scratch);
    expect(stateOf(scratch)).toMatchObject({
      edited: "one TWO three 640",
      "made/here/file": "made 600",
      "other/project/moved": expect.stringMatching(/^moved/),
      "other/project/parts/a": expect.stringMatching(/^part/),
      replaced: expect.stringMatching(/^new/),
      sealed: "sealed 600",
    });
    expect(existsSync(join(scratch, "agent/moved"))).toBe(false);
    const [backup] = backupsIn(scratch);
    expect(isUndone(join(scratch, "backups"), backup!)).toBe(false);
    for (let turn = 0; turn < 2; turn++) {
      undo(join(scratch, "backups"), backup!);
      expect(stateOf(scratch)).toEqual(OLD);
      expect(isUndone(join(scratch, "backups"), backup!)).toBe(true);
    }
  });

  test("killed at any call that writes: each file is old or new, and undo finds its way back", () => {
    let kills = 0;
    for (; kills < 200; kills++) {
      const folder = join(scratch, String(kills));
      fillFolder(folder);
      if (!applyWith(folder, kills + 1, "killed")) break;
      const now = stateOf(folder);
      const where = `call ${kills + 1}`;
      expect(now["edited"], where).toMatch(/^one (?:two|TWO) three 640$/);
      expect(now["replaced"], where).toMatch(/^(?:old|new) /);
      expect([now["moved"], now["other/project/moved"]].filter(Boolean), where).toHaveLength(1);
      expect([now["parts/a"], now["other/project/parts/a"]].filter(Boolean), where).toHaveLength(1);
      expect(now["made/here/file"] ?? "made 600", where).toBe("made 600");
      const [backup] = backupsIn(folder);
      if (backup) undo(join(folder, "backups"), backup);
      // Folders and drafts that it made may be left: no agent lists them.
      expect(stateOf(folder), where).toMatchObject(OLD);
      applyPlan(folder);
      expect(stateOf(folder), where).toMatchObject({ edited: "one TWO three 640", "made/here/file": "made 600" });
    }
    expect(kills).toBeGreaterThan(20);
    expect(kills).toBeLessThan(200);
  });

  test("killed while it undoes: undone again, everything is as it was", () => {
    let kills = 0;
    for (; kills < 200; kills++) {
      const folder = join(scratch, String(kills));
      fillFolder(folder);
      applyPlan(folder);
      const [backup] = backupsIn(folder);
      {
        using failure = failAt(kills + 1, "killed");
        try {
          undo(join(folder, "backups"), backup!);
        } catch (error) {
          if (!failure.hasFailed) throw error;
        }
        if (!failure.hasFailed) break;
      }
      undo(join(folder, "backups"), backup!);
      expect(stateOf(folder), `call ${kills + 1}`).toMatchObject(OLD);
    }
    expect(kills).toBeGreaterThan(10);
    expect(kills).toBeLessThan(200);
  });

  test("a doctor that was really killed: the next one removes what it left", () => {
    let drafts = 0;
    for (const at of [2, 5, 8]) {
      const folder = join(scratch, String(at));
      fillFolder(folder);
      const script = join(import.meta.dirname, "apply-plan.ts");
      const command = ["--conditions=holdfast-source", script, folder, String(at)];
      expect(spawnSync(process.execPath, command).signal).toBe("SIGKILL");
      drafts += draftsIn(folder).length;
      applyPlan(folder);
      expect(draftsIn(folder)).toEqual([]);
    }
    expect(drafts).toBeGreaterThan(0);
  });

  test("with a full disk at any call: nothing was changed", () => {
    let refusals = 0;
    for (; refusals < 200; refusals++) {
      const folder = join(scratch, String(refusals));
      fillFolder(folder);
      if (!applyWith(folder, refusals + 1, "full")) break;
      expect(stateOf(folder), `call ${refusals + 1}`).toEqual(OLD);
      expect(backupsIn(folder), `call ${refusals + 1}`).toEqual([]);
    }
    expect(refusals).toBeGreaterThan(20);
    expect(refusals).toBeLessThan(200);
  });
});

describe("what is not as the plan found it", () => {
  const refusals: Record<string, (folder: string) => void> = {
    "a file in the place of a new one": (folder) => {
      mkdirSync(join(folder, "agent/made/here"), { recursive: true });
      writeFileSync(join(folder, "agent/made/here/file"), "another's");
    },
    "a file in the place of a moved one": (folder) => {
      mkdirSync(join(folder, "agent/other/project"), { recursive: true });
      writeFileSync(join(folder, "agent/other/project/moved"), "another's");
    },
    "a folder in the place of a moved one": (folder) =>
      mkdirSync(join(folder, "agent/other/project/parts"), { recursive: true }),
    "a link in the place of a file": (folder) => {
      unlinkSync(join(folder, "agent/edited"));
      symlinkSync("replaced", join(folder, "agent/edited"));
    },
    "a FIFO in the place of a file": (folder) => {
      unlinkSync(join(folder, "agent/edited"));
      spawnSync("mkfifo", [join(folder, "agent/edited")]);
    },
    "a file that grew": (folder) => appendFileSync(join(folder, "agent/edited"), "!"),
    "a file that is gone": (folder) => unlinkSync(join(folder, "agent/sealed")),
  };
  for (const [what, change] of Object.entries(refusals)) {
    test(`${what}: refused, and nothing is changed`, () => {
      fillFolder(scratch);
      change(scratch);
      const names = readdirSync(join(scratch, "agent"), { recursive: true }).toSorted();
      expect(() => applyPlan(scratch)).toThrow();
      expect(readdirSync(join(scratch, "agent"), { recursive: true }).toSorted()).toEqual(names);
      expect(backupsIn(scratch)).toEqual([]);
    });
  }

  test("a file of the same size that was written since it was read", () => {
    fillFolder(scratch);
    const edited = join(scratch, "agent/edited");
    const stamps = new Map([[edited, stampOf(edited)!]]);
    writeFileSync(edited, "ONE two three");
    using door = new Door();
    expect(() => new Executor(planIn(scratch), stamps, door).draft()).toThrow("wrote to it meanwhile");
  });

  test("undo refuses what was changed since, and changes nothing", () => {
    fillFolder(scratch);
    applyPlan(scratch);
    const [backup] = backupsIn(scratch);
    writeFileSync(join(scratch, "agent/made/here/file"), "the agent's");
    const before = stateOf(scratch);
    expect(() => undo(join(scratch, "backups"), backup!)).toThrow("changed since the fix");
    expect(stateOf(scratch)).toEqual(before);
  });
});

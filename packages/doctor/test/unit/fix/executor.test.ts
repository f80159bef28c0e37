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

function apply(folder: string): void {
  using door = new Door();
  const executor = new Executor(planIn(folder), new Map(), door);
  try {
    executor.draft();
    executor.publish(join(folder, "backups"), { agent: "test", session: "s" });
  } finally {
    executor.discard();
  }
}

function backupsIn(folder: string) {
  using door = new Door();
  return listBackups(join(folder, "backups"), door);
}

/** In a process of its own; null when it came to its end. */
function applyWith(folder: string, at: number, fault: string): "killed" | "refused" | null {
  const script = join(import.meta.dirname, "apply-plan.ts");
  const { signal, status, stderr } = spawnSync(
    process.execPath,
    ["--conditions=holdfast-source", script, folder, String(at), fault],
    { encoding: "utf8" },
  );
  if (signal === "SIGKILL") return "killed";
  if (status === 7) return "refused";
  expect([status, stderr]).toEqual([0, expect.anything()]);
  return null;
}

describe("a plan with a change of each type", () => {
  test("is applied, and undone to the byte and the permission; undone again, nothing happens", () => {
    fillFolder(scratch);
    expect(stateOf(scratch)).toEqual(OLD);
    apply(scratch);
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
      if (applyWith(folder, kills + 1, "kill") === null) break;
      const now = stateOf(folder);
      const whole = Object.fromEntries(Object.entries(now).filter(([name]) => !name.includes(".holdfast-")));
      expect(whole["edited"], `call ${kills + 1}`).toMatch(/^one (?:two|TWO) three 640$/);
      expect(whole["replaced"], `call ${kills + 1}`).toMatch(/^(?:old|new) /);
      expect([whole["moved"], whole["other/project/moved"]].filter(Boolean), `call ${kills + 1}`).toHaveLength(1);
      expect([whole["parts/a"], whole["other/project/parts/a"]].filter(Boolean)).toHaveLength(1);
      expect(whole["made/here/file"] ?? "made 600").toBe("made 600");
      const [backup] = backupsIn(folder);
      if (backup) undo(join(folder, "backups"), backup);
      // Folders and drafts that the dead process made may be left: no agent lists them.
      expect(stateOf(folder), `call ${kills + 1}`).toMatchObject(OLD);
      // Another doctor comes to the end, and nothing of the dead one is left.
      apply(folder);
      expect(Object.keys(stateOf(folder)).filter((name) => name.includes(".holdfast-"))).toEqual([]);
    }
    expect(kills).toBeGreaterThan(20);
    expect(kills).toBeLessThan(200);
  });

  test("with a full disk at any call: nothing was changed, or everything", () => {
    let refusals = 0;
    for (; refusals < 200; refusals++) {
      const folder = join(scratch, String(refusals));
      fillFolder(folder);
      if (applyWith(folder, refusals + 1, "full") === null) break;
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
      expect(() => apply(scratch)).toThrow();
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
    apply(scratch);
    const [backup] = backupsIn(scratch);
    writeFileSync(join(scratch, "agent/made/here/file"), "the agent's");
    const before = stateOf(scratch);
    expect(() => undo(join(scratch, "backups"), backup!)).toThrow("changed since the fix");
    expect(stateOf(scratch)).toEqual(before);
  });
});

import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Receipt } from "../../src/demo/receipt.ts";
import { bin, ended, type Home, temporaryHome } from "../command.ts";

const ESCAPE = "\x1b";
/** Quick, and still slow enough to be hit. */
const PACE = { HOLDFAST_OFFLINE_DELAY_MS: "6" };

function around(home: Home): { readonly tmp: string; readonly env: Record<string, string> } {
  const tmp = join(home.path, "tmp");
  mkdirSync(tmp);
  return { tmp, env: { ...PACE, TMPDIR: tmp } };
}

/** Processes that work below a folder. */
function processesIn(folder: string): string[] {
  return readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      const command = readFileSync(`/proc/${name}/cmdline`, "utf8");
      return command.includes(folder) || readlinkSync(`/proc/${name}/cwd`).startsWith(folder);
    } catch (error) {
      // It has ended since, or is somebody else's.
      if (["ENOENT", "ESRCH", "EACCES"].includes((error as NodeJS.ErrnoException).code ?? "")) return false;
      throw error;
    }
  });
}

describe("holdfast demo", () => {
  test.concurrent("P1, P4, P5: killed while text streams, while a command runs, in the compaction and with sub-agents at work, the turn is completed", async () => {
    using home = temporaryHome();
    const { tmp, env } = around(home);
    const { code, stdout, stderr } = await home.run(["demo", "--kills", "4", "--seed", "1"], { env });
    expect(stderr).toBe("");
    const words = stdout.replaceAll(/\n {5,}/g, " ");
    expect(words.match(/KILL -9 {3}process \d+, .*/g)).toEqual([
      expect.stringContaining("in mid-sentence"),
      expect.stringContaining("while the command is running"),
      expect.stringContaining("during the compaction, as the new epoch is written"),
      expect.stringContaining("while two sub-agents are working"),
    ]);
    expect(words).toMatch(/journal: shell: sh release.sh: started, outcome unknown; its process \d+ was not killed/);
    expect(words).toMatch(/journal: the compaction (did not take|took) effect: the (old|new) conversation is intact/);
    expect(words.match(/journal: task .*: started, outcome unknown/g)).toHaveLength(2);
    expect(words).toMatch(/yes {2}(\d+) of \1 acknowledged records are there and unchanged/);
    expect(words).toMatch(/yes {2}no effect happened twice: "2.4 released" once/);
    expect(words).toMatch(/yes {2}\d+ files, all identical to those of an undisturbed agent/);
    expect(words).toContain("4 kills, one turn, nothing acknowledged lost.");
    expect(words).not.toMatch(/^ +NO /m);
    expect(stdout).not.toContain(ESCAPE);
    expect(stdout.split("\n").filter((line) => line.length > 80 || line.endsWith(" "))).toEqual([]);
    expect(code).toBe(0);
    expect(readdirSync(tmp), "leaves nothing behind").toEqual([]);
    expect(readdirSync(home.path).sort(), "touches no store of the user's").toEqual(["tmp", "work"]);
  });

  test.concurrent("with a store that drops one record it says so, and exits 1", async () => {
    using home = temporaryHome();
    const { tmp, env } = around(home);
    const args = ["demo", "--kills", "2", "--seed", "3", "--lose-one", "--json"];
    const { code, stdout, stderr } = await home.run(args, { env });
    const receipt = JSON.parse(stdout) as Receipt;
    expect(stderr).toBe("");
    expect(receipt.verdict).toBe("broken");
    expect(receipt.kills.map(({ aim }) => aim)).toEqual(["text", "tools"]);
    expect(receipt.lost).toEqual([
      expect.stringMatching(/^the result of "edit src\/\w+\.js" \(call_\w+, acknowledged in life 2\): gone$/),
    ]);
    expect(receipt.there).toBe(receipt.acknowledged.records - 1);
    expect(receipt.damage).toEqual([`Record ${receipt.taken!.seq} is missing.`]);
    expect(receipt.changed).toEqual([`record ${receipt.taken!.seq} (tool.ended) is gone after death 2`]);
    // The work is done all the same.
    expect(receipt).toMatchObject({ completed: true, files: { different: [] }, requests: { violations: [] } });
    expect(code).toBe(1);
    expect(readdirSync(tmp)).toEqual([]);
  });

  test.concurrent("Ctrl+C ends it by that signal: no process and no folder is left", async () => {
    using home = temporaryHome();
    const { tmp, env } = around(home);
    // A group of its own: a terminal sends the signal to all processes in it.
    const child = spawn(process.execPath, [bin, "demo"], {
      detached: true,
      env: { PATH: process.env["PATH"], HOLDFAST_CONFIG: "", ...home.env, ...env },
    });
    let heard = "";
    let isStopped = false;
    child.stdout.on("data", (text: Buffer) => {
      heard += text;
      // In the worst moment: the command of a dead agent still runs. Once: the group may be gone at the next words.
      if (isStopped || !/while the command is running/.test(heard)) return;
      isStopped = true;
      process.kill(-child.pid!, "SIGINT");
    });
    const { signal, stderr } = await ended(child);
    expect({ signal, stderr }).toEqual({ signal: "SIGINT", stderr: "" });
    expect(readdirSync(tmp)).toEqual([]);
    expect(processesIn(tmp)).toEqual([]);
  });

  test.concurrent("a reader that goes away ends it: no process and no folder is left", async () => {
    using home = temporaryHome();
    const { tmp, env } = around(home);
    const child = home.start(["demo"], { env });
    let heard = "";
    child.stdout.on("data", (text: Buffer) => {
      heard += text;
      if (/The plan/.test(heard)) child.stdout.destroy();
    });
    const { code, stderr } = await ended(child);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(readdirSync(tmp)).toEqual([]);
    expect(processesIn(tmp)).toEqual([]);
  });

  test.concurrent.each([["--kills", "0"], ["--seed", "x"], ["--lose-one", "--kills", "1"], ["--kil"]])(
    "wrong usage: %s %s",
    async (...args) => {
      using home = temporaryHome();
      const { code, stdout, stderr } = await home.run(["demo", ...args]);
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toContain("holdfast: ");
    },
  );

  test.concurrent("npm start: from source, without a build; --keep leaves the folder, and says how to look into it", async () => {
    using home = temporaryHome();
    const { tmp, env } = around(home);
    const source = join(import.meta.dirname, "../../src/bin.ts");
    const args = ["--conditions=holdfast-source", source, "demo", "--kills", "1", "--keep"];
    const child = spawn(process.execPath, args, { env: { PATH: process.env["PATH"], ...home.env, ...env } });
    child.stdin.end();
    const { code, stdout, stderr } = await ended(child);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("1 kill, one turn, nothing acknowledged lost.");
    const path = join(tmp, readdirSync(tmp)[0]!);
    const store = /--store (\S+) ls/.exec(stdout.replaceAll(/\n +/g, " "))?.[1];
    expect(store).toBe(join(path, "killed/store"));
    const listed = await home.run(["--store", store!, "ls", "--all"], { env });
    expect(listed.stdout).toContain("holdfast demo");
  });
});

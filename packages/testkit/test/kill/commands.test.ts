import { spawn } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type JournalRecord, newId } from "holdfast";
import { describe, expect, test } from "vitest";
import type { DemoEvent } from "../../src/demo/events.ts";
import { type DemoReceipt, Ledger } from "../../src/demo/ledger.ts";

const programs = {
  start: fileURLToPath(new URL("../../src/demo/demo.ts", import.meta.url)),
  torture: fileURLToPath(new URL("../../src/kill/torture.ts", import.meta.url)),
};
const dropsOne = new URL("./stores/drops-one.ts", import.meta.url).href;
const ESCAPE = "\x1b";

/** The test runner may force colours on its children. */
const { FORCE_COLOR: _, ...plainEnvironment } = process.env;

interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(program: keyof typeof programs, ...args: string[]): Promise<Ran> {
  const child = spawn(process.execPath, ["--conditions=holdfast-source", programs[program], ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: plainEnvironment,
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, stdout, stderr };
}

describe("npm start", () => {
  test.each(["folder", "sqlite"])(
    "P1, P4, P5 on %s: killed in parallel tools and in mid-sentence, the turn is completed",
    async (store) => {
      const { code, stdout, stderr } = await run("start", "--store", store);
      expect(stderr).toBe("");
      const said = stdout.replaceAll(/\n {14}/g, " ");
      expect(said.match(/killed {4}SIGKILL/g)).toHaveLength(2);
      expect(said).toContain("survived  1 prompt, 1 answer, 1 tool result");
      expect(said).toContain("in doubt  publish had started");
      expect(said).toContain("in doubt  update_docs had started");
      expect(said).toContain("safe      notify_team never started");
      expect(said).toContain('survived  what had been streamed: "Release 2.4 is out.');
      expect(said).toContain("each effect once: publish, run_tests, look, update_docs, notify_team");
      expect(said).toContain("The receipt balances");
      expect(said).not.toMatch(/WRONG|NO {3}/);
      expect(stdout).not.toContain(ESCAPE);
      expect(stdout.split("\n").filter((line) => line.length > 80)).toEqual([]);
      expect(code).toBe(0);
      const place = /store (?:sqlite:)?(\S+)/.exec(stdout)?.[1];
      expect(existsSync(place!), "leaves nothing behind").toBe(false);
    },
  );

  test("the receipt does not balance if anything is lost, refused, repeated or left open", () => {
    const records = [
      { kind: "message", id: "m1" },
      { kind: "turn.ended", outcome: "completed" },
    ] as readonly object[] as readonly JournalRecord[];
    const said: DemoEvent[] = [1, 2, 3].flatMap(() => [
      { e: "opened", session: newId(), ms: 1, found: null, there: [] },
      { e: "request", messages: [{ role: "user", content: "hello" }] },
      { e: "kept", what: "message", id: "m1" },
    ]);
    const judged = (more: readonly DemoEvent[], world = ["publish"], journal = records): DemoReceipt => {
      const ledger = new Ledger();
      for (const event of [...said, ...more]) ledger.hear(event);
      ledger.check(journal);
      return ledger.receipt(world);
    };
    expect(judged([])).toMatchObject({ balances: true, lost: 0, kept: 3 });
    expect(judged([{ e: "kept", what: "tool.ended", id: "c1" }])).toMatchObject({ balances: false, lost: 1 });
    expect(judged([{ e: "request", messages: [] }])).toMatchObject({ balances: false, refused: [expect.any(String)] });
    expect(judged([], ["publish", "publish"])).toMatchObject({ balances: false });
    expect(judged([], ["publish"], records.slice(0, 1))).toMatchObject({ balances: false, completed: false });
  });

  test.concurrent.each([["--store", "floppy"], ["--kil"]])("wrong usage: %s %s", async (...args) => {
    const { code, stdout, stderr } = await run("start", ...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain("--help");
  });

  test("--help", async () => {
    const { code, stdout } = await run("start", "--help");
    expect(code).toBe(0);
    expect(stdout).toContain("npm start -- [options]");
  });
});

describe("npm run torture", () => {
  test("ends with a verdict, the seed and the command that repeats it", async () => {
    const { code, stdout, stderr } = await run("torture", "--kills", "12", "--store", "folder", "--seed", "5");
    expect(stdout).toContain("Nothing that was acknowledged is lost.");
    expect(stdout).toMatch(/lost 0 · other faults 0/);
    expect(stdout).toContain("npm run torture -- --kills 12 --store folder --durability power --seed 5");
    // The progress bar is for terminals.
    expect(stderr).toBe("");
    expect(code).toBe(0);
  });

  test("exits 1 on loss, names session and attempt, and leaves the store in place", async () => {
    const { code, stdout } = await run("torture", "--kills", "12", "--store", dropsOne, "--seed", "5");
    expect(stdout).toMatch(/fault in session \d+ \([0-9a-f-]{36}\): lost: attempt \d+/);
    const place = /left in (\S+)/.exec(stdout)?.[1];
    expect(place && existsSync(place)).toBe(true);
    rmSync(place!, { recursive: true });
    expect(code).toBe(1);
  });

  test.concurrent.each([
    ["--store", "floppy"],
    ["--durability", "none"],
    ["--kills", "1e3"],
    ["--dir", "/nowhere/at/all"],
  ])("wrong usage: %s %s", async (...args) => {
    const { code, stderr } = await run("torture", ...args);
    expect(code).toBe(2);
    expect(stderr).toContain(args[0]);
  });
});

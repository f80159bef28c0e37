import { spawn } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

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
  const child = spawn(process.execPath, ["--conditions=source", programs[program], ...args], {
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

/** The figure of a row of the receipt. */
function figure(stdout: string, row: string): number {
  const found = new RegExp(`^ *${row} +([\\d,]+) `, "m").exec(stdout);
  if (!found) throw new Error(`no row "${row}" in:\n${stdout}`);
  return Number(found[1]!.replaceAll(",", ""));
}

describe("npm start", () => {
  test("kills a writer in mid-append, reopens, checks, goes on, and shows a receipt that balances", async () => {
    const { code, stdout, stderr } = await run("start", "--kills", "4", "--seed", "11");
    expect(stderr).toBe("");
    expect(stdout.match(/SIGKILL (in the middle|between)/g)).toHaveLength(4);
    expect(stdout).toContain("The receipt balances");
    expect(figure(stdout, "lost")).toBe(0);
    expect(figure(stdout, "torn")).toBeGreaterThan(0);
    expect(figure(stdout, "bytes cut")).toBeGreaterThan(0);
    expect(figure(stdout, "recovered")).toBeGreaterThanOrEqual(figure(stdout, "acknowledged"));
    expect(figure(stdout, "attempted")).toBeGreaterThan(figure(stdout, "recovered"));
    expect(stdout).not.toContain(ESCAPE);
    expect(code).toBe(0);
  });

  test("says so, and exits 1, when a store drops one record", async () => {
    const { code, stdout } = await run("start", "--kills", "2", "--seed", "11", "--store", dropsOne);
    expect(stdout).toContain("WRONG     lost: attempt");
    expect(stdout).toContain("THE RECEIPT DOES NOT BALANCE");
    expect(figure(stdout, "lost")).toBeGreaterThan(0);
    expect(code).toBe(1);
  });

  test("leaves nothing behind", async () => {
    const { stdout } = await run("start", "--kills", "1", "--seed", "3");
    const place = /seed 3 · (\S+)/.exec(stdout)?.[1];
    expect(place).toBeDefined();
    expect(existsSync(place!)).toBe(false);
  });

  test.concurrent.each([["--kills", "0"], ["--kills", "many"], ["--kil"], ["--seed", "-1"]])(
    "wrong usage: %s %s",
    async (...args) => {
      const { code, stdout, stderr } = await run("start", ...args);
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toContain("--help");
    },
  );

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

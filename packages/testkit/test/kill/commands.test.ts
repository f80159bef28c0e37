import { spawn } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const programs = {
  torture: fileURLToPath(new URL("../../src/torture/torture.ts", import.meta.url)),
};
const dropsOne = new URL("./stores/drops-one.ts", import.meta.url).href;

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

describe("npm run torture", () => {
  test("ends with a verdict, the seed and the command that repeats it", async () => {
    const { code, stdout, stderr } = await run("torture", "--kills", "12", "--store", "folder", "--seed", "5");
    expect(stdout).toContain("No acknowledged record was lost.");
    expect(stdout).toMatch(/lost 0 · other faults 0/);
    expect(stdout).toContain("npm run torture -- --kills 12 --store folder --durability power --seed 5");
    // The progress bar is for terminals.
    expect(stderr).toBe("");
    expect(code).toBe(0);
  });

  test("exits 1 on loss, names session and attempt, and leaves the store in place", async () => {
    const { code, stdout } = await run("torture", "--kills", "12", "--store", dropsOne, "--seed", "5");
    expect(stdout).toMatch(/fault in session \d+ \([0-9a-f-]{36}\): lost: attempt \d+/);
    const place = /kept in (\S+)/.exec(stdout)?.[1];
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

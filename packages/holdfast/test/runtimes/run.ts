import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "vitest";
import { type Runtime, runtimes } from "../../../../scripts/runtimes.ts";

/** The package as a user gets it: without the condition `holdfast-source`, its name leads to what was built. */
export const everyRuntime: readonly Runtime[] = runtimes();
/** Node 24: the one that runs these tests, and with which sessions of other runtimes are read. */
export const thisNode = everyRuntime[0]!;
export const otherRuntimes = everyRuntime.slice(1);

/** The laboratory's worker, built. */
export const builtWorker = join(import.meta.dirname, "../../../testkit/dist/kill/worker.js");

export function needsRuntime(context: TestContext, { name, missing }: Runtime): void {
  const why = missing ?? (existsSync(builtWorker) ? null : "the packages are not built: npm run build");
  if (why === null) return;
  console.log(`not run: tests on ${name} (${why})`);
  context.skip(`not run: ${why}`);
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program of this folder to its end. A program that hangs is killed. */
export function run(
  { command }: Runtime,
  program: string,
  args: readonly string[],
  { timeoutMs = 160_000, env = {} }: { timeoutMs?: number; env?: Record<string, string> } = {},
): Promise<Ended> {
  const [file, ...flags] = command as [string, ...string[]];
  const child = spawn(file, [...flags, join(import.meta.dirname, program), ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: timeoutMs,
    killSignal: "SIGKILL",
    env: { ...process.env, NO_COLOR: "1", ...env },
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
}

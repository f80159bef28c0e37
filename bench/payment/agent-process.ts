import { type ChildProcess, spawn } from "node:child_process";

/** Starts an agent in a process group of its own, so that a kill reaches what it has started. */
export function startAgent(
  file: string,
  args: readonly string[],
  env: Record<string, string>,
  cwd: string,
): ChildProcess {
  const show = process.env["PAYMENT_SHOW"] ? "inherit" : "ignore";
  return spawn(process.execPath, [file, ...args], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", show, show],
    detached: true,
  });
}

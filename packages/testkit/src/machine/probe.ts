import { execFile, execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";

const execFileAsync = promisify(execFile);

/** Runs a system command; rejects with its output. */
export async function run(command: string, ...args: string[]): Promise<string> {
  return (await execFileAsync(command, args)).stdout;
}

/**
 * Why this machine cannot create file systems, or null if it can: that needs Linux, root, loop devices and the tools.
 * For tests that must say why they did not run.
 */
export function whyNoMounts(): string | null {
  if (process.platform !== "linux") return "needs Linux";
  if (process.getuid?.() !== 0) return "needs root";
  if (!existsSync("/dev/loop-control")) return "needs loop devices";
  for (const tool of ["mount", "umount", "mkfs.ext4"]) if (!has(tool)) return `needs ${tool}`;
  return null;
}

/** The same for power cuts, which also need python3 for an ioctl that Node cannot make. */
export function whyNoPowerCuts(): string | null {
  return whyNoMounts() ?? (has("python3") ? null : "needs python3");
}

function has(tool: string): boolean {
  try {
    execFileSync("/bin/sh", ["-c", `command -v ${tool}`], { stdio: "ignore" });
    return true;
  } catch (error) {
    if ((error as { status?: number }).status === undefined) throw error;
    return false;
  }
}

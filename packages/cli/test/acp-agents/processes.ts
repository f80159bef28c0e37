import { readdirSync, readFileSync } from "node:fs";

export interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly command: readonly string[];
}

/** The processes of a home, with any name and any parent: they inherited its HOME. */
export function processesOf(home: string): Process[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) return [];
    try {
      const environment = readFileSync(`/proc/${name}/environ`, "utf8").split("\0");
      const [state, parent] = readFileSync(`/proc/${name}/stat`, "utf8").split(") ").at(-1)!.split(" ");
      if (state === "Z" || !environment.includes(`HOME=${home}`)) return [];
      const command = readFileSync(`/proc/${name}/cmdline`, "utf8").split("\0").slice(0, -1);
      return [{ pid: Number(name), parent: Number(parent), command }];
    } catch {
      // It has ended meanwhile, or is another user's.
      return [];
    }
  });
}

/** The process, and everything that it and its children started and that still has its parent, in any session. */
export function treeOf(pid: number): number[] {
  const parents = readdirSync("/proc").flatMap((name) => {
    try {
      if (!/^\d+$/.test(name)) return [];
      const [, parent] = readFileSync(`/proc/${name}/stat`, "utf8").split(") ").at(-1)!.split(" ");
      return [[Number(name), Number(parent)] as const];
    } catch {
      return [];
    }
  });
  const found = [pid];
  for (const known of found) for (const [child, parent] of parents) if (parent === known) found.push(child);
  return found;
}

/** SIGKILL, for what is still there. */
export function killAll(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, "SIGKILL");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }
}

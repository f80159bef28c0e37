import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { Agent } from "../contract/agent.ts";
import { linkOf, namesIn, quietly } from "../fix/open-files.ts";

/** The processes of agents, where the system says what runs (/proc). Only those of this user can be seen. */

export interface AgentProcess {
  readonly agent: string;
  readonly pid: number;
  /** Where it works. */
  readonly folder: string;
  /** When it was started, in clock ticks since the machine was. Two processes with one pid differ in it. */
  readonly started: number;
  /** Time of the processor that it has used, in milliseconds. */
  readonly cpuMs: number;
  readonly ageMs: number;
}

/** Linux counts both in hundredths of a second, on every machine that Node runs on. */
const TICK_MS = 10;
const INTERPRETERS = /^(?:node|bun|deno)$/;
const WRITING = 0o3;

export function listProcesses(agents: readonly Agent[]): AgentProcess[] {
  const uptimeMs = Number(textOf("/proc/uptime").split(" ")[0]) * 1000;
  return namesIn("/proc").flatMap((name): AgentProcess[] => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) return [];
    const folder = linkOf(join("/proc", name, "cwd"));
    if (folder === "") return [];
    const words = textOf(join("/proc", name, "cmdline")).split("\0");
    const agent = agents.find(({ programs = [] }) => programs.some((program) => runs(program, words)));
    if (!agent) return [];
    // The name of the program, in brackets, may hold spaces.
    const fields = textOf(join("/proc", name, "stat"))
      .replace(/^.*\) /s, "")
      .split(" ");
    const [user, system, started] = [11, 12, 19].map((at) => Number(fields[at]));
    const ticks = { cpuMs: (user! + system!) * TICK_MS, ageMs: uptimeMs - started! * TICK_MS };
    return [{ agent: agent.name, pid: Number(name), folder, started: started!, ...ticks }];
  });
}

/** Whether a command line starts this program, by itself or in an interpreter. */
function runs(program: string, [first = "", second = ""]: readonly string[]): boolean {
  const name = (word: string): string => basename(word).replace(/\.(?:[cm]?js|exe)$/, "");
  return name(first) === program || (INTERPRETERS.test(name(first)) && name(second) === program);
}

/** The processes that have a file open to write to it. */
export function writersOf(paths: ReadonlySet<string>): Map<string, number[]> {
  const writers = new Map<string, number[]>();
  if (paths.size === 0) return writers;
  for (const name of namesIn("/proc")) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
    const descriptors = join("/proc", name, "fd");
    for (const descriptor of namesIn(descriptors)) {
      const path = linkOf(join(descriptors, descriptor));
      if (!paths.has(path)) continue;
      const flags = /^flags:\s*([0-7]+)/m.exec(textOf(join("/proc", name, "fdinfo", descriptor)))?.[1];
      const pids = writers.get(path) ?? [];
      if ((Number.parseInt(flags ?? "0", 8) & WRITING) !== 0 && !pids.includes(Number(name)))
        writers.set(path, [...pids, Number(name)]);
    }
  }
  return writers;
}

const textOf = (path: string): string => quietly(() => readFileSync(path, "utf8")) ?? "";

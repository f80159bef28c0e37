import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { rolldown } from "rolldown";

/** Programs that are killed hundreds of times: in one file, because to find LangChain's thousands takes a second. */

export async function bundled(entry: string, folder: string): Promise<string> {
  const build = await rolldown({
    input: entry,
    platform: "node",
    resolve: { conditionNames: ["holdfast-source", "import", "node", "default"] },
    logLevel: "silent",
  });
  const file = "program.mjs";
  await build.write({ dir: folder, format: "esm", entryFileNames: file, codeSplitting: false });
  await build.close();
  return join(folder, file);
}

export interface Death {
  readonly lines: string[];
  readonly signal: NodeJS.Signals | null;
  /** From the first line it wrote to its end. */
  readonly ms: number;
}

/** Runs it, and kills it `afterMs` after it has written its first line, if that is given. */
export async function runKilled(program: string, orders: object, afterMs?: number): Promise<Death> {
  const child = spawn(process.execPath, [program, JSON.stringify(orders)], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, NODE_COMPILE_CACHE: `${program}.cache` },
  });
  const ended = new Promise<NodeJS.Signals | null>((done) => child.once("close", (_, signal) => done(signal)));
  let begun = performance.now();
  let timer: NodeJS.Timeout | undefined;
  child.stdout.once("data", () => {
    begun = performance.now();
    if (afterMs !== undefined) timer = setTimeout(() => child.kill("SIGKILL"), afterMs);
  });
  const out = await text(child.stdout);
  const signal = await ended;
  clearTimeout(timer);
  return { lines: out.split("\n").filter(Boolean), signal, ms: performance.now() - begun };
}

/**
 * Two at a time: that is how many cores there are. Stops after the first that returns false. Returns how many returned
 * true.
 */
export async function inPairs<T>(items: Iterator<T>, each: (item: T) => Promise<boolean>): Promise<number> {
  let count = 0;
  let isOver = false;
  const worker = async (): Promise<void> => {
    for (let item = items.next(); !isOver && !item.done; item = items.next()) {
      if (await each(item.value)) count++;
      else isOver = true;
    }
  };
  await Promise.all([worker(), worker()]);
  return count;
}

/** A number from 0 to 1 for each n, the same for the same seed. */
export function chance(seed: number, n: number): number {
  const mixed = Math.imul((seed + n) ^ ((seed + n) >>> 15), 0x2c1b3c6d);
  return ((mixed ^ (mixed >>> 12)) >>> 0) / 0xffffffff;
}

/**
 * Tries, from the nth on, until as many have died as wanted. Returns how many died. If the machine gets less busy, many
 * come to their end first.
 */
export async function dieAtRandom(wanted: number, from: number, die: (n: number) => Promise<boolean>): Promise<number> {
  let dead = 0;
  const tries = Array.from({ length: wanted * 20 }, (_, n) => from + n).values();
  await inPairs(tries, async (n) => {
    if (await die(n)) dead++;
    return dead < wanted;
  });
  return dead;
}

/** None if there is no such file. */
export function linesOf(path: string): string[] {
  return existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean) : [];
}

import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as passed } from "node:timers/promises";
import type { ModelMessage } from "ai";
import { type JournalRecord, openStore, type Reading } from "holdfast";
import type { ChatEvent } from "../../src/host/host.ts";
import type { Ended, Home } from "../command.ts";

/** A `run --json` that is at work. */
export interface Running {
  readonly child: ChildProcessWithoutNullStreams;
  readonly events: readonly ChatEvent[];
  /** The next event of this type that was not waited for yet. Rejects if the run ends before it. */
  until<T extends ChatEvent["type"]>(type: T): Promise<ChatEvent & { type: T }>;
  readonly ended: Promise<Ended>;
}

export function startRun(home: Home, args: readonly string[], env: Readonly<Record<string, string>> = {}): Running {
  const child = home.start(["run", "--json", ...args], { env });
  child.stdin.end();
  const events: ChatEvent[] = [];
  const waiting: { type: string; from: number; resolve: (event: never) => void; reject: (error: Error) => void }[] = [];
  let seen = 0;
  let stderr = "";
  let isOver = false;
  const look = (): void => {
    const [first] = waiting;
    if (!first) return;
    const at = events.findIndex((event, index) => index >= seen && event.type === first.type);
    if (at >= 0) {
      seen = at + 1;
      waiting.shift();
      first.resolve(events[at] as never);
    } else if (isOver) {
      waiting.shift();
      first.reject(new Error(`It ended before ${first.type}: ${stderr}${JSON.stringify(events.at(-1))}`));
    } else return;
    look();
  };
  // Every line is one event: what is no JSON fails the test that reads it.
  createInterface({ input: child.stdout }).on("line", (line) => {
    events.push(JSON.parse(line) as ChatEvent);
    look();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Ended>((resolve) => {
    child.once("close", (code, signal) => {
      isOver = true;
      look();
      resolve({ code, signal, stdout: "", stderr });
    });
  });
  return {
    child,
    events,
    until: (type) =>
      new Promise((resolve, reject) => {
        waiting.push({ type, from: 0, resolve, reject });
        look();
      }),
    ended,
  };
}

export async function reading(home: Home, id: string): Promise<Reading<ModelMessage>> {
  await using store = await openStore(home.store);
  return store.read<ModelMessage>(id);
}

export async function recordsOf(home: Home, id: string): Promise<JournalRecord[]> {
  await using store = await openStore(home.store);
  return Array.fromAsync(store.history(id));
}

/** Waits until it holds; a test that waits in vain runs into its time limit. */
export async function eventually(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await passed(20);
}

/** Processes whose command line says this. */
export function processesWith(word: string): number[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) return [];
    try {
      const line = readFileSync(`/proc/${name}/cmdline`, "utf8");
      const state = readFileSync(`/proc/${name}/stat`, "utf8").split(") ").at(-1)?.[0];
      return line.includes(word) && state !== "Z" ? [Number(name)] : [];
    } catch {
      // It has ended meanwhile.
      return [];
    }
  });
}

import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as passed } from "node:timers/promises";
import { accountOf, openStore } from "holdfast";
import { killAll, type Process, processesOf } from "./acp-agents/processes.ts";
import type { Home } from "./command.ts";

const TASK_AGENT = join(import.meta.dirname, "agents/task-agent.ts");

/** The word that `--agent` takes, for the agent of `agents/task-agent.ts` in the folder `task` of this home. */
export function taskAgent(home: Home, behaviour: object = {}): string {
  const folder = join(home.path, "task");
  mkdirSync(folder, { recursive: true });
  return `${process.execPath} ${TASK_AGENT} '${JSON.stringify({ folder, ...behaviour })}'`;
}

/** What the agent wrote down, by lines. */
export function notesOf(home: Home, name: "ledger" | "prompts" | "starts"): string[] {
  const file = join(home.path, "task", name);
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : [];
}

/** The texts of each prompt that the agent got. */
export function promptsOf(home: Home): string[][] {
  return notesOf(home, "prompts").map((line) =>
    (JSON.parse(line) as { readonly text: string }[]).map(({ text }) => text),
  );
}

/** The process that was started, the one that records, or the agent. */
export const VICTIMS = ["the driver", "the supervisor", "the agent", "all of them"] as const;
export type Victim = (typeof VICTIMS)[number];

export function victimsIn(home: Home, victim: Victim): Process[] {
  const is = (one: Process, word: string): boolean => one.command.includes(word);
  return processesOf(home.path).filter((one) => {
    if (victim === "all of them") return is(one, "--agent") || is(one, "--supervise") || is(one, TASK_AGENT);
    if (victim === "the supervisor") return is(one, "--supervise");
    if (victim === "the agent") return one.command[1] === TASK_AGENT;
    return is(one, "--agent") && !is(one, "--supervise");
  });
}

export function strike(home: Home, victim: Victim): void {
  killAll(victimsIn(home, victim).map(({ pid }) => pid));
}

/** The accounts of all sessions of the home that have a turn. */
export async function accountsIn(home: Home) {
  await using store = await openStore(home.store);
  const { sessions } = await store.list();
  return Promise.all(sessions.map(async ({ id }) => accountOf(await store.read(id))));
}

/** The processes that are still there after a while. They are ended. */
export async function leftIn(home: Home, ms = 20_000): Promise<string[]> {
  const until = performance.now() + ms;
  while (processesOf(home.path).length > 0 && performance.now() < until) await passed(50);
  const left = processesOf(home.path);
  killAll(left.map(({ pid }) => pid));
  return left.map(({ command }) => command.join(" ").slice(0, 120));
}

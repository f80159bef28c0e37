import { once } from "node:events";
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as passed } from "node:timers/promises";
import { validateAiSdk } from "@holdfast/testkit";
import type { ModelMessage } from "ai";
import { openStore, type Reading } from "holdfast";
import type { ChatEvent } from "../../src/host/host.ts";
import type { Item } from "../../src/transcript/item.ts";
import { type Home, temporaryHome } from "../command.ts";

/** What the agent is asked to do, and where. */
export interface Task {
  readonly name: string;
  readonly prompt: string;
  readonly files: Readonly<Record<string, string>>;
  readonly args: readonly string[];
}

/** One life of the agent. */
export interface Life {
  readonly events: readonly ChatEvent[];
  readonly killed: boolean;
  readonly code: number | null;
  readonly stderr: string;
  /** From its first line to its end. */
  readonly ms: number;
}

export function homeFor(task: Task): Home {
  const home = temporaryHome();
  for (const [path, text] of Object.entries(task.files)) {
    mkdirSync(dirname(join(home.work, path)), { recursive: true });
    writeFileSync(join(home.work, path), text);
  }
  return home;
}

/** Runs it until it ends, or is killed so long after its first line. */
export async function live(home: Home, args: readonly string[], killAfterMs: number | null): Promise<Life> {
  const child = home.start(["run", "--json", ...args], { env: { HOLDFAST_OFFLINE_DELAY_MS: "1" } });
  child.stdin.end();
  const events: ChatEvent[] = [];
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  let began = 0;
  let killed = false;
  const lines = createInterface({ input: child.stdout });
  lines.on("line", (line) => {
    if (events.push(parsed(line)) > 1) return;
    began = performance.now();
    if (killAfterMs === null) return;
    void passed(killAfterMs).then(() => {
      killed = child.exitCode === null && child.kill("SIGKILL");
    });
  });
  const [code] = (await once(child, "close")) as [number | null];
  return { events, killed: killed && code === null, code, stderr, ms: performance.now() - began };
}

/** The last line may be torn by the kill; any other must be JSON. */
function parsed(line: string): ChatEvent {
  try {
    return JSON.parse(line) as ChatEvent;
  } catch (error) {
    if (error instanceof SyntaxError && line.startsWith("{")) return { type: "changed" };
    throw error;
  }
}

export function sessionOf(lives: readonly Life[]): string | null {
  for (const { events } of lives) for (const event of events) if (event.type === "session") return event.session;
  return null;
}

/** All files below a folder, with what is in them. */
export function filesIn(folder: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" }).sort()) {
    const path = join(folder, name);
    if (statSync(path).isFile()) found[name] = readFileSync(path, "utf8");
  }
  return found;
}

/** Items that were told of as recorded, the last word on each. */
export function acknowledged(lives: readonly Life[]): Map<string, Item> {
  const items = new Map<string, Item>();
  for (const { events } of lives) {
    for (const event of events) if (event.type === "item") items.set(event.item.id, event.item);
  }
  return items;
}

/** What a session came to, by a reader that is not its writer. */
export async function readingOf(home: Home, id: string): Promise<{ reading: Reading<ModelMessage>; ids: Set<string> }> {
  await using store = await openStore(home.store);
  const ids = new Set<string>();
  for await (const record of store.history(id)) {
    const { id: message, synthetic, entries } = record as { id?: unknown; synthetic?: unknown; entries?: unknown };
    if (typeof message === "string" && synthetic === undefined) ids.add(message);
    if (Array.isArray(entries)) for (const one of entries as { id?: unknown }[]) ids.add(String(one.id));
  }
  return { reading: await store.read<ModelMessage>(id), ids };
}

/** What a provider would object to in what the model would be sent now. */
export function violationsIn({ messages, interruption }: Reading<ModelMessage>): string[] {
  const isWaiting = interruption?.how.kind === "suspended";
  const ends = messages.at(-1)?.role;
  if (messages.length === 0) return [];
  return validateAiSdk({ messages }, { waiting: isWaiting, prefill: ends === "assistant" }).map((one) =>
    JSON.stringify(one),
  );
}

export function copyOf(home: Home, to: string): void {
  cpSync(home.path, to, { recursive: true });
}

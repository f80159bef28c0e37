import { readdirSync, watch } from "node:fs";
import { join } from "node:path";
import { setTimeout as passed } from "node:timers/promises";
import type { ChatEvent } from "../host/host.ts";
import type { Acknowledgements } from "./acknowledgements.ts";
import { Child, type Death } from "./child.ts";
import type { AgentFolder } from "./demo-folder.ts";
import type { KillMoment } from "./kill-plan.ts";
import { watchForMoment } from "./kill-trigger.ts";
import type { Task } from "./task.ts";

export interface Life {
  readonly number: number;
  readonly pid: number;
  readonly death: Death;
  /** The moment of the kill, in words; null if the process ended by itself. */
  readonly shot: string | null;
  /** The text and reasoning streamed since the last message was recorded. */
  readonly streamed: string;
  /** The error it reported. */
  readonly said: string;
}

export interface LifeOptions {
  readonly number: number;
  readonly task: Task;
  readonly room: AgentFolder;
  /** The session to resume; null to create one. */
  readonly session: string | null;
  readonly delayMs: number;
  readonly aim: KillMoment | null;
  readonly acknowledged: Acknowledgements;
  readonly started: (child: Child) => void;
  /** Each event up to the kill. */
  readonly onEvent: (event: ChatEvent) => void;
  readonly onKill: (where: string) => void;
}

/** Runs one agent process from start to end. */
export async function runLife(options: LifeOptions): Promise<Life> {
  const { number, task, room, session, delayMs, aim, acknowledged } = options;
  const sight = aim && watchForMoment(aim);
  let id = session;
  let shot: string | null = null;
  let streamed = "";
  let failure = "";
  const watching = new AbortController();
  let isOver = false;
  const shoot = (where: string): void => {
    if (shot !== null || isOver) return;
    shot = where;
    child.kill();
    options.onKill(where);
  };
  const child = new Child({ args: argsOf(task, session), store: room.store, cwd: room.work, delayMs }, (event) => {
    if (event.type === "session") id = event.session;
    if (event.type === "text" || event.type === "reasoning") streamed += event.text;
    if (event.type === "item" || event.type === "retry") streamed = "";
    if (event.type === "turn.ended" && event.error) failure = `${event.error.message} [${event.error.code}]`;
    // Events already in the pipe when it was killed also count.
    acknowledged.hear(event, number);
    if (shot !== null) return;
    options.onEvent(event);
    const seen = sight?.(event);
    if (!seen) return;
    if ("watch" in seen) {
      const folder = join(room.store, "sessions", id!);
      const before = new Set(readdirSync(folder));
      watch(folder, { signal: watching.signal }, (_, name) => {
        if (name !== null && !before.has(name)) shoot(seen.watch);
      });
    } else if (seen.thenDeltas === 0) shoot(seen.shoot);
    else void passed(seen.thenDeltas * delayMs).then(() => shoot(seen.shoot));
  });
  options.started(child);
  const death = await child.died;
  isOver = true;
  watching.abort();
  return {
    number,
    pid: child.pid,
    death,
    // It may have ended before the kill.
    shot: death.signal === "SIGKILL" ? shot : null,
    streamed,
    said: failure || child.stderr.trim() || "(nothing)",
  };
}

export function argsOf(task: Task, session: string | null): string[] {
  const shared = [
    "--json",
    "--model",
    "offline",
    "--window-tokens",
    String(task.windowTokens),
    ...task.allow.flatMap((rule) => ["--allow", rule]),
  ];
  if (session === null) return ["run", ...shared, "--title", "holdfast demo", task.prompt];
  return ["run", ...shared, "--resume", session, "--finish"];
}

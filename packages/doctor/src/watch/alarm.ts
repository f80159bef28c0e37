import type { FoundSession } from "../diagnosis/sessions.ts";
import type { AgentProcess } from "./processes.ts";

/** What the user should know at once, in words. Never text of a conversation. */

export interface Alarm {
  readonly kind: "shrunk" | "rewritten" | "deleted" | "unreadable" | "second-writer" | "load-rewrites" | "silent";
  readonly agent: string;
  /** Null if it is about no session in particular. */
  readonly session: string | null;
  readonly path: string | null;
  readonly words: string;
}

export function sessionAlarm(kind: Alarm["kind"], { agent, session }: FoundSession, words: string): Alarm {
  const name = `${agent.title} session ${session.id}`;
  return { kind, agent: agent.name, session: session.id, path: session.path, words: `${name} ${words}` };
}

export const shrunkWords = (path: string, before: number, size: number): string =>
  `lost content: ${path} had ${before} bytes and has ${size} now. What it had is kept.`;

export const rewrittenWords = (path: string): string =>
  `was rewritten: ${path} no longer begins with what it had. What it had is kept.`;

export const loadWords = (path: string, { pid }: AgentProcess): string =>
  `was rewritten as the agent started (process ${pid}): loading it changed ${path}. What it had is kept.`;

export const deletedWords = (path: string): string =>
  `was deleted: ${path} is gone. What it had is kept until you run holdfast watch --forget-deleted.`;

export const unreadableWords = (kinds: readonly string[]): string =>
  `can no longer be read in full (${kinds.join(", ")}). holdfast doctor says what is wrong.`;

export const overlapWords = (): string =>
  "was written by two processes at once: the numbers of its records overlap. holdfast doctor says where.";

export const writersWords = (path: string, pids: readonly number[]): string =>
  `is open for writing in ${pids.length} processes (${pids.join(", ")}): ${path}. End all but one of them.`;

export const silentWords = (title: string, { pid, folder }: AgentProcess, minutes: number): string =>
  `${title} (process ${pid} in ${folder}) has been at work for ${minutes} minutes, and none of its session files has grown: it may not be saving this session, or saves it elsewhere.`;

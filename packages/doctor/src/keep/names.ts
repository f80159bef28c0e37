import { readdirSync } from "node:fs";
import { basename, dirname, join, relative, sep } from "node:path";
import type { SessionPlace } from "../contract/agent.ts";

/** Where each file of a session is kept: in the session's own folder, as the files lie around its first one. */

/** Beside the kept files: what `holdfast watch` knows of the session. */
export const WATCH_STATE = "holdfast-watch.json";

/** The copy of one of its files. */
export function targetOf(folder: string, session: SessionPlace, path: string): string {
  const names = relative(dirname(session.path), path).split(sep);
  return join(folder, ...names.map((name) => (name === ".." ? UP : name)));
}

/** Where the agent had the file of which this is the copy. */
export function sourceOf(folder: string, session: SessionPlace, target: string): string {
  const names = relative(folder, target).split(sep);
  const ups = names.findIndex((name) => name !== UP);
  return join(dirname(session.path), ...names.map((name, at) => (at < ups ? ".." : name)));
}

const UP = "up";

/** The rows of a session in a file that it shares with others: lines of JSON. */
export function rowsTargetOf(folder: string, { path }: SessionPlace): string {
  return join(folder, `${basename(path)}.jsonl`);
}

/** The names in a folder; none if it is not there. */
export function namesIn(folder: string, recursive = false): string[] {
  try {
    return readdirSync(folder, { recursive, encoding: "utf8" });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}

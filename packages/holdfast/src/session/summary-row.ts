import { type Shape, shapeOf } from "../dialects/shape.ts";
import type { Json } from "../journal/record.ts";
import type { Link } from "./surface.ts";

/**
 * What a list knows of a session: the row that the summariser folds its records into, and that stands in its journal as `summary` (FORMAT.md). All of the summariser's state is in it.
 * The members that a store's list filters by (`where`) are flat.
 */
export interface SessionRow {
  /** On one line, harmless to show: the given one, or the beginning of the first prompt. */
  title: string;
  /** The title was given. */
  titled: boolean;
  /** A real path. */
  cwd?: string;
  app?: string;
  dialect?: string;
  labels?: Readonly<Record<string, string>>;
  parent?: Link;
  parentSession?: string;
  /** The number of the last turn. */
  turns: number;
  queued: number;
  /** The ids of the first ones that are queued, so that none is counted twice. */
  queue?: readonly string[];
  /** Of the last turn: `open` has no end yet, `cut` did not complete, `waiting` was suspended; `idle` if it completed, or there is none. */
  state: "idle" | "open" | "cut" | "waiting";
  /** The beginning of the last prompt. */
  prompt?: string;
  /** The id of a prompt that is to come in the same unit. */
  awaits?: string;
  /** An epoch brought messages along. */
  filled?: true;
  /** A copy of another conversation, which has no title yet: the first text of the user's will do. */
  seeks?: true;
}

const STATES: readonly unknown[] = ["idle", "open", "cut", "waiting"] satisfies SessionRow["state"][];

/** Reads a row, whoever wrote it. What is not as it should be is as good as not there. */
export function rowOf(json: Json): SessionRow {
  const shape = shapeOf(json);
  if (!shape) return { title: "", titled: false, turns: 0, queued: 0, state: "idle" };
  const queue = Array.isArray(shape["queue"]) ? shape["queue"].filter((id) => typeof id === "string") : [];
  const row: SessionRow = {
    title: stringIn(shape, "title") ?? "",
    titled: shape["titled"] === true,
    turns: countIn(shape, "turns") ?? 0,
    queued: Math.max(countIn(shape, "queued") ?? 0, queue.length),
    state: STATES.includes(shape["state"]) ? (shape["state"] as SessionRow["state"]) : "idle",
  };
  for (const name of ["cwd", "app", "dialect", "prompt", "awaits"] as const) {
    const value = stringIn(shape, name);
    if (value !== undefined) row[name] = value;
  }
  if (queue.length > 0) row.queue = queue;
  const labels = labelsIn(shape);
  if (labels) row.labels = labels;
  const parent = linkIn(shape);
  if (parent) {
    row.parent = parent;
    row.parentSession = parent.session;
  }
  if (shape["filled"] === true) row.filled = true;
  if (shape["seeks"] === true) row.seeks = true;
  return row;
}

export function stringIn(shape: Shape, name: string): string | undefined {
  const value = shape[name];
  return typeof value === "string" ? value : undefined;
}

export function countIn(shape: Shape, name: string): number | undefined {
  const value = shape[name];
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** A copy; undefined if there are none. */
export function labelsIn(shape: Shape): Record<string, string> | undefined {
  const entries = Object.entries(shapeOf(shape["labels"]) ?? {});
  const labels = entries.filter((entry): entry is [string, string] => typeof entry[1] === "string");
  return labels.length > 0 ? Object.fromEntries(labels) : undefined;
}

/** A copy. */
export function linkIn(shape: Shape): Link | undefined {
  const parent = shapeOf(shape["parent"]) ?? {};
  const session = stringIn(parent, "session");
  const call = stringIn(parent, "call");
  if (session === undefined) return undefined;
  return call === undefined ? { session } : { session, call };
}

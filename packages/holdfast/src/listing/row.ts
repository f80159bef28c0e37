import { ATTRIBUTE_CHARS_MAX, LABELS_CHARS_MAX, type Link } from "../conversation/attributes.ts";
import { type Shape, shapeOf } from "../dialects/shape.ts";
import type { Json } from "../journal/record.ts";
import { oneLine } from "../text/one-line.ts";

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

/** A row stands in the journal again and again: whatever a session has, it stays small. In units of UTF-16. */
export const TITLE_CHARS_MAX = 200;
/** Of what a prompt says. */
export const PROMPT_CHARS_MAX = 80;
/** Of a longer queue the rest is only counted. */
export const QUEUE_IDS_MAX = 64;
export const QUEUE_ID_CHARS_MAX = 64;

/** Is it a row at all? Then its session need not be read. */
export function isRow(json: Json): boolean {
  const shape = shapeOf(json);
  return shape !== null && typeof shape["title"] === "string" && countIn(shape, "turns") !== undefined;
}

/** Reads a row, whoever wrote it. What is not as it should be is as good as not there. */
export function rowOf(json: Json): SessionRow {
  const shape = shapeOf(json);
  if (!shape) return { title: "", titled: false, turns: 0, queued: 0, state: "idle" };
  const queue = (Array.isArray(shape["queue"]) ? shape["queue"].slice(0, QUEUE_IDS_MAX) : []).filter(
    (id): id is string => typeof id === "string" && id.length <= QUEUE_ID_CHARS_MAX,
  );
  const row: SessionRow = {
    title: lineIn(shape, "title", TITLE_CHARS_MAX) ?? "",
    titled: shape["titled"] === true,
    turns: countIn(shape, "turns") ?? 0,
    queued: Math.max(countIn(shape, "queued") ?? 0, queue.length),
    state: STATES.includes(shape["state"]) ? (shape["state"] as SessionRow["state"]) : "idle",
  };
  for (const name of ["cwd", "app", "dialect", "awaits"] as const) {
    const value = stringIn(shape, name);
    if (value !== undefined) row[name] = value;
  }
  const prompt = lineIn(shape, "prompt", PROMPT_CHARS_MAX);
  if (prompt !== undefined) row.prompt = prompt;
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

export function stringIn(shape: Shape, name: string, charsMax = ATTRIBUTE_CHARS_MAX): string | undefined {
  const value = shape[name];
  return typeof value === "string" && value.length <= charsMax ? value : undefined;
}

/** What a row has been made of is on one line already; what somebody else has put there may be anything. */
function lineIn(shape: Shape, name: string, charsMax: number): string | undefined {
  const value = shape[name];
  if (typeof value !== "string") return undefined;
  return value.length <= charsMax ? value : oneLine(value, charsMax);
}

export function countIn(shape: Shape, name: string): number | undefined {
  const value = shape[name];
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** A copy; undefined if there are none. As many as a row has room for: `create` takes no more. */
export function labelsIn(shape: Shape): Record<string, string> | undefined {
  const labels: [string, string][] = [];
  let chars = 0;
  for (const [name, value] of Object.entries(shapeOf(shape["labels"]) ?? {})) {
    if (typeof value !== "string") continue;
    chars += name.length + value.length;
    if (chars > LABELS_CHARS_MAX) break;
    labels.push([name, value]);
  }
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

import { ATTRIBUTE_CHARS_MAX, LABELS_CHARS_MAX, type Link } from "../conversation/records/attributes.ts";
import { defined } from "../defined.ts";
import { NONE, type Shape, shapeOf } from "../dialects/shape.ts";
import { isTime, type Json } from "../journal/record.ts";
import { type LastTurn, suspendedAs } from "../session-state.ts";
import { oneLine } from "../text/one-line.ts";

/**
 * What a list knows about a session: the row the summariser folds its records into, stored in its journal as `summary`
 * (FORMAT.md). It is the summariser's entire state. The members that a store's list filters by (`where`) are flat.
 */
export interface SessionRow {
  /** On one line, safe to show: the given title, or the start of the first prompt. */
  title: string;
  /** The title was set explicitly. */
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
  /** The ids of the first queued inputs, so that none is counted twice. */
  queue?: readonly string[];
  /**
   * The last turn's state: `open` has not ended, `cut` did not complete, `waiting` was suspended; `idle` if it
   * completed or there is none.
   */
  state: "idle" | "open" | "cut" | "waiting";
  /** When a suspended turn continues by itself. */
  wakeAt?: string;
  /** Workers gave up on it. */
  parked?: true;
  /** Tries of the last turn since its last progress. */
  attempts?: number;
  /** The last writer's try is one of them. */
  tried?: true;
  /** The turn did not complete because somebody ended it on purpose, or because it failed. Absent if it was cut off. */
  ended?: "aborted" | "failed";
  /** The start of the last prompt. */
  prompt?: string;
  /** The id of a prompt that follows in the same unit. */
  awaits?: string;
  /** An epoch retained messages. */
  filled?: true;
  /** A copy of another conversation that has no title yet: the user's first text becomes the title. */
  seeks?: true;
}

const STATES: readonly unknown[] = ["idle", "open", "cut", "waiting"] satisfies SessionRow["state"][];

/** The journal repeats the row often, so it stays small regardless of the session's size. In UTF-16 units. */
export const TITLE_CHARS_MAX = 200;
/** Limit for the prompt's text. */
export const PROMPT_CHARS_MAX = 80;
/** The rest of a longer queue is only counted. */
export const QUEUE_IDS_MAX = 64;
export const QUEUE_ID_CHARS_MAX = 64;

/** Is it a row? Then the session itself need not be read. */
export function isRow(json: Json): boolean {
  const shape = shapeOf(json);
  return shape !== null && typeof shape["title"] === "string" && countIn(shape, "turns") !== undefined;
}

/** Reads a row from any source. Malformed members count as absent. */
export function rowOf(json: Json): SessionRow {
  const shape = shapeOf(json);
  if (!shape) return { title: "", titled: false, turns: 0, queued: 0, state: "idle" };
  const queue = queueIn(shape);
  const { ended, filled, seeks, parked, tried } = shape;
  const parent = linkIn(shape);
  return {
    title: lineIn(shape, "title", TITLE_CHARS_MAX) ?? "",
    titled: shape["titled"] === true,
    turns: turnsIn(shape),
    queued: queuedIn(shape),
    state: stateIn(shape),
    ...defined({
      cwd: stringIn(shape, "cwd"),
      app: stringIn(shape, "app"),
      dialect: stringIn(shape, "dialect"),
      awaits: stringIn(shape, "awaits"),
      wakeAt: wakeAtIn(shape),
      parked: parked === true || undefined,
      attempts: attemptsIn(shape) || undefined,
      tried: tried === true || undefined,
      ended: ended === "aborted" || ended === "failed" ? (ended as SessionRow["ended"]) : undefined,
      prompt: lineIn(shape, "prompt", PROMPT_CHARS_MAX),
      queue: queue.length > 0 ? queue : undefined,
      labels: labelsIn(shape),
      parent,
      parentSession: parent?.session,
      filled: filled === true || undefined,
      seeks: seeks === true || undefined,
    }),
  };
}

/**
 * These read single members of a row from any source, as `rowOf` does. A list has thousands of rows, shows some members
 * of each, and makes no row for them.
 */

/** A session without a title is shown with its last prompt. */
export function titleIn(shape: Shape): string {
  return lineIn(shape, "title", TITLE_CHARS_MAX) || (lineIn(shape, "prompt", PROMPT_CHARS_MAX) ?? "");
}

export function stateIn(shape: Shape): SessionRow["state"] {
  const state = shape["state"];
  return STATES.includes(state) ? (state as SessionRow["state"]) : "idle";
}

/** How the last turn stands. */
export function lastTurnIn(shape: Shape): LastTurn {
  const { ended } = shape;
  const end = ended === "aborted" ? "stopped" : ended === "failed" ? "failed" : null;
  switch (stateIn(shape)) {
    case "idle":
      return "completed";
    case "waiting":
      return suspendedAs({ until: wakeAtIn(shape), parked: shape["parked"] === true || undefined });
    case "cut":
      return end ?? "cut";
    case "open":
      return end === "failed" ? "crashed" : "open";
  }
}

export function wakeAtIn(shape: Shape): string | undefined {
  return timeIn(shape, "wakeAt");
}

export function timeIn(shape: Shape, name: string): string | undefined {
  const value = shape[name];
  return isTime(value) ? value : undefined;
}

export function attemptsIn(shape: Shape): number {
  return countIn(shape, "attempts") ?? 0;
}

export function turnsIn(shape: Shape): number {
  return countIn(shape, "turns") ?? 0;
}

export function queuedIn(shape: Shape): number {
  return Math.max(countIn(shape, "queued") ?? 0, queueIn(shape).length);
}

/** It has no messages and nothing is queued. */
export function isEmptyIn(shape: Shape): boolean {
  return turnsIn(shape) === 0 && queuedIn(shape) === 0 && shape["filled"] !== true;
}

function queueIn(shape: Shape): readonly string[] {
  const queue = shape["queue"];
  if (!Array.isArray(queue)) return NONE;
  return queue
    .slice(0, QUEUE_IDS_MAX)
    .filter((id): id is string => typeof id === "string" && id.length <= QUEUE_ID_CHARS_MAX);
}

export function stringIn(shape: Shape, name: string, charsMax = ATTRIBUTE_CHARS_MAX): string | undefined {
  const value = shape[name];
  return typeof value === "string" && value.length <= charsMax ? value : undefined;
}

/** Our own rows are already on one line; rows from elsewhere may contain anything. */
function lineIn(shape: Shape, name: string, charsMax: number): string | undefined {
  const value = shape[name];
  if (typeof value !== "string") return undefined;
  return value.length <= charsMax ? value : oneLine(value, charsMax);
}

export function countIn(shape: Shape, name: string): number | undefined {
  const value = shape[name];
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** A copy; undefined if there are none. At most as many as a row has room for: `create` accepts no more. */
export function labelsIn(shape: Shape): Record<string, string> | undefined {
  const given = shapeOf(shape["labels"]);
  if (!given) return undefined;
  const labels: [string, string][] = [];
  let chars = 0;
  for (const [name, value] of Object.entries(given)) {
    if (typeof value !== "string") continue;
    chars += name.length + value.length;
    if (chars > LABELS_CHARS_MAX) break;
    labels.push([name, value]);
  }
  return labels.length > 0 ? Object.fromEntries(labels) : undefined;
}

/** A copy. */
export function linkIn(shape: Shape): Link | undefined {
  const parent = shapeOf(shape["parent"]);
  if (!parent) return undefined;
  const session = stringIn(parent, "session");
  return session === undefined ? undefined : { session, ...defined({ call: stringIn(parent, "call") }) };
}

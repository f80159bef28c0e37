import { defined } from "../defined.ts";
import type { Dialect } from "../dialects/dialect.ts";
import { isProgress } from "../dialects/order/pairing.ts";
import { type Shape, shapeOf } from "../dialects/shape.ts";
import type { Summariser } from "../journal/contract.ts";
import type { Json } from "../journal/record.ts";
import { endedAs } from "../session-state.ts";
import { oneLine } from "../text/one-line.ts";
import {
  countIn,
  isRow,
  labelsIn,
  linkIn,
  PROMPT_CHARS_MAX,
  QUEUE_ID_CHARS_MAX,
  QUEUE_IDS_MAX,
  rowOf,
  type SessionRow,
  stringIn,
  TITLE_CHARS_MAX,
  timeIn,
} from "./row.ts";

/**
 * The records, besides `segment` and `closed`, after which the journal repeats the row: where a turn stops, where an
 * interrupted one resumes, and a rename. Not at the start of a turn: the previous turn's end is close to it and carries
 * the same row.
 */
const CARRIERS = new Set(["turn.ended", "turn.suspended", "turn.resumed", "session"]);

type Dialects = (
  name: string,
  // biome-ignore lint/suspicious/noExplicitAny: the application defines the message type.
) => Dialect<any> | null;

/**
 * Folds a session's records (records.ts) into what a list shows (S20). It runs on every append, so irrelevant records
 * are skipped at once. Never throws, whatever a record contains.
 */
export function sessionSummariser(dialectNamed: Dialects): Summariser {
  return {
    add(json, record) {
      switch (record.kind) {
        case "message":
          return isSought(json, record)
            ? asJson(withMessage(rowOf(json), record, dialectNamed))
            : withSaid(json, record, dialectNamed);
        case "tool.ended":
        case "step.ended":
          return withProgress(json, record);
        case "session":
          return asJson(withAttributes(rowOf(json), record));
        case "turn.started":
        case "turn.claimed":
        case "turn.resumed":
        case "turn.suspended":
        case "turn.ended":
          return asJson(withTurn(rowOf(json), record));
        case "queue.put":
        case "queue.take":
          return asJson(withQueue(rowOf(json), record));
        case "epoch":
          return asJson(withEpoch(rowOf(json), record, dialectNamed));
        case "turn.prompt":
          return asJson(withPrompt(rowOf(json), shapeOf(record["prompt"]) ?? {}, dialectNamed));
        case "signal":
          return withCrash(json, record);
        case "opened":
        case "closed":
          return withWriter(json);
        default:
          return json;
      }
    },
    concerns: (json, record) => record.kind !== "message" || isSought(json, record) || hasAttempts(json),
    carries: ({ kind }) => CARRIERS.has(kind),
    read: (json) => (isRow(json) ? asJson(rowOf(json)) : null),
  };
}

/** A row has no undefined members, so it equals its own JSON. */
function asJson(row: SessionRow): Json {
  return row as unknown as Json;
}

function withAttributes(row: SessionRow, record: Shape): SessionRow {
  const next = { ...row };
  const title = record["title"];
  if (typeof title === "string") {
    const line = oneLine(title, TITLE_CHARS_MAX);
    next.titled = line !== "";
    next.title = line || (row.titled ? (row.prompt ?? "") : row.title);
    if (next.titled) delete next.seeks;
  }
  for (const name of ["cwd", "app", "dialect"] as const) {
    const value = stringIn(record, name);
    if (value !== undefined) next[name] = value;
  }
  if (shapeOf(record["labels"])) {
    const labels = labelsIn(record);
    if (labels) next.labels = labels;
    else delete next.labels;
  }
  const parent = linkIn(record);
  if (parent) {
    next.parent = parent;
    next.parentSession = parent.session;
  }
  return next;
}

function withTurn(row: SessionRow, record: Shape): SessionRow {
  const turn = countIn(record, "turn");
  // A late record of an earlier turn says nothing about the current state.
  if (turn !== undefined && turn < row.turns) return row;
  const { awaits: _, ended: _ended, wakeAt: _wakeAt, parked: _parked, attempts = 0, tried, ...rest } = row;
  const turns = Math.max(turn ?? 0, row.turns);
  // A try counts once for each writer.
  const trying = { attempts: tried ? attempts : attempts + 1, tried: true } as const;
  switch (record["kind"]) {
    case "turn.started": {
      const awaits = stringIn(record, "prompt");
      return { ...rest, turns: turn ?? row.turns + 1, state: "open", ...defined({ awaits }) };
    }
    case "turn.claimed":
      return turn === undefined ? row : { ...row, ...trying };
    case "turn.resumed":
      return { ...rest, turns, state: "open", ...trying };
    case "turn.suspended":
      return { ...rest, turns, ...suspendedIn(record) };
    default: {
      const end = endOf(record);
      const isGivenBack = tried === true && endedAs(record["outcome"], record["by"]) === "cut";
      const left = end.state === "idle" ? 0 : isGivenBack ? attempts - 1 : attempts;
      return { ...rest, turns, ...end, ...defined({ attempts: left > 0 ? left : undefined }) };
    }
  }
}

function endOf({ outcome, by }: Shape): Pick<SessionRow, "state" | "ended"> {
  switch (endedAs(outcome, by)) {
    case "completed":
      return { state: "idle" };
    case "stopped":
      return { state: "cut", ended: "aborted" };
    case "failed":
      return { state: "cut", ended: "failed" };
    case "cut":
      return { state: "cut" };
  }
}

type SuspensionFacts = Pick<SessionRow, "state" | "wakeAt" | "parked" | "attempts">;

function suspendedIn(record: Shape): SuspensionFacts {
  const parked = countIn(record, "parked");
  const attempts = (parked ?? countIn(record, "attempts") ?? 0) || undefined;
  if (parked !== undefined) return { state: "waiting", parked: true, ...defined({ attempts }) };
  return { state: "waiting", ...defined({ wakeAt: timeIn(record, "until"), attempts }) };
}

/** A turn belongs to one writer: a turn that a writer finds open, or leaves open, was cut off. So does a try. */
function withWriter(json: Json): Json {
  const shape = shapeOf(json);
  if (shape?.["state"] !== "open" && shape?.["tried"] !== true) return json;
  const { tried: _, ...row } = rowOf(json);
  return asJson(row.state === "open" ? { ...row, state: "cut" } : row);
}

function hasAttempts(json: Json): boolean {
  return shapeOf(json)?.["attempts"] !== undefined;
}

function withSaid(json: Json, record: Shape, dialectNamed: Dialects): Json {
  if (!hasAttempts(json)) return json;
  const { dialect: name = "" } = rowOf(json);
  const dialect = dialectNamed(name);
  return dialect && !isProgress(dialect, (record["message"] ?? null) as Json) ? json : withProgress(json, record);
}

/** What is recorded need not be done again, so the tries so far do not count. */
function withProgress(json: Json, record: Shape): Json {
  if (!hasAttempts(json) || record["carried"] === true) return json;
  const { attempts: _, ...row } = rowOf(json);
  return record["turn"] === row.turns ? asJson(row) : json;
}

/** A signal, or an uncaught error, is about to end the process in the middle of the turn. */
function withCrash(json: Json, { error }: Shape): Json {
  if (shapeOf(json)?.["state"] !== "open") return json;
  const { ended: _, ...row } = rowOf(json);
  return asJson(typeof error === "string" ? { ...row, ended: "failed" } : row);
}

function withQueue(row: SessionRow, record: Shape): SessionRow {
  const id = stringIn(record, "id")?.slice(0, QUEUE_ID_CHARS_MAX);
  if (id === undefined) return row;
  const { queue = [] } = row;
  if (record["kind"] === "queue.put") {
    if (queue.includes(id)) return row;
    return setQueue(row, queue.length < QUEUE_IDS_MAX ? [...queue, id] : queue, row.queued + 1);
  }
  if (queue.includes(id)) {
    const left = queue.filter((other) => other !== id);
    return setQueue(row, left, row.queued - 1);
  }
  // An input that is only counted; or one that was already taken, or whose record is lost.
  return row.queued > queue.length ? setQueue(row, queue, row.queued - 1) : row;
}

function setQueue(row: SessionRow, queue: readonly string[], count: number): SessionRow {
  const { queue: _, ...rest } = row;
  return queue.length > 0 ? { ...rest, queue, queued: count } : { ...rest, queued: count };
}

/** The checkpoint contains everything needed (S16), so a reader that starts here gets the same row. */
function withEpoch(row: SessionRow, record: Shape, dialectNamed: Dialects): SessionRow {
  const { awaits: _, ...rest } = row;
  let next: SessionRow = rest;
  if ((countIn(record, "carried") ?? 0) > 0) next.filled = true;
  const isCopy = record["reason"] === "fork" || record["reason"] === "import";
  if (isCopy && next.title === "") next.seeks = true;
  const checkpoint = shapeOf(record["checkpoint"]);
  if (!checkpoint) return next;

  next.turns = countIn(checkpoint, "turns") ?? next.turns;
  const items = checkpoint["queue"];
  if (Array.isArray(items)) {
    const ids = items.map((item) => stringIn(shapeOf(item) ?? {}, "id")?.slice(0, QUEUE_ID_CHARS_MAX) ?? "");
    next = setQueue(next, ids.slice(0, QUEUE_IDS_MAX), ids.length);
  }
  const dialect = stringIn(checkpoint, "dialect");
  if (dialect !== undefined) next.dialect = dialect;

  const turn = shapeOf(checkpoint["turn"]);
  const ended = shapeOf(turn?.["ended"]);
  for (const member of ["ended", "wakeAt", "parked", "attempts", "tried"] as const) delete next[member];
  const attempts = countIn(turn ?? {}, "attempts");
  if (attempts !== undefined && attempts > 0) next.attempts = attempts;
  if (turn?.["tried"] === true) next.tried = true;
  const suspended = shapeOf(turn?.["suspended"]);
  if (!turn) next.state = "idle";
  else if (ended) Object.assign(next, endOf(ended));
  else if (suspended) Object.assign(next, suspendedIn(suspended), defined({ attempts: next.attempts }));
  else {
    // A copy of a running turn is an interrupted turn.
    next.state = record["reason"] === "fork" ? "cut" : "open";
    if (shapeOf(turn["signal"])?.["error"] !== undefined) next.ended = "failed";
  }

  const prompt = shapeOf(turn?.["prompt"]);
  if (next.prompt !== undefined || !prompt) return next;
  const id = stringIn(prompt, "id");
  // It is retained, or has a separate record.
  return prompt["message"] === null && id !== undefined
    ? { ...next, awaits: id }
    : withPrompt(next, prompt, dialectNamed);
}

/** The prompt of a turn that an epoch retained. */
function withPrompt(row: SessionRow, prompt: Shape, dialectNamed: Dialects): SessionRow {
  const { awaits: _, ...rest } = row;
  if (row.prompt !== undefined) return rest;
  const text = textIn(row, prompt, dialectNamed, "anybody");
  return text === "" ? rest : { ...rest, prompt: text };
}

/** Is it the turn's prompt, or can it give a copy its title? */
function isSought(row: Json, record: Shape): boolean {
  const shape = shapeOf(row);
  if (!shape) return false;
  if (shape["awaits"] !== undefined && shape["awaits"] === record["id"]) return true;
  return shape["seeks"] === true && record["carried"] === true && record["synthetic"] === undefined;
}

function withMessage(row: SessionRow, record: Shape, dialectNamed: Dialects): SessionRow {
  const isPrompt = row.awaits !== undefined && row.awaits === record["id"];
  const text = textIn(row, record, dialectNamed, isPrompt ? "anybody" : "user");
  const { awaits, seeks, ...rest } = row;
  const next: SessionRow = isPrompt || awaits === undefined ? rest : { ...rest, awaits };
  if (text === "") return seeks ? { ...next, seeks } : next;
  if (isPrompt) next.prompt = text;
  if (next.title === "") next.title = text;
  return next;
}

/** Its text; empty if it is not meant for people or cannot be determined. */
function textIn(row: SessionRow, record: Shape, dialectNamed: Dialects, by: "user" | "anybody"): string {
  const dialect = row.dialect === undefined ? null : dialectNamed(row.dialect);
  const stored = record["message"] as Json | undefined;
  if (!dialect || stored === undefined || shapeOf(record["metadata"])?.["hiddenFromUser"] === true) return "";
  return oneLine(textOf(dialect, stored, by), PROMPT_CHARS_MAX);
}

// biome-ignore lint/suspicious/noExplicitAny: the application defines the message type.
function textOf(dialect: Dialect<any>, stored: Json, by: "user" | "anybody"): string {
  try {
    const message: unknown = dialect.decode ? dialect.decode(stored) : stored;
    if (by === "user" && dialect.role(message) !== "user") return "";
    const text: unknown = dialect.text(message);
    return typeof text === "string" ? text : "";
  } catch {
    // A faulty dialect of the application costs a title, not an append.
    return "";
  }
}

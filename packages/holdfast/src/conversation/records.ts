import type { Metadata } from "../dialects/dialect.ts";
import type { Json } from "../journal/record.ts";
import type { Link } from "./attributes.ts";
import type { Usage } from "./usage.ts";

/**
 * The records of a session, as they stand in its journal (FORMAT.md, "Record kinds of sessions"). Each has a `kind`; the journal adds `seq` and `at`. A message is stored as its dialect
 * encodes it. Readers take nothing for granted: a member that is missing or of another type is as good as not there.
 */
export type SessionRecord =
  | SessionAttributes
  | TurnStarted
  | TurnResumed
  | TurnSuspended
  | TurnEnded
  | Signalled
  | MessageRecord
  | DraftRecord
  | ToolStarted
  | ToolProcessRecord
  | ToolEnded
  | PatchRecord
  | EditRecord
  | UsageRecord
  | EpochRecord
  | TurnPrompt
  | QueuePut
  | QueueTake
  | RepairRecord
  | NoteRecord;

/** The first one has all attributes; a later one changes those that it has. */
export interface SessionAttributes {
  kind: "session";
  title?: string;
  cwd?: string;
  dialect?: string;
  app?: string;
  labels?: Record<string, string>;
  parent?: Link;
  forkedFrom?: { session: string; at: string };
}

/** In one unit with what closes the turn before it, and with its prompt. `prompt` is the id of that message. */
export interface TurnStarted {
  kind: "turn.started";
  turn: number;
  prompt: string;
}
/** For the `n`-th time. */
export interface TurnResumed {
  kind: "turn.resumed";
  turn: number;
  n: number;
}
export interface TurnSuspended {
  kind: "turn.suspended";
  turn: number;
  reason: string;
  /** Ids of the calls that wait. */
  calls?: string[];
}
export interface TurnEnded {
  kind: "turn.ended";
  turn: number;
  outcome: "completed" | "aborted" | "failed" | "left";
  by?: string;
  reason?: string;
  error?: string;
}
/** The process was told to end, or an error that nobody caught was about to end it. */
export interface Signalled {
  kind: "signal";
  signal: string;
  error?: string;
}

export interface MessageRecord {
  kind: "message";
  id: string;
  turn: number;
  step: string;
  message: Json;
  metadata?: Metadata;
  model?: string;
  /** Texts in it were redacted before it was written. */
  redacted?: true;
  /** An epoch brought it along. The members below stand only on such. */
  carried?: true;
  /** When it was first recorded. */
  first?: string;
  synthetic?: string;
  incomplete?: true;
  late?: true;
  replacedBy?: string;
  /** It is not shown to the model. */
  hidden?: true;
  /** The call that it answers, where that is known better than by the call's id. */
  call?: { message: string; index: number };
  /** What the tool returned whose result it is, where the model is shown something else. */
  value?: Json;
}

/** What was streamed since the last one, by part; `n` counts from 0, so that a lost record shows as a gap. Or that the draft was discarded. */
export interface DraftRecord {
  kind: "draft";
  id: string;
  turn: number;
  n: number;
  parts?: DraftPart[];
  discarded?: string;
}
export interface DraftPart {
  part: number;
  text?: string;
  reasoning?: string;
  call?: { id: string; name: string };
  input?: string;
}

/** Durable before the tool runs. `message` and `index` say which call it is; null if the call is not recorded yet. */
export interface ToolStarted {
  kind: "tool.started";
  turn: number;
  call: string;
  message: string | null;
  index?: number;
  name: string;
  input?: Json;
  replay?: "safe";
  child?: string;
  /** This writer records every start (R5). */
  intents?: true;
}
/** A process that a tool runs in, so that it can be found again when the agent is gone (R7b). */
export interface ToolProcess {
  readonly pid: number;
  /** What tells it apart from a later process of the same pid: its time of start, in whatever form the application compares. */
  readonly started: string;
  /** `pid` leads a process group, which can be ended as a whole. */
  readonly group?: true;
}
/** The started tool runs in this process, which may outlive the agent (R7b). Durable before the process begins its work. */
export interface ToolProcessRecord extends ToolProcess {
  kind: "tool.process";
  turn: number;
  call: string;
  message: string | null;
  index?: number;
}
/** `id` is that of the entry that it makes, if no message comes to hold the result. */
export interface ToolEnded {
  kind: "tool.ended";
  id: string;
  turn: number;
  call: string;
  message: string | null;
  index?: number;
  name: string;
  value?: Json;
  error?: string;
  ms?: number;
  /** A message: what the model is to see of it. */
  shown?: Json;
  redacted?: true;
}

/** A JSON merge patch. */
export interface PatchRecord {
  kind: "patch";
  id: string;
  metadata: Metadata;
}
export interface EditRecord {
  kind: "edit";
  id: string;
  ids: string[];
  shown: { id: string; message: Json; redacted?: true }[];
  reason: string;
  now?: true;
}
/** The reason of an edit by which `sync` records what the application has changed in its array. */
export const SYNCED = "changed by the application";

export interface UsageRecord {
  kind: "usage";
  turn: number;
  usage: Usage;
}

/** Followed by `session` with all attributes, and by the carried messages. What lives on besides stands here (S16). */
export interface EpochRecord {
  kind: "epoch";
  reason: "compaction" | "clear" | "rewind" | "import" | "fork";
  /** How many messages are carried. */
  carried: number;
  /** The seq of the first record of the epoch before, for `undo`; not there if that is no longer possible. */
  undo?: number;
  checkpoint: Checkpoint;
}
export interface Checkpoint {
  dialect: string;
  /** The writer records every start of a tool (R5). */
  intents: boolean;
  /** The number of the last turn. */
  turns: number;
  /** Where the message of its prompt is null, it is carried, or stands in a `turn.prompt` behind the epoch. */
  turn?: TurnCheckpoint;
  /** Starts whose calls have no result yet. */
  started: StartedCheckpoint[];
  draft?: { id: string; turn: number; n: number; parts: DraftPart[]; gap?: true };
  /** The first ones, and some of the notes: the others stand behind the epoch, each in a record of its own. */
  queue: QueuedItem[];
  notes: Record<string, Json>;
  usage: Usage;
  usageByTurn: [turn: number, usage: Usage][];
  /** Ids of the first and the last message behind a change of the past: signed reasoning there is no longer sent (R1). */
  changed?: { from: string; until: string };
  /** Hiding and editing wait for the next turn: which carried messages are shown until then, their `hidden` alone says. */
  pending?: true;
}
export interface StartedCheckpoint extends Omit<ToolStarted, "kind"> {
  startedAt: string;
  /** The seq of its start: which writer started it. Not there in another journal than that one's. */
  startedSeq?: number;
  process?: ToolProcess;
}
export interface TurnCheckpoint {
  number: number;
  startedAt: string;
  lastAt: string;
  resumes: number;
  /** Every writer of this turn recorded the starts of tools. */
  intents: boolean;
  prompt: Omit<MessageRecord, "kind" | "carried"> & { first: string };
  ended?: Omit<TurnEnded, "kind" | "turn">;
  suspended?: { reason: string; calls?: string[] };
  signal?: { signal: string; error?: string };
}
export interface QueuedItem {
  id: string;
  prompt: Json;
  queuedAt: string;
  metadata?: Metadata;
  model?: string;
}

/** The prompt of the last turn, where it is too large for the checkpoint and is not carried. A reader that passed it over would show another one. */
export interface TurnPrompt {
  kind: "turn.prompt";
  must: true;
  turn: number;
  prompt: TurnCheckpoint["prompt"];
}

export interface QueuePut {
  kind: "queue.put";
  id: string;
  prompt: Json;
  metadata?: Metadata;
  model?: string;
  /** An epoch brought it along; `first`: when it was queued. */
  carried?: true;
  first?: string;
}
/** Delivered, in the unit of the turn or the message; or withdrawn. */
export interface QueueTake {
  kind: "queue.take";
  id: string;
  withdrawn?: true;
}

/** Messages that were made up, and why. From here on they are part of the conversation, as they stand here (R1). */
export interface RepairRecord {
  kind: "repair";
  turn: number;
  /**
   * The answer that follows was asked for when this was the newest record. What came since, the model had not seen: results are late, and what others said stands behind the answer (R1).
   */
  asked?: number;
  entries: RepairEntry[];
}
export interface RepairEntry {
  id: string;
  message: Json;
  /** Why: the state of the call, `boundary`, or `draft`. */
  synthetic: string;
  incomplete?: true;
  /** The call that it closes. */
  call?: { message: string; index: number };
}

export interface NoteRecord {
  kind: "note";
  name: string;
  value: Json;
  /** An epoch brought it along. */
  carried?: true;
}

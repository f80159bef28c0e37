import type { Metadata } from "../../dialects/dialect.ts";
import type { Json } from "../../journal/record.ts";
import type { Link } from "./attributes.ts";
import type { Usage } from "./usage.ts";

/**
 * The records of a session, as its journal holds them (FORMAT.md, "Record kinds of sessions"). Each has a `kind`; the
 * journal adds `seq` and `at`. A message is stored as its dialect encodes it. Readers assume nothing: a member of the
 * wrong type is treated as missing.
 */
export type SessionRecord =
  | SessionAttributes
  | TurnStarted
  | TurnResumed
  | TurnClaimed
  | TurnSuspended
  | TurnEnded
  | SignalRecord
  | MessageRecord
  | DraftRecord
  | DraftAccepted
  | ToolStarted
  | ToolProcessRecord
  | ToolUnstarted
  | ToolEnded
  | StepStarted
  | StepEnded
  | PatchRecord
  | EditRecord
  | UsageRecord
  | EpochRecord
  | TurnPrompt
  | TurnKeys
  | QueuePut
  | QueueTake
  | RepairRecord
  | NoteRecord
  | AppStateRecord;

/** The first one has all attributes; a later one changes those it contains. */
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

/**
 * Written in one unit with the records that close the previous turn and with its prompt. `prompt` is that message's id.
 */
export interface TurnStarted extends PromptKey {
  kind: "turn.started";
  turn: number;
  prompt: string;
}
/** The key that the application gave a prompt, and the prompt: digests of both (session/prompts/prompt-key.ts). */
export interface PromptKey {
  promptKey?: string;
  promptDigest?: string;
}
/** The nth time. */
export interface TurnResumed {
  kind: "turn.resumed";
  turn: number;
  n: number;
}
/** A worker begins the nth try without progress, before its application resumes the turn. */
export interface TurnClaimed {
  kind: "turn.claimed";
  turn: number;
  n: number;
  worker?: string;
}
/** Without `until` and `parked`, the turn waits for a person. */
export interface Suspension {
  reason: string;
  /** Ids of the waiting calls. */
  calls?: readonly string[];
  /** From then on it continues by itself. With the reason HANDED_OVER, the process that closed it handed it over. */
  until?: string;
  /** Workers gave up after that many tries without progress. */
  parked?: number;
  /** The tries without progress so far, if they still count. */
  attempts?: number;
}
export interface TurnSuspended extends Suspension {
  kind: "turn.suspended";
  turn: number;
}
export interface TurnEnded {
  kind: "turn.ended";
  turn: number;
  outcome: "completed" | "aborted" | "failed" | "left";
  by?: string;
  reason?: string;
  error?: string;
}
/** The process was told to end, or an uncaught error was about to end it. */
export interface SignalRecord {
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
  /** Some of its text was redacted before it was written. */
  redacted?: true;
  /** Copied into a new epoch. The members below occur only on such records. */
  carried?: true;
  /** When it was first recorded. */
  first?: string;
  synthetic?: string;
  incomplete?: true;
  late?: true;
  replacedBy?: string;
  /** Hidden from the model. */
  hidden?: true;
  /** The call that it answers, where the call's id alone is ambiguous. */
  call?: { message: string; index: number };
  /** The tool's return value, where the model is shown something else. */
  value?: Json;
  /** Where the outcome is known from, if not from the tool itself. */
  source?: string;
}

/**
 * The text streamed since the previous record, by part, or the fact that the draft was discarded. `n` counts from 0, so
 * a lost record shows as a gap.
 */
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

/**
 * The provider has accepted the request that this is the draft of: `handle` is what its answer can be fetched by, also
 * by another process.
 */
export interface DraftAccepted {
  kind: "draft.accepted";
  id: string;
  turn: number;
  /** The newest record when the answer was requested, as in `repair`. */
  asked: number;
  handle: Json;
  /** Calls had no result when the answer was requested: the model was told so. */
  calls?: true;
}

/** Durable before the tool runs. `message` and `index` identify the call; null if the call is not recorded yet. */
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
  /** The call's idempotency key. The same in each start of the call. */
  idempotencyKey?: string;
  /** The program can ask what happened to the call. */
  probe?: true;
  /** What the program noted of the world before the tool ran, to tell afterwards what has changed. */
  before?: Json;
  /** This writer records every tool start (R5). */
  intents?: true;
}
/** A process that a tool runs in, so that it can be found after the agent dies (R7b). */
export interface ToolProcess {
  readonly pid: number;
  /**
   * Distinguishes it from a later process with the same pid: its start time, in any form that the application can
   * compare.
   */
  readonly started: string;
  /** `pid` leads a process group, which can be killed as a whole. */
  readonly group?: true;
}
/**
 * The started tool runs in this process, which may outlive the agent (R7b). Durable before the process starts its work.
 */
export interface ToolProcessRecord extends ToolProcess {
  kind: "tool.process";
  turn: number;
  call: string;
  message: string | null;
  index?: number;
}
/** The started call has not taken effect: somebody who knows was asked. It counts as never started. */
export interface ToolUnstarted {
  kind: "tool.unstarted";
  turn: number;
  call: string;
  message: string | null;
  index?: number;
  source: string;
}
/** `id` is the id of the resulting entry, if no message ever holds the result. */
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
  /** Where the outcome is known from, if not from the tool itself. */
  source?: string;
  /** The message that shows the outcome to the model. */
  shown?: Json;
  redacted?: true;
  /** Finished steps of earlier runs that this run, which returned, did not ask for: their names may have changed. */
  unusedSteps?: string[];
}

/** A step of a started tool: a part of its work that has an outcome of its own. Durable before the step runs. */
export interface StepStarted {
  kind: "step.started";
  turn: number;
  call: string;
  message: string | null;
  index?: number;
  /** Unique in its call. */
  step: string;
  idempotencyKey?: string;
  replay?: "safe";
  /** The program can ask what happened to the step. */
  probe?: true;
  /** Copied into a new epoch; `first` is when it was first recorded. */
  carried?: true;
  first?: string;
}
export interface StepEnded {
  kind: "step.ended";
  turn: number;
  call: string;
  message: string | null;
  index?: number;
  step: string;
  value?: Json;
  error?: string;
  ms?: number;
  /** Where the outcome is known from, if not from the step itself. */
  source?: string;
  /** Its value is not what the step returned. */
  redacted?: true;
  /** What the step returned could not be recorded: `value` says why. */
  lost?: true;
  carried?: true;
  first?: string;
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
/** The reason given for edits by which `sync` records changes that the application made in its array. */
export const SYNCED = "changed by the application";

export interface UsageRecord {
  kind: "usage";
  turn: number;
  usage: Usage;
}

/**
 * Followed by `session` with all attributes, and by the retained messages. Everything else that is kept is stored here
 * (S16).
 */
export interface EpochRecord {
  kind: "epoch";
  reason: "compaction" | "clear" | "rewind" | "import" | "fork";
  /** The number of retained messages. */
  carried: number;
  /** The seq of the previous epoch's first record, for `undo`; absent if undo is no longer possible. */
  undo?: number;
  checkpoint: Checkpoint;
}
export interface Checkpoint {
  dialect: string;
  /** The writer records every tool start (R5). */
  intents: boolean;
  /** The number of the last turn. */
  turns: number;
  /** Its prompt's message is null: it is among the retained messages or in a `turn.prompt` after the epoch. */
  turn?: TurnCheckpoint;
  /** Starts whose calls have no result yet. */
  started: StartedCheckpoint[];
  draft?: { id: string; turn: number; n: number; parts: DraftPart[]; gap?: true };
  /** Empty, as the notes are: they follow the epoch, each in its own record. Older epochs have them here. */
  queue: QueuedItem[];
  notes: Record<string, Json>;
  usage: Usage;
  usageByTurn: [turn: number, usage: Usage][];
  /**
   * Ids of the first and last message after a change of the past: signed reasoning between them is no longer sent (R1).
   */
  changed?: { from: string; until: string };
  /**
   * Hiding and editing wait for the next turn. Until then, only the `hidden` member of retained messages decides what
   * is shown.
   */
  pending?: true;
}
export interface StartedCheckpoint extends Omit<ToolStarted, "kind"> {
  startedAt: string;
  /**
   * The seq of its start, which identifies the writer that started it. Absent in a journal other than that writer's.
   */
  startedSeq?: number;
  process?: ToolProcess;
  /** It has not taken effect: the source of the `tool.unstarted` that says so. */
  unstarted?: string;
  /** Records are missing since: it may have started steps of which there is no record. */
  gap?: true;
  /** Only in memory: they follow the epoch, each in its own record. */
  steps?: (StepStarted | StepEnded)[];
}
export interface TurnCheckpoint {
  number: number;
  startedAt: string;
  lastAt: string;
  resumes: number;
  /** Tries without progress; `tried`: the last writer's is one of them. */
  attempts?: number;
  tried?: true;
  /** Every writer of this turn recorded tool starts. */
  intents: boolean;
  prompt: Omit<MessageRecord, "kind" | "carried"> & { first: string };
  ended?: Omit<TurnEnded, "kind" | "turn">;
  suspended?: Suspension;
  signal?: { signal: string; error?: string };
}
export interface QueuedItem extends PromptKey {
  id: string;
  prompt: Json;
  queuedAt: string;
  metadata?: Metadata;
  model?: string;
}

/** The last turn's prompt, if it is not retained. A reader that skipped it would show no prompt. */
export interface TurnPrompt {
  kind: "turn.prompt";
  must: true;
  turn: number;
  prompt: TurnCheckpoint["prompt"];
}

/** The keys of earlier epochs: the digests of a key and of its prompt, and the number of its turn. */
export interface TurnKeys {
  kind: "turn.keys";
  keys: [key: string, prompt: string, turn: number][];
  carried: true;
}

export interface QueuePut extends PromptKey {
  kind: "queue.put";
  id: string;
  prompt: Json;
  metadata?: Metadata;
  model?: string;
  /** Copied into a new epoch; `first` is when it was queued. */
  carried?: true;
  first?: string;
}
/** Delivered in the unit of the turn or message, or withdrawn. Its key is from then on that of the last turn. */
export interface QueueTake {
  kind: "queue.take";
  id: string;
  withdrawn?: true;
}

/**
 * Synthesized messages, and why they were needed. From here on they are part of the conversation, exactly as recorded
 * (R1).
 */
export interface RepairRecord {
  kind: "repair";
  turn: number;
  /**
   * The newest record when the following answer was requested. The model had not seen anything after it: results are
   * late, and other messages are placed after the answer (R1).
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
  /** Copied into a new epoch. */
  carried?: true;
}

/** In the unit of the message or tool outcome that it came with. Null: there is no value any more. */
export interface AppStateRecord {
  kind: "state";
  name: string;
  value: Json;
  /** Copied into a new epoch. */
  carried?: true;
}

import type { JournalRecord, Reading } from "holdfast";
import type { Effect } from "./effects.ts";
import type { Log } from "./log.ts";
import type { Message, Voice } from "./voices.ts";

/** Everything known after a death. */
export interface Evidence {
  readonly log: Log;
  readonly voice: Voice;
  readonly draftMs: number;
  /** Every record of every epoch. */
  readonly history: readonly JournalRecord[];
  /** What a reader without a lease sees. */
  readonly reading: Reading<Message>;
  readonly effects: readonly Effect[];
}

export interface ConversationFault {
  readonly what: /** Acknowledged, and not there. */
    | "lost"
    | "twice"
    | "order"
    /** There, although nobody tried to record it, or the library had refused it. */
    | "invented"
    | "altered"
    /** A unit or a replacement is there in part (C7). */
    | "half"
    /** A tool had its effect before its start was durable (R5). */
    | "unrecorded start"
    /** A tool ran again that must not (C4). */
    | "ran twice"
    /** The report on the interrupted turn is wrong (P5). */
    | "interruption"
    /** Streamed text is missing, or came back when it should not (C2, C36). */
    | "words"
    | "queue"
    | "metadata"
    | "usage"
    /** A provider would reject it (P4). */
    | "refused"
    /** The model saw another past than before (R1). */
    | "past"
    /** The library, or a process, did something it must not. */
    | "conduct";
  readonly message: string;
}

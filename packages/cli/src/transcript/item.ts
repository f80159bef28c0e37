import type { Metadata } from "holdfast";
import type { PartOf } from "./said.ts";

/** A file in a message, as people are shown it. */
export type ShownFile = PartOf<"file">["file"];

/**
 * A conversation as people read it, whatever dialect it is in: plain data, which a screen, an export or a server can
 * show. Made by `itemsOf` from the entries of a session.
 */
export type Item = PromptItem | AnswerItem | CallItem | NoteItem;

interface Common {
  /** Of the entry; parts of one entry have a number behind it. */
  readonly id: string;
  readonly at: string;
  readonly turn: number;
  /** It is not shown to the model: replaced, hidden, or late. In words. */
  readonly aside?: string;
  readonly metadata?: Metadata;
}

/** What a person asked. */
export interface PromptItem extends Common {
  readonly kind: "prompt";
  readonly text: string;
  readonly files?: readonly ShownFile[];
}

/** What the model said, or thought. */
export interface AnswerItem extends Common {
  readonly kind: "answer" | "reasoning";
  readonly text: string;
  readonly files?: readonly ShownFile[];
  /** `provider/model`, where it is known. */
  readonly model?: string;
  /** The stream was cut off here. */
  readonly incomplete?: true;
}

/** A tool that the model called, and what came of it. */
export interface CallItem extends Common {
  readonly kind: "call";
  readonly call: string;
  readonly name: string;
  readonly input: unknown;
  readonly state: CallState;
  /** What the model sees of the result, as text. */
  readonly output?: string;
  readonly files?: readonly ShownFile[];
  readonly by?: "provider";
  /** The session of a sub-agent. */
  readonly child?: string;
}

/** `open`: recorded, and nothing else is known. `unknown`: it was started, and nobody knows what came of it. */
export type CallState = "open" | "waiting" | "running" | "done" | "failed" | "denied" | "unknown" | "not-run";

/** A system message, a boundary, a summary: what neither a person nor the model said. */
export interface NoteItem extends Common {
  readonly kind: "note";
  readonly text: string;
}

import type { Metadata, Part } from "holdfast";

/** A file in a message, as shown to people. */
export type ShownFile = Extract<Part, { type: "file" }>["file"];

/**
 * A conversation as people read it, in any dialect: plain data for a screen, an export or a server. Made by `itemsOf`
 * from a session's entries.
 */
export type Item = PromptItem | AnswerItem | CallItem | NoteItem;

interface Common {
  /** The entry's id, with a number for each part if there are several. */
  readonly id: string;
  readonly at: string;
  readonly turn: number;
  /** Why the model does not see it: replaced, hidden, or late. */
  readonly aside?: string;
  readonly metadata?: Metadata;
}

/** A prompt. */
export interface PromptItem extends Common {
  readonly kind: "prompt";
  readonly text: string;
  readonly files?: readonly ShownFile[];
}

/** An answer or a thought of the model. */
export interface AnswerItem extends Common {
  readonly kind: "answer" | "reasoning";
  readonly text: string;
  readonly files?: readonly ShownFile[];
  /** `provider/model`, if known. */
  readonly model?: string;
  /** The stream was cut off here. */
  readonly incomplete?: true;
}

/** A tool call and its outcome. */
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

/** `open`: recorded, and nothing else is known. `unknown`: its outcome; it may have run. */
export type CallState = "open" | "waiting" | "running" | "done" | "failed" | "denied" | "unknown" | "not-run";

/** A system message, a boundary or a summary: said by neither a person nor the model. */
export interface NoteItem extends Common {
  readonly kind: "note";
  readonly text: string;
}

import type { Json } from "../journal/record.ts";

/** The outcome of a tool. */
export type Outcome<T = unknown> = { value: T; error?: undefined } | { error: unknown; value?: undefined };

/**
 * Any part of an SDK's message. It is `any` so that the SDK's own types go in and come out without a cast, also those
 * of new kinds of parts, and Holdfast depends on no SDK. To have the parts checked too, name the SDK's type:
 * `create<MessageParam>(…)`.
 */
// biome-ignore lint/suspicious/noExplicitAny: see above.
export type SdkPart = any;

/** Holdfast itself reads two keys of the metadata. Hiding a call hides its step and its results. */
export type Metadata = { hiddenFromModel?: boolean; hiddenFromUser?: boolean } & { [key: string]: Json | undefined };

/** A recorded message of a conversation. */
export interface Entry<M> {
  readonly id: string;
  readonly seq: number;
  readonly at: string;
  readonly turn: number;
  /** The items of one model response share a step (R3). */
  readonly step: string;
  readonly message: M;
  readonly metadata: Metadata;
  /** Why it was synthesized: no model and no user produced it (P3). */
  readonly synthetic?: string;
  readonly incomplete?: true;
  /** A result that came after a later assistant message: shown to people, not to the model (R1). */
  readonly late?: true;
  readonly replacedBy?: string;
  readonly model?: string;
  /** The call that it answers, where the call's id is ambiguous because it repeats (R9). */
  readonly call?: { readonly message: string; readonly index: number };
  /** The tool's return value, where the model is shown something else. For people. */
  readonly value?: Json;
  /** Where the outcome is known from, if not from the tool itself: "probe" if its service was asked after a crash. */
  readonly source?: string;
}

/** A call that a message makes. */
export interface Call {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
  /** The provider runs some tools itself; the agent does not answer those calls (R8). */
  readonly by: "agent" | "provider";
  /** It waits for a person's approval (R7). */
  readonly awaiting?: boolean;
  /** The id of the approval request, if it has its own. */
  readonly approval?: string;
}

/** What a message consists of, whatever dialect it is in. Empty text is left out. */
export type Part =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "file"; readonly file: FileContent }
  | ({ readonly type: "call" } & Call)
  | ResultPart
  | ProgressPart
  | ApprovalPart;

/** A file in a message: its content (`data`), or where it is (`url`), or neither, if only the provider has it. */
export interface FileContent {
  readonly mediaType: string;
  readonly name?: string;
  /** Base64, without the prefix of a data URL. */
  readonly data?: string;
  readonly url?: string;
  readonly bytes?: number;
}

/** What came of a call. */
export interface ResultPart {
  readonly type: "result";
  readonly call: string;
  /** It came without an id: `call` is a stand-in. */
  readonly idless?: true;
  readonly name?: string;
  readonly text: string;
  /** The same as JSON, where it is more than text. */
  readonly json?: unknown;
  readonly failed: boolean;
  /** A person decided that the call must not run. */
  readonly denied?: true;
  readonly files: readonly FileContent[];
}

/** What is said about a call while it runs (ACP). */
export interface ProgressPart {
  readonly type: "progress";
  readonly call: string;
  readonly name?: string;
  readonly input?: unknown;
  readonly text: string;
  readonly running: boolean;
}

/** What a person decided about a waiting call, by the id of the request. */
export interface ApprovalPart {
  readonly type: "approval";
  readonly approval: string;
  readonly approved: boolean;
  readonly reason?: string;
}

/** What the view made by `arrange` is for. */
export interface View {
  /**
   * The id of the first entry after which the application changed the past: signed reasoning from there on may no
   * longer be sent (R1).
   */
  readonly changedAt: string | null;
  /**
   * The id of the last entry that the change affects, including its step: later reasoning was signed over the changed
   * past, and stays. If it is missing or not among the entries, the change extends to the end.
   */
  readonly changedUntil?: string | null;
  /**
   * The id of the first entry with redacted text: it is unknown what was signed after it, so no reasoning after it is
   * sent.
   */
  readonly redactedAt?: string | null;
  /** The model that the view is for, if known: reasoning signed by another model is left out (R4). */
  readonly model?: string;
  /** What will follow the view: a prompt, or nothing (the model is asked with the view as it is). */
  readonly next: "prompt" | "model";
}

/**
 * What Holdfast needs to know about an SDK's messages. Every function is pure and total: it returns for any input, and
 * changes nothing.
 */
export interface Dialect<M> {
  readonly name: string;
  /** Why the message does not fit the dialect; null if it does. */
  check(message: M): string | null;
  /**
   * Encodes what JSON cannot carry (bytes, URLs). Without it, a message that JSON would change is refused
   * (MESSAGE_NOT_JSON).
   */
  encode?(message: M): Json;
  decode?(stored: Json): M;
  role(message: M): "system" | "user" | "assistant" | "tool" | "other";
  /** The text to show and search, without reasoning and tool traffic. */
  text(message: M): string;
  /** The calls that the message makes, in order. */
  calls(message: M): Call[];
  /** The calls that the message answers, in order. */
  results(message: M): { readonly call: string }[];
  /** A person's decisions about waiting calls in this message, by the ids of the requests (R7). */
  approvals?(message: M): { readonly approval: string; readonly approved: boolean }[];
  /**
   * What the message consists of, in order, for an interface or an export that shows conversations of any dialect. The
   * calls and results in it are those of `calls` and `results`. Optional, since the library itself does not need it:
   * `partsOf` falls back on `text`, `calls`, `results` and `approvals`.
   */
  parts?(message: M): Part[];
  /**
   * A message that answers a call; `arrange` converts it to the kind that the call needs. Null if the outcome cannot be
   * phrased (a screenshot): then the call's step is left out. `denied`: a person decided that it must not run.
   */
  result(call: { readonly id: string; readonly name: string; readonly denied?: boolean }, outcome: Outcome): M | null;
  /** An assistant message with the text that was streamed before the cut-off; null if there is nothing to show. */
  incomplete(text: string): M | null;
  /** A message in the user's role that tells the model about an interruption (R2). */
  boundary(text: string): M;
  /** Equal except for cache marks and halves of characters, which are not sent. */
  same(a: M, b: M): boolean;
  /**
   * Why no request will contain some of these messages, which were recorded as one step: for developers, with what to
   * do about it. Null if all of them are sent. The text depends only on the kind of problem, so that it is reported
   * once.
   */
  unsent?(step: readonly M[]): string | null;
  /**
   * The messages for the model, from entries in conversation order. Results are in the position and order that the
   * provider requires, one per call, the first one recorded; orphans and second results are left out. Steps are whole,
   * repeated call ids are renamed, reasoning that may no longer be sent is left out, and no content is empty. Calls of
   * the agent stay open only at the very end. The caller replaces halves of characters. The same entries give the same
   * result; more entries after them give a longer one with the same beginning (R1).
   */
  arrange(entries: readonly Entry<M>[], view: View): M[];
}

import type { Json } from "../journal/record.ts";

/** What a tool came to. */
export type Outcome<T = unknown> = { value: T; error?: undefined } | { error: unknown; value?: undefined };

/** Of the metadata, Holdfast itself reads two keys. Hiding a call hides its step and its results. */
export type Metadata = { hiddenFromModel?: boolean; hiddenFromUser?: boolean } & { [key: string]: Json | undefined };

/** One recorded message of a conversation. */
export interface Entry<M> {
  readonly id: string;
  readonly seq: number;
  readonly at: string;
  readonly turn: number;
  /** The items of one response of the model share a step (R3). */
  readonly step: string;
  readonly message: M;
  readonly metadata: Metadata;
  /** Why it was made up: no model and no user produced it (P3). */
  readonly synthetic?: string;
  readonly incomplete?: true;
  /** A result that came after a later assistant message: shown to people, not to the model (R1). */
  readonly late?: true;
  readonly replacedBy?: string;
  readonly model?: string;
  /** The call that it answers, where that is known better than by the call's id, which may repeat (R9). */
  readonly call?: { readonly message: string; readonly index: number };
  /** What the tool returned, where the model is shown something else of it. For people. */
  readonly value?: Json;
}

/** A call that a message makes. */
export interface Call {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
  /** The provider runs some tools by itself; those are not ours to answer (R8). */
  readonly by: "agent" | "provider";
  /** It waits for a person's approval (R7). */
  readonly awaiting?: boolean;
  /** The id of the request for that approval, if it has one of its own. */
  readonly approval?: string;
}

/** What `arrange` is to produce a view for. */
export interface View {
  /** The id of the first entry behind which the application changed the past: signed reasoning from there on may no longer be sent (R1). */
  readonly changedAt: string | null;
  /**
   * The id of the last entry that the change reaches, its step with it: reasoning behind it was signed over the changed past, and stays. Without it, or if it is not
   * among the entries, the change reaches to the end.
   */
  readonly changedUntil?: string | null;
  /** The id of the first entry whose texts were redacted: nobody knows what was signed behind it, and none of that reasoning is sent. */
  readonly redactedAt?: string | null;
  /** The model that the view is for, if that is known: reasoning that another model signed is left out (R4). */
  readonly model?: string;
  /** What will be added behind it: a prompt, or nothing (the model is asked as it stands). */
  readonly next: "prompt" | "model";
}

/**
 * What must be known of an SDK's messages, and nothing more. Every function is pure and total: whatever it is given, it answers, and changes nothing.
 */
export interface Dialect<M> {
  readonly name: string;
  /** Why the message does not fit the dialect; null if it does. */
  check(message: M): string | null;
  /** What JSON cannot carry (bytes, URLs) in a form that it can. Without it, what JSON would change is refused (MESSAGE_NOT_JSON). */
  encode?(message: M): Json;
  decode?(stored: Json): M;
  role(message: M): "system" | "user" | "assistant" | "tool" | "other";
  /** The text to show and to search, without reasoning and tool traffic. */
  text(message: M): string;
  /** The calls that the message makes, in order. */
  calls(message: M): Call[];
  /** The calls that the message answers, in order. */
  results(message: M): { readonly call: string }[];
  /** What a person decided in it of the calls that waited for that, by the ids of the requests (R7). */
  approvals?(message: M): { readonly approval: string; readonly approved: boolean }[];
  /**
   * A message that answers a call, of which `arrange` makes the kind that the call wants. Null if that cannot be phrased (a screenshot): the call's step is then left out.
   * `denied`: a person decided that it is not to run.
   */
  result(call: { readonly id: string; readonly name: string; readonly denied?: boolean }, outcome: Outcome): M | null;
  /** A message of the assistant's with the text that had been streamed when it was cut off; null if there is nothing to show. */
  incomplete(text: string): M | null;
  /** A message in the user's role that tells the model of an interruption (R2). */
  boundary(text: string): M;
  /** Equal but for cache marks, and for halves of characters, which are not sent. */
  same(a: M, b: M): boolean;
  /**
   * Why no request will hold some of these messages, which were recorded as one step: in words for the developer, with what to do about it. Null if all of it is sent. The words depend on the kind of
   * the fault alone: they are said once.
   */
  unsent?(step: readonly M[]): string | null;
  /**
   * The messages for the model, from entries in the order of the conversation: results in the place and the order that the provider demands, one for each call, the first
   * one that there is; orphans and second results left out; steps whole; repeated call ids renamed; reasoning that may no longer be sent left out; no empty content. Calls of the agent that have no
   * result stay open only at the very end. Half a character in a text is replaced by whoever asks. For the same entries the same answer, and for more entries behind them a longer one with the same beginning (R1).
   */
  arrange(entries: readonly Entry<M>[], view: View): M[];
}

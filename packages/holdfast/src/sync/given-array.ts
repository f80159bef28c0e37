import { type Admission, found, readable, type StoredMessage, unfit } from "../admit/admit.ts";

export interface SyncOptions {
  /** The last message is still growing: it is kept as a draft. */
  readonly open?: boolean;
  /**
   * What to do with an array that no longer starts with the recorded conversation. By default it starts a new epoch,
   * except at the first sync after the session is opened: an array that lacks recorded messages throws SYNC_REWRITE,
   * since the application probably did not load the conversation. "epoch": start a new epoch in that case too. "error":
   * always throw.
   */
  readonly rewrite?: "epoch" | "error";
}

/** How many of the last messages are compared even if they are the same objects: agents keep writing into those. */
export const TAIL_MAX = 8;

/** A message of the array, as it was when the array was given. */
export interface ArrayMessage<M> {
  /** Its content. */
  readonly content: M;
  /** What is recorded for it. */
  readonly stored: StoredMessage;
}

/**
 * The array of one sync, as it was during the call (R19). Object identity shows which messages are known; content is
 * read once, and only for messages that may be new, so a sync by reference costs only what is new.
 */
export class GivenArray<M> {
  readonly objects: readonly M[];
  readonly #held: (ArrayMessage<M> | undefined)[] = [];
  readonly #admission: Admission<M>;

  /** Throws MESSAGE_UNFIT, MESSAGE_NOT_JSON. */
  constructor(given: readonly M[], admission: Admission<M>) {
    if (!Array.isArray(given)) throw unfit(`sync expects a list of messages, not ${found(given)}`);
    this.objects = readable("messages", undefined, () => [...given]);
    this.#admission = admission;
  }

  get length(): number {
    return this.objects.length;
  }

  /** Throws MESSAGE_UNFIT, MESSAGE_NOT_JSON, with the index in the array. */
  held(at: number): ArrayMessage<M> {
    const known = this.#held[at];
    if (known) return known;
    const held = this.#admission.held(this.objects[at]!, at);
    this.#held[at] = held;
    return held;
  }

  content(at: number): M {
    return this.held(at).content;
  }

  role(at: number): StoredMessage["role"] {
    return this.held(at).stored.role;
  }

  /** What is recorded for the messages from `from` (inclusive) to `to` (exclusive). */
  storedIn({ from, to }: { readonly from: number; readonly to: number }): StoredMessage[] {
    return Array.from({ length: to - from }, (_, n) => this.held(from + n).stored);
  }

  /** Reads these messages now, so that later changes to them have no effect. */
  hold(isWanted: (at: number) => boolean): void {
    for (let at = 0; at < this.length; at++) if (isWanted(at)) this.held(at);
  }

  /**
   * Like `hold`, for a sync that has to wait. Objects that were also in the previous array were read with it, except
   * the last few.
   */
  holdSince(before: readonly M[]): void {
    const isOld = (at: number): boolean => at < before.length - TAIL_MAX && this.objects[at] === before[at];
    this.hold((at) => !isOld(at));
  }

  /** The contents from `from` on; earlier messages are left in place as they are, to keep the indices. */
  contents(from: number): M[] {
    return this.objects.map((object, at) => (at < from ? object : this.content(at)));
  }
}

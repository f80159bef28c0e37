import { type Admission, found, readable, type StoredMessage, unfit } from "../admit/admit.ts";

export interface SyncOptions<M> {
  /** The last message still grows: it is kept as a draft. */
  readonly open?: boolean;
  /**
   * What to do with an array that no longer begins with what is recorded. By default it becomes a new epoch, but for the first sync of a session that was resumed: an array that shares nothing with it is SYNC_REWRITE, since it was
   * probably not loaded. "epoch": that too is meant.
   */
  readonly rewrite?: "epoch" | "error";
  /** What tells two messages apart without comparing them byte by byte. */
  readonly key?: (message: M) => string;
}

/** So many of the last messages are looked at though they are the same objects: agents go on writing into those. */
export const TAIL_MAX = 8;

/** A message of the array, as it was when the array was given. */
export interface Held<M> {
  /** What it says. */
  readonly content: M;
  /** What is recorded of it. */
  readonly stored: StoredMessage;
}

/**
 * The array of one sync, as it was inside the call (R19). The objects themselves tell which messages are known; what they say is read once, and only of those that may be new: by reference, a sync costs
 * what is new.
 */
export class GivenArray<M> {
  readonly objects: readonly M[];
  readonly #held: (Held<M> | undefined)[] = [];
  readonly #keys: (string | undefined)[] = [];
  readonly #admission: Admission<M>;
  readonly #key: SyncOptions<M>["key"];

  /** Throws MESSAGE_UNFIT, MESSAGE_NOT_JSON. */
  constructor(given: readonly M[], admission: Admission<M>, key: SyncOptions<M>["key"]) {
    if (!Array.isArray(given)) throw unfit(`sync wants a list of messages, and not ${found(given)}`);
    this.objects = readable("messages", undefined, () => [...given]);
    this.#admission = admission;
    this.#key = key;
  }

  get length(): number {
    return this.objects.length;
  }

  /** Throws MESSAGE_UNFIT, MESSAGE_NOT_JSON, with the place in the array. */
  held(at: number): Held<M> {
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

  /** What the application's `key` says of it. Empty: there is none, and the messages themselves are compared. */
  key(at: number): string {
    const known = this.#keys[at];
    if (known !== undefined) return known;
    const given: unknown = this.#key?.(this.objects[at]!);
    const key = typeof given === "string" ? given : "";
    this.#keys[at] = key;
    return key;
  }

  /** Reads these messages: what is done to them from now on changes nothing. */
  hold(isWanted: (at: number) => boolean): void {
    for (let at = 0; at < this.length; at++) if (isWanted(at)) this.held(at);
  }

  /** The same for a sync that has to wait: those that are the very objects of the array before it were read with that one, but for the last few. */
  holdSince(before: readonly M[]): void {
    const isOld = (at: number): boolean => at < before.length - TAIL_MAX && this.objects[at] === before[at];
    for (let at = 0; at < this.length; at++) {
      if (isOld(at)) continue;
      this.held(at);
      this.key(at);
    }
  }

  /** What the messages say from `from` on; those before it stand there as they are, for whoever counts on their places. */
  contents(from: number): M[] {
    return this.objects.map((object, at) => (at < from ? object : this.content(at)));
  }
}

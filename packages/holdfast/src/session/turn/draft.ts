import { draftGone } from "../../admit/refusals.ts";
import type { Appended } from "../../admit/to-records.ts";
import type { DraftPart } from "../../conversation/records/records.ts";
import { isHoldfastError } from "../../errors.ts";
import { HeldBack } from "../../redact/held-back.ts";
import type { Redactor } from "../../redact/redactor.ts";
import type { AnswerOptions, Delta, Draft } from "./surface.ts";

/** A draft record, without the members that the turn adds. */
export interface DraftPiece {
  readonly id: string;
  readonly n: number;
  readonly parts?: DraftPart[];
  readonly discarded?: string;
}

/** What a draft needs from its turn. */
export interface DraftContext<M> {
  readonly draftMs: number;
  readonly draftChars: number;
  readonly redactor: Redactor | null;
  /** Hands a record over without waiting for a sync. Never throws or rejects: it returns the error, or null. */
  write(piece: DraftPiece): Promise<unknown>;
  /** Records what the answer can be fetched by. */
  accepted(draft: LiveDraft<M>, handle: unknown): Promise<void>;
  commit(draft: LiveDraft<M>, message: M | M[], options: AnswerOptions): Promise<Appended>;
  /** Opens another draft for the same request. */
  restart(): LiveDraft<M>;
}

/** Buffers streamed text and writes it every 200 ms or 8 KB. Nothing waits, so recording never slows a stream. */
export class LiveDraft<M> implements Draft<M> {
  readonly id: string;
  readonly #context: DraftContext<M>;
  #parts: DraftPart[] = [];
  #chars = 0;
  #n = 0;
  #timer: NodeJS.Timeout | null = null;
  #heldBack: Map<string, { readonly part: number; readonly member: Member; readonly held: HeldBack }> | null;
  #state: "open" | "committed" | "gone" = "open";
  /** A handle is recorded, or being recorded. */
  #isAccepted: boolean;
  /** The outcome of the pieces handed over so far: null, or the error of the last of them. */
  #written: Promise<unknown> = Promise.resolve(null);
  /** Why a piece is missing for good: nothing after it counts. */
  #lost: unknown = null;
  /** Messages being written that will replace the draft: nothing is written until it is known whether they succeed. */
  #successors = 0;
  /** Until that is known of the last of them. */
  #released: PromiseWithResolvers<void> | null = null;

  constructor(id: string, context: DraftContext<M>, isAccepted: boolean) {
    this.id = id;
    this.#context = context;
    this.#isAccepted = isAccepted;
    this.#heldBack = context.redactor ? new Map() : null;
  }

  get isOpen(): boolean {
    return this.#state === "open";
  }

  /** Open, and no message that would replace it is being written. */
  get isUnanswered(): boolean {
    return this.isOpen && this.#successors === 0;
  }

  push(delta: Delta): void {
    const given = this.isOpen ? readDelta(delta) : null;
    if (!given) return;
    const part = Number.isSafeInteger(given.part) ? (given.part as number) : 0;
    const { call } = given;
    if (call) {
      this.#of(part).call = call;
      this.#chars += call.id.length + call.name.length;
    }
    for (const member of MEMBERS) {
      const text = given[member];
      if (typeof text === "string" && text !== "") this.#add(part, member, this.#clean(part, member, text));
    }
    if (this.#chars >= this.#context.draftChars) void this.flush();
    else this.#schedule();
  }

  accepted(handle: unknown): Promise<void> {
    if (!this.isUnanswered) return Promise.reject(draftGone());
    this.#isAccepted = true;
    return this.#context.accepted(this, handle);
  }

  commit(message: M | M[], options: AnswerOptions = {}): Promise<Appended> {
    if (this.#state === "gone") return Promise.reject(draftGone());
    return this.#context.commit(this, message, options);
  }

  async discard(reason = "discarded"): Promise<void> {
    if (!this.isOpen) return;
    this.stop();
    if (this.#n > 0 || this.#isAccepted) await this.#context.write({ id: this.id, n: this.#n, discarded: reason });
  }

  restart(): LiveDraft<M> {
    if (!this.isUnanswered) throw draftGone();
    return this.#context.restart();
  }

  /**
   * Hands over the buffered text, except a possible start of a secret. Never rejects. Returns null when everything
   * pushed so far is written; otherwise the error.
   */
  async flush(): Promise<unknown> {
    // A message that is being written takes the place of it all, unless it is refused.
    while (this.#released) await this.#released.promise;
    const piece = this.#take();
    if (piece) this.#written = this.#write(piece, this.#written);
    return (await this.#written) ?? this.#lost;
  }

  async #write(piece: DraftPiece & { readonly parts: DraftPart[] }, before: Promise<unknown>): Promise<unknown> {
    const error = await this.#context.write(piece);
    if (error !== null) this.#putBack(piece, error);
    await before;
    return error;
  }

  /** Like `flush`, for a stream that was cut off: a tail that could be the start of a secret is redacted. */
  flushLast(): Promise<unknown> {
    if (this.isOpen) {
      for (const { part, member, held } of this.#heldBack?.values() ?? []) this.#add(part, member, held.end());
    }
    return this.flush();
  }

  /** Like `flush`, but writes synchronously with `write`, which may throw. */
  flushSync(write: (piece: DraftPiece) => void): void {
    if (this.#successors > 0) return;
    const piece = this.#take();
    try {
      if (piece) write(piece);
    } catch (error) {
      this.#putBack(piece!, error);
      throw error;
    }
    if (this.#lost !== null) throw this.#lost;
  }

  /** Accepts nothing more, and drops text that was not handed over. */
  stop(): void {
    if (this.isOpen) this.#state = "gone";
    this.#drop();
  }

  /** A message that replaces the draft is being written. */
  hold(): void {
    this.#successors += 1;
    this.#released ??= Promise.withResolvers();
    this.#clearTimer();
  }

  /** That message was recorded, as this draft's own or as another; or it failed (null), and the draft continues. */
  release(by: "itself" | "another" | null): void {
    this.#successors -= 1;
    if (by === "itself") this.#state = "committed";
    if (by === "another") this.stop();
    if (this.isOpen) this.#schedule();
    else this.#drop();
    if (this.#successors > 0) return;
    this.#released?.resolve();
    this.#released = null;
  }

  #take(): (DraftPiece & { readonly parts: DraftPart[] }) | null {
    if (this.#parts.length === 0) return null;
    this.#clearTimer();
    const parts = this.#parts;
    this.#parts = [];
    this.#chars = 0;
    return { id: this.id, n: this.#n++, parts };
  }

  /**
   * The piece was not written. Only the newest can be retried, unless it is too large: later ones have the next numbers
   * and show the gap.
   */
  #putBack({ n, parts }: DraftPiece & { readonly parts: DraftPart[] }, error: unknown): void {
    if (!this.isOpen) return;
    if (this.#n !== n + 1 || isHoldfastError(error, "RECORD_TOO_LARGE")) {
      this.#lost ??= error;
      return;
    }
    const later = this.#parts;
    this.#n = n;
    this.#parts = parts.map((part) => ({ ...part }));
    for (const { part, call, ...texts } of later) {
      const of = this.#of(part);
      if (call) of.call = call;
      for (const member of MEMBERS) if (texts[member] !== undefined) of[member] = (of[member] ?? "") + texts[member];
    }
    this.#schedule();
  }

  #clean(part: number, member: Member, text: string): string {
    if (!this.#heldBack) return text;
    const key = `${part} ${member}`;
    const of = this.#heldBack.get(key) ?? { part, member, held: new HeldBack(this.#context.redactor!) };
    this.#heldBack.set(key, of);
    return of.held.push(text);
  }

  #add(part: number, member: Member, text: string): void {
    if (text === "") return;
    const of = this.#of(part);
    of[member] = (of[member] ?? "") + text;
    this.#chars += text.length;
  }

  /** Parts interleave, and each is one string. There are few, so a linear search is enough. */
  #of(part: number): DraftPart {
    let found = this.#parts.find((one) => one.part === part);
    if (!found) {
      found = { part };
      this.#parts.push(found);
    }
    return found;
  }

  #schedule(): void {
    if (this.#parts.length === 0 || this.#successors > 0) return;
    this.#timer ??= setTimeout(() => void this.flush(), this.#context.draftMs);
  }

  #drop(): void {
    this.#clearTimer();
    this.#parts = [];
    this.#written = Promise.resolve(null);
    this.#lost = null;
  }

  #clearTimer(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
  }
}

/** Reads the delta once. Total, because a push never throws: null if nothing in it can be read. */
function readDelta(delta: Delta): Delta | null {
  try {
    if (typeof delta !== "object" || delta === null) return null;
    const { part, text, reasoning, input, call } = delta;
    const { id, name } = call ?? {};
    const isCall = typeof id === "string" && typeof name === "string";
    return { part, text, reasoning, input, ...(isCall ? { call: { id, name } } : {}) } as Delta;
  } catch {
    return null;
  }
}

const MEMBERS = ["text", "reasoning", "input"] as const;
type Member = (typeof MEMBERS)[number];

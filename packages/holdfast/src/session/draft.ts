import type { DraftPart } from "./records.ts";
import { HeldBack } from "./redact/held-back.ts";
import type { Redactor } from "./redact/redactor.ts";
import { draftGone } from "./refusals.ts";
import type { Appended, AppendOptions, Delta, Draft } from "./surface.ts";

/** What a draft needs of its turn. */
export interface DraftHost<M> {
  readonly draftMs: number;
  readonly draftBytes: number;
  readonly redactor: Redactor | null;
  /** Hands a record over, without waiting for a sync. Never throws, and never rejects. */
  write(record: { id: string; n: number; parts?: DraftPart[]; discarded?: string }): Promise<void>;
  commit(draft: LiveDraft<M>, message: M | M[], options: AppendOptions): Promise<Appended>;
}

/**
 * Gathers what is streamed, and writes it every 200 ms or 8 KB. Nothing here waits: a stream is never slower for being recorded.
 */
export class LiveDraft<M> implements Draft<M> {
  readonly id: string;
  readonly #host: DraftHost<M>;
  #parts: DraftPart[] = [];
  #chars = 0;
  #n = 0;
  #timer: NodeJS.Timeout | null = null;
  #heldBack: Map<string, { readonly part: number; readonly member: Member; readonly held: HeldBack }> | null;
  #isOpen = true;

  constructor(id: string, host: DraftHost<M>) {
    this.id = id;
    this.#host = host;
    this.#heldBack = host.redactor ? new Map() : null;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  push(delta: Delta): void {
    if (!this.#isOpen || typeof delta !== "object" || delta === null) return;
    const part = Number.isSafeInteger(delta.part) ? (delta.part as number) : 0;
    const { call } = delta;
    if (typeof call === "object" && call !== null && typeof call.id === "string" && typeof call.name === "string") {
      this.#of(part).call = { id: call.id, name: call.name };
      this.#chars += call.id.length + call.name.length;
    }
    for (const member of MEMBERS) {
      const text = delta[member];
      if (typeof text === "string" && text !== "") this.#add(part, member, this.#clean(part, member, text));
    }
    if (this.#parts.length === 0) return;
    if (this.#chars >= this.#host.draftBytes) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), this.#host.draftMs);
  }

  commit(message: M | M[], options: AppendOptions = {}): Promise<Appended> {
    if (!this.#isOpen) return Promise.reject(draftGone());
    return this.#host.commit(this, message, options);
  }

  async discard(reason = "discarded"): Promise<void> {
    if (!this.#isOpen) return;
    this.stop();
    if (this.#n > 0) await this.#host.write({ id: this.id, n: this.#n, discarded: reason });
  }

  /** Hands over what has been gathered. */
  flush(): void {
    this.#clearTimer();
    if (this.#parts.length === 0) return;
    const parts = this.#parts;
    this.#parts = [];
    this.#chars = 0;
    void this.#host.write({ id: this.id, n: this.#n++, parts });
  }

  /** Also what was held back because it might have been the beginning of a secret: nothing more will come. */
  flushAll(): void {
    for (const { part, member, held } of this.#heldBack?.values() ?? []) this.#add(part, member, held.end());
    this.flush();
  }

  /** Nothing more is taken, and what has not been handed over is dropped. */
  stop(): void {
    this.#isOpen = false;
    this.#clearTimer();
    this.#parts = [];
  }

  #clean(part: number, member: Member, text: string): string {
    if (!this.#heldBack) return text;
    const key = `${part} ${member}`;
    const of = this.#heldBack.get(key) ?? { part, member, held: new HeldBack(this.#host.redactor!) };
    this.#heldBack.set(key, of);
    return of.held.push(text);
  }

  #add(part: number, member: Member, text: string): void {
    if (text === "") return;
    const of = this.#of(part);
    of[member] = (of[member] ?? "") + text;
    this.#chars += text.length;
  }

  /** Parts interleave, and each is one string: there are few of them. */
  #of(part: number): DraftPart {
    let found = this.#parts.find((one) => one.part === part);
    if (!found) {
      found = { part };
      this.#parts.push(found);
    }
    return found;
  }

  #clearTimer(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
  }
}

const MEMBERS = ["text", "reasoning", "input"] as const;
type Member = (typeof MEMBERS)[number];

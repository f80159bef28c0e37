import type { DraftPart, DraftRecord } from "./records/records.ts";

export interface DraftContent {
  readonly id: string;
  readonly text: string;
  readonly reasoning: string;
  readonly calls: { readonly id: string; readonly name: string; readonly input: string }[];
  readonly gap: boolean;
}

type Saved = { id: string; turn: number; n: number; parts: DraftPart[]; gap?: true };

/**
 * The turn's open draft. There is at most one: another draft or an answer ends it, and its text never reappears (R10,
 * C36).
 */
export class Drafts {
  readonly #over = new Set<string>();
  #open: DraftState | null;

  constructor(saved?: Saved) {
    this.#open = saved ? DraftState.from(saved) : null;
  }

  get open(): DraftState | null {
    return this.#open;
  }

  add(record: Pick<DraftRecord, "id" | "turn" | "n" | "parts" | "discarded">): void {
    if (this.#over.has(record.id)) return;
    if (record.discarded !== undefined) {
      this.#over.add(record.id);
      if (this.#open?.id === record.id) this.#open = null;
      return;
    }
    if (this.#open?.id !== record.id) {
      this.drop();
      this.#open = new DraftState(record.id, record.turn);
    }
    this.#open!.add(record);
  }

  drop(): void {
    if (this.#open) this.#over.add(this.#open.id);
    this.#open = null;
  }
}

/** A draft, accumulated from its records. */
export class DraftState {
  readonly id: string;
  readonly turn: number;
  readonly #parts = new Map<number, { -readonly [K in keyof DraftPart]: DraftPart[K] }>();
  #next = 0;
  #gap = false;

  constructor(id: string, turn: number) {
    this.id = id;
    this.turn = turn;
  }

  /** A missing record shows as a gap in the count; text after the gap is dropped (R10). */
  add({ n, parts = [] }: Pick<DraftRecord, "n" | "parts">): void {
    if (n !== this.#next) this.#gap = true;
    this.#next = n + 1;
    if (this.#gap) return;
    for (const { part, text, reasoning, call, input } of parts) {
      const of = this.#parts.get(part) ?? { part };
      if (text !== undefined) of.text = (of.text ?? "") + text;
      if (reasoning !== undefined) of.reasoning = (of.reasoning ?? "") + reasoning;
      if (call !== undefined) of.call = call;
      if (input !== undefined) of.input = (of.input ?? "") + input;
      this.#parts.set(part, of);
    }
  }

  get content(): DraftContent {
    const parts = this.#ordered();
    return {
      id: this.id,
      text: parts.map(({ text = "" }) => text).join(""),
      reasoning: parts.map(({ reasoning = "" }) => reasoning).join(""),
      calls: parts.flatMap(({ call, input = "" }) => (call ? [{ id: call.id, name: call.name, input }] : [])),
      gap: this.#gap,
    };
  }

  checkpoint(): Saved {
    const parts = this.#ordered().map((part) => ({ ...part }));
    return { id: this.id, turn: this.turn, n: this.#next, parts, ...(this.#gap ? { gap: true } : {}) };
  }

  static from(saved: Saved): DraftState {
    const draft = new DraftState(saved.id, saved.turn);
    draft.add({ n: 0, parts: saved.parts });
    draft.#next = saved.n;
    draft.#gap = saved.gap === true;
    return draft;
  }

  #ordered(): DraftPart[] {
    return [...this.#parts.values()].sort((a, b) => a.part - b.part);
  }
}

import type { DraftPart, DraftRecord } from "./records.ts";
import type { DraftContent } from "./surface.ts";

/** The open draft, as its records add up. */
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

  /** A record that is missing shows as a gap in the count: what comes behind it belongs to nothing (R10). */
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
      calls: parts.flatMap(({ call, input = "" }) => (call ? [{ ...call, input }] : [])),
      gap: this.#gap,
    };
  }

  checkpoint(): { id: string; turn: number; n: number; parts: DraftPart[]; gap?: true } {
    const parts = this.#ordered().map((part) => ({ ...part }));
    return { id: this.id, turn: this.turn, n: this.#next, parts, ...(this.#gap ? { gap: true } : {}) };
  }

  static from(saved: ReturnType<DraftState["checkpoint"]>): DraftState {
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

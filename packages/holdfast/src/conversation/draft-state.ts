import type { Json } from "../journal/record.ts";
import type { DraftAccepted, DraftPart, DraftRecord } from "./records/records.ts";
import { deepFreeze } from "./snapshot.ts";

export interface DraftContent {
  readonly id: string;
  readonly text: string;
  readonly reasoning: string;
  readonly calls: { readonly id: string; readonly name: string; readonly input: string }[];
  readonly gap: boolean;
}

/** A request that the provider has accepted. */
export interface AcceptedRequest {
  /** What the application recorded to fetch the answer by. */
  readonly handle: Json;
  readonly acceptedAt: string;
  /** Messages were recorded since the request. They are placed after the answer, which has not seen them. */
  readonly saidSince: boolean;
}

type AcceptedState = Omit<AcceptedRequest, "saidSince"> & Omit<DraftAccepted, "kind">;

type DraftCheckpoint = { id: string; turn: number; n: number; parts: DraftPart[]; gap?: true };

/**
 * The turn's open draft. There is at most one: another draft or an answer ends it, and its text never reappears (R10,
 * C36).
 */
export class Drafts {
  readonly #over = new Set<string>();
  #open: DraftState | null;
  #accepted: AcceptedState | null = null;

  constructor(saved?: DraftCheckpoint) {
    this.#open = saved ? DraftState.from(saved) : null;
  }

  get open(): DraftState | null {
    return this.#open;
  }

  /** The accepted request without an answer. It outlives its process, since its answer can still be fetched. */
  get accepted(): AcceptedState | null {
    return this.#accepted;
  }

  add(record: Pick<DraftRecord, "id" | "turn" | "n" | "parts" | "discarded">): void {
    if (this.#over.has(record.id)) return;
    if (record.discarded !== undefined) {
      this.#over.add(record.id);
      if (this.#open?.id === record.id) this.#open = null;
      if (this.#accepted?.id === record.id) this.#accepted = null;
      return;
    }
    this.#replaceOthers(record.id);
    this.#open ??= new DraftState(record.id, record.turn);
    this.#open.add(record);
  }

  accept({ at: acceptedAt, ...record }: DraftAccepted & { readonly at: string }): void {
    if (this.#over.has(record.id)) return;
    this.#replaceOthers(record.id);
    this.#accepted = { ...record, acceptedAt, handle: deepFreeze(record.handle) };
  }

  drop(): void {
    this.#replaceOthers(null);
  }

  /** The messages that the request was sent with are no longer the same: its answer does not count. */
  changed(): void {
    if (this.#accepted) this.#over.add(this.#accepted.id);
    this.#accepted = null;
  }

  /**
   * The turn is continued. The text is over, but the accepted request has the same draft, with the text that the
   * provider sends again. What the model was told of open calls is no longer true.
   */
  resume(): void {
    const accepted = this.#accepted?.calls ? null : this.#accepted;
    this.#replaceOthers(accepted?.id ?? null);
    this.#open = null;
  }

  /** Only the draft with this id remains. */
  #replaceOthers(id: string | null): void {
    if (this.#open && this.#open.id !== id) {
      this.#over.add(this.#open.id);
      this.#open = null;
    }
    if (this.#accepted && this.#accepted.id !== id) this.changed();
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

  checkpoint(): DraftCheckpoint {
    const parts = this.#ordered().map((part) => ({ ...part }));
    return { id: this.id, turn: this.turn, n: this.#next, parts, ...(this.#gap ? { gap: true } : {}) };
  }

  static from(saved: DraftCheckpoint): DraftState {
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

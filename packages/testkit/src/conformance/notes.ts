import assert from "node:assert/strict";
import type { JournalRecord, Json } from "holdfast";
import type { NewRecord, Summariser } from "holdfast/store";

/** The records that the cases write: a `note` has a text, a `title` names the session. */
export function note(text: string): NewRecord {
  return { kind: "note", text };
}

export function notes(count: number, prefix = "note"): NewRecord[] {
  return Array.from({ length: count }, (_, i) => note(`${prefix} ${i + 1}`));
}

export function title(text: string): NewRecord {
  return { kind: "title", text };
}

/** The first record of a new epoch. */
export function epoch(reason: string): NewRecord {
  return { kind: "epoch", reason };
}

/** The texts of the notes among `records`, in order. */
export function textsOf(records: readonly JournalRecord[]): string[] {
  return records.filter((record) => record.kind === "note").map((record) => String(record["text"]));
}

export function kindsOf(records: readonly JournalRecord[]): string[] {
  return records.map((record) => record.kind);
}

/** The one record of this kind. */
export function only(records: readonly JournalRecord[], kind: string): JournalRecord {
  const found = records.filter((record) => record.kind === kind);
  assert.equal(found.length, 1, `expected one record of kind ${kind}, found ${found.length}`);
  return found[0]!;
}

export function seqsOf(records: readonly JournalRecord[]): number[] {
  return records.map((record) => record.seq);
}

/** `count` numbers from `first` on. */
export function countFrom(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => first + i);
}

export interface NoteRow {
  readonly title: string;
  readonly notes: number;
  readonly last: string;
}

/** A summary row: the title, the number of notes over all epochs, and the last one. */
export const noteSummariser: Summariser = {
  add(row: Json, record): Json {
    const before = (row ?? { title: "", notes: 0, last: "" }) as unknown as NoteRow;
    if (record.kind === "title") return { ...before, title: String(record["text"]) };
    if (record.kind === "note") return { ...before, notes: before.notes + 1, last: String(record["text"]) };
    return { ...before };
  },
  carries: (record) => record.kind === "title",
};

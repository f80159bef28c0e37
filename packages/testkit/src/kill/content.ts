import type { JournalRecord } from "holdfast";
import type { NewRecord } from "holdfast/store";
import type { Attempt } from "./pipe.ts";

/**
 * The records of an attempt, as a pure function of it: the parent knows what was tried without being sent it, and can
 * compare every byte that comes back.
 */
export function recordsOf(attempt: Attempt): NewRecord[] {
  return Array.from({ length: attempt.parts }, (_, part) => ({
    kind: attempt.kind === "epoch" && part === 0 ? "epoch" : "lab",
    ...(attempt.kind === "epoch" && part === 0 ? { reason: "compaction" } : {}),
    lab: attempt.id,
    part,
    of: attempt.parts,
    text: textOf(attempt.id, part, attempt.chars),
  }));
}

/**
 * Two-, three- and four-byte characters, quotes, a line end, and part of a trailer: things a careless reader trips
 * over.
 */
const STUFF = 'zażółć gęślą jaźń · 漢字 · 🦀🪝 · "quoted" \\ · line\nend · ,"crc":"00000000"} · ';

export function textOf(id: number, part: number, chars: number): string {
  const head = `${id}/${part} `;
  const turned = STUFF.slice(id % 16) + STUFF.slice(0, id % 16);
  return (head + turned.repeat(Math.ceil(chars / turned.length))).slice(0, chars).toWellFormed();
}

/** A record of the laboratory, as read back. */
export interface LabRecord {
  readonly seq: number;
  readonly crc: string;
  readonly id: number;
  readonly part: number;
  readonly of: number;
  readonly chars: number;
  /** The content matches its id, part and length. */
  readonly intact: boolean;
}

/** Null for a record that the store itself wrote (`segment`, `opened`, `closed`). */
export function labRecordOf(record: JournalRecord): LabRecord | null {
  const { lab, part, of, text } = record;
  if (typeof lab !== "number" || typeof part !== "number" || typeof of !== "number" || typeof text !== "string")
    return null;
  const chars = text.length;
  return { seq: record.seq, crc: record.crc, id: lab, part, of, chars, intact: text === textOf(lab, part, chars) };
}

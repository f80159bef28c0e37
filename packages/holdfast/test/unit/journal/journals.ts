import { crc32 } from "node:zlib";
import { type Scan, scanBytes } from "../../../src/journal/lines/scan.ts";
import type { JournalRecord } from "../../../src/journal/record.ts";

/**
 * Lines made here, not by the encoder: what scan and tail are tested with does not rest on the code that it is to be
 * read back from.
 */

export const AT = "2026-11-15T02:30:00.123Z";

export interface LineMembers {
  readonly unit?: number;
  readonly synced?: unknown;
  readonly kind?: string;
  readonly [member: string]: unknown;
}

/** The line of a record, with its newline. */
export function line(seq: number, { unit, synced, kind = "note", ...members }: LineMembers = {}): Buffer {
  return sealedLine(JSON.stringify({ seq, unit, synced, at: AT, kind, ...members }).slice(0, -1));
}

/** Any text, with the trailer that makes its checksum right. */
export function sealedLine(text: string): Buffer {
  return Buffer.from(`${text},"crc":"${crc32(text).toString(16).padStart(8, "0")}"}\n`);
}

export function withoutNewline(bytes: Buffer): Buffer {
  return bytes.subarray(0, bytes.length - 1);
}

/** The line with one byte inside its payload changed: its checksum is wrong. */
export function rotten(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  const at = copy.indexOf('"kind"') + 1;
  copy[at] = copy[at]! ^ 0x01;
  return copy;
}

/** The line cut in two by a flipped bit that made a newline of a letter: two damaged lines where one record was. */
export function split(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy[copy.indexOf('"kind"') + 1] = 0x0a;
  return copy;
}

export function nuls(count: number): Buffer {
  return Buffer.alloc(count);
}

export function bytesOf(...parts: readonly (Buffer | string)[]): Buffer {
  return Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part)));
}

export function scanOf(...parts: readonly (Buffer | string)[]): Scan {
  return scanBytes(bytesOf(...parts));
}

export function seqsOf(records: readonly JournalRecord[]): number[] {
  return records.map((record) => record.seq);
}

/** Offset, end and reason of what belongs to no whole record. */
export function straysOf(scan: Scan): [offset: number, end: number, why: string][] {
  return scan.strays.map(({ offset, end, why }) => [offset, end, why]);
}

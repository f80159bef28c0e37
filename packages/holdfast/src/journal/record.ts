/** Values that survive JSON unchanged. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [k: string]: Json | undefined };

/**
 * A record as the caller supplies it: a kind and its own members. The envelope names (`seq`, `unit`, `synced`, `ahead`,
 * `at`, `key`, `summary`, `crc`) are reserved for the journal. `must: true` tells readers that do not know the kind not
 * to skip the record.
 */
export interface NewRecord {
  readonly kind: string;
  readonly must?: true;
  readonly [member: string]: unknown;
}

/** A record as stored in a journal: exactly the JSON of its line. Immutable. */
export interface JournalRecord {
  readonly seq: number;
  readonly at: string;
  readonly kind: string;
  readonly crc: string;
  /** How many records, counting from this one, form a unit that counts as a whole or not at all. */
  readonly unit?: number;
  /** Every record up to this seq was known to be durable when this one was encoded. */
  readonly synced?: number;
  /** From this record on, the session sorts in lists at `at` plus this many milliseconds (order.ts). */
  readonly ahead?: number;
  readonly must?: boolean;
  /** The idempotency key of the append that wrote this record (on the first record of its unit). */
  readonly key?: string;
  /** The catalogue row of the session, as of this record. */
  readonly summary?: Json;
  readonly [member: string]: unknown;
}

/**
 * A position in a journal that can be given to a remote client. A seq alone is not enough: after a power cut it can be
 * reused.
 */
export function cursorOf(record: JournalRecord): string {
  return `${record.seq}-${record.crc}`;
}

export const FORMAT_MAJOR = 1;
export const FORMAT_MINOR = 1;
export const FORMAT: string = `${FORMAT_MAJOR}.${FORMAT_MINOR}`;
/**
 * The maximum nesting of a record, including the record itself. Writers stay below it, and readers treat deeper nesting
 * as damage, so any code that walks a record can rely on it.
 */
export const RECORD_LEVELS_MAX = 1024;
/** The maximum size of an encoded record, including its newline. */
export const RECORD_BYTES_MAX: number = 64 * 1024 * 1024;
/** The maximum encoded size of one append. */
export const UNIT_BYTES_MAX = 256 * 1024 * 1024;
/** The maximum size of a segment's first records: everything that a new epoch retains. */
export const SEGMENT_START_BYTES_MAX = 1536 * 1024 * 1024;
/** The maximum size of a segment: anything beyond it is not read. Writers start a new segment long before. */
export const SEGMENT_BYTES_MAX = 2 * 1024 * 1024 * 1024;

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** In the form of `at`, so that times compare as texts. */
export function isTime(value: unknown): value is string {
  return typeof value === "string" && TIME.test(value);
}

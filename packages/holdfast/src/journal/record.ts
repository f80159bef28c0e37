/** What JSON can carry without changing it. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [k: string]: Json | undefined };

/**
 * A record as a caller hands it over: a kind, and members of its own. The names of the envelope (`seq`, `unit`, `synced`, `ahead`,
 * `at`, `key`, `summary`, `crc`) are the journal's. `must: true` says that a reader that does not know the kind may not pass it over.
 */
export interface NewRecord {
  readonly kind: string;
  readonly must?: true;
  readonly [member: string]: unknown;
}

/** A record as it stands in a journal: exactly the JSON of its line. Immutable. */
export interface JournalRecord {
  readonly seq: number;
  readonly at: string;
  readonly kind: string;
  readonly crc: string;
  /** How many records, from this one on, count together or not at all. */
  readonly unit?: number;
  /** Every record up to this seq was known to be durable when this one was encoded. */
  readonly synced?: number;
  /** The place of the session in lists is `at` plus so many milliseconds, from this record on (order.ts). */
  readonly ahead?: number;
  readonly must?: boolean;
  /** The idempotency key of the append that wrote this record (on the first record of its unit). */
  readonly key?: string;
  /** The catalogue row of the session, as of this record. */
  readonly summary?: Json;
  readonly [member: string]: unknown;
}

/** A position in a journal that can be handed to a remote client: a seq alone can be used again after a power cut. */
export function cursorOf(record: JournalRecord): string {
  return `${record.seq}-${record.crc}`;
}

export const FORMAT_MAJOR = 1;
export const FORMAT_MINOR = 1;
/** The deepest nesting of a record, itself counted. Writers stay below it, and readers take what is deeper for damage: whatever walks through a record can rely on it. */
export const RECORD_LEVELS_MAX = 1024;
/** The largest encoded record, its newline included. */
export const RECORD_BYTES_MAX = 64 * 1024 * 1024;
/** The largest that one append may be when it is encoded. */
export const UNIT_BYTES_MAX = 256 * 1024 * 1024;
/** The largest that the first records of a segment may be: all that lives on in a new epoch. */
export const SEGMENT_START_BYTES_MAX = 1536 * 1024 * 1024;
/** No segment is larger: what stands behind this is not read. A writer begins a new one long before. */
export const SEGMENT_BYTES_MAX = 2 * 1024 * 1024 * 1024;

import { isNestedTooDeep } from "../../../journal/lines/json-text.ts";
import type { Json } from "../../../journal/record.ts";

/** Rows are small; one that nests deeper is not ours, or is damaged. */
const SUMMARY_DEPTH_MAX = 64;

/** A session according to the catalogue. */
export interface SessionRow {
  readonly key: number;
  readonly id: string;
  readonly at: string;
  /** The sort key of lists. */
  readonly stamp: string;
  readonly head: number;
  readonly closed: boolean;
  /** Undefined if someone has spoiled it. */
  readonly summary: Json | undefined;
}

/** A row of the table: values of the wrong type are absent. */
export interface TableRow {
  readonly key: number;
  readonly id: string | null;
  readonly at: string | null;
  readonly written: string | null;
  readonly head: number | null;
  readonly closed: boolean;
  readonly summary: Json | undefined;
  readonly isTrashed: boolean;
}

/** What a row says about the newest record. */
export type Newest = Pick<SessionRow, "at" | "stamp" | "head">;

/** A row read through `guarded` columns. */
export function toTableRow(row: Record<string, unknown>): TableRow {
  const { key, id, at, written, head } = row as unknown as TableRow;
  const summary = parseSummary(row["summary"] as string | null);
  return { key, id, at, written, head, closed: row["closed"] === 1, summary, isTrashed: row["trashed"] === 1 };
}

/** The row as a session, if it has everything a session needs. Derived values may be absent. */
export function sessionOf({ key, id, at, written, head, closed, summary }: TableRow): SessionRow | null {
  if (key === 0 || id === null) return null;
  return { key, id, at: written ?? at ?? "", stamp: at ?? "", head: head ?? 0, closed, summary };
}

/** The time, if it differs from the stamp. */
export function differs(at: string, stamp: string): string | null {
  return at === stamp ? null : at;
}

/** The catalogue is derived: a spoiled row is not a summary, and no reason to fail. The lines decide. */
function parseSummary(text: string | null): Json | undefined {
  if (text === null) return undefined;
  try {
    const summary = JSON.parse(text) as Json;
    if (typeof summary !== "object" || Array.isArray(summary)) return undefined;
    return isNestedTooDeep(summary, SUMMARY_DEPTH_MAX) ? undefined : summary;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

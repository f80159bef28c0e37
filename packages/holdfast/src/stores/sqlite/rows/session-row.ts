import { isNestedTooDeep } from "../../../journal/lines/json-text.ts";
import type { Json } from "../../../journal/record.ts";

/** Rows are small; one that nests deeper is not ours, or is damaged. */
const SUMMARY_DEPTH_MAX = 64;

/** A session according to the catalogue. */
export interface SessionRow {
  readonly key: number;
  /** Empty if someone has spoiled it. */
  readonly id: string;
  readonly at: string;
  /** The sort key of lists. */
  readonly stamp: string;
  readonly head: number;
  readonly closed: boolean;
  /** Undefined if someone has spoiled it. */
  readonly summary: Json | undefined;
  readonly isTrashed: boolean;
}

/** What a row says about the newest record. */
export type Newest = Pick<SessionRow, "at" | "stamp" | "head">;

/** A row read through `guarded` columns: values of the wrong type are null. */
export function toSessionRow(row: Record<string, unknown>): SessionRow {
  const { key, id, at, written, head, closed, trashed } = row as Record<string, string | number | null>;
  return {
    ...{ key: key as number, id: String(id ?? ""), at: String(written ?? at ?? ""), stamp: String(at ?? "") },
    ...{ head: Number(head ?? 0), closed: closed === 1, isTrashed: trashed === 1 },
    summary: parseSummary(row["summary"] as string | null),
  };
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

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
  const { key, id, at, written, head, closed, summary, trashed } = row as {
    key: number;
    id: string | null;
    at: string | null;
    written: string | null;
    head: number | null;
    closed: number;
    summary: string | null;
    trashed: number;
  };
  return {
    ...{ key, id, at, written, head, closed: closed === 1 },
    summary: parseSummary(summary),
    isTrashed: trashed === 1,
  };
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
  if (text === null || isDeep(text)) return undefined;
  try {
    const summary = JSON.parse(text) as Json;
    return typeof summary === "object" && !Array.isArray(summary) ? summary : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/**
 * Deeper than anything a summariser makes: code that walks it would overflow the stack. Brackets inside strings count
 * too: with too many of those, a list does without the summary.
 */
function isDeep(text: string): boolean {
  let depth = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i);
    if (char === 0x5b || char === 0x7b) depth++;
    else if (char === 0x5d || char === 0x7d) depth--;
    if (depth > SUMMARY_DEPTH_MAX) return true;
  }
  return false;
}

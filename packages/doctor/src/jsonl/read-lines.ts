import type { ReadItem } from "../contract/agent.ts";
import { type Problem, type ProblemKind, problem } from "../contract/problem.ts";
import type { Place, SessionRecord } from "../contract/record.ts";
import { type Door, Refused } from "../files/door.ts";
import type { SourceFile } from "../files/source-file.ts";
import { type ScanRules, type Stretch, scan } from "../scan/scan.ts";

/** What a record of an agent says, from its parsed line. Only what is not the ordinary case need be given. */
export type Understood = Partial<
  Pick<SessionRecord, "thread" | "id" | "parent" | "sequence" | "at" | "units" | "repeats" | "view">
> & {
  readonly kind: string;
};

/** An agent's lines: what the scanner must know of them, and what they mean. */
export interface LineFormat extends ScanRules {
  /** Null if it does not understand the record; it is then kept as `unknown`. */
  understand(value: unknown): Understood | null;
  /** Whether a record is the header, in formats whose first record must be one. */
  isHeader?(value: unknown): boolean;
}

/** Opens the file of a session, expanded if it is compressed; a problem if it cannot be opened. */
export async function openLines(path: string, door: Door): Promise<SourceFile | Problem> {
  try {
    return await door.open(path);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return problem("unopenable", { file: path, line: null, offset: null }, { detail: error.message });
  }
}

/** The records of a file of lines, with what is wrong with its text. */
export function* readLines(
  file: SourceFile | Problem,
  format: LineFormat,
  thread = "main",
): Generator<ReadItem, void, undefined> {
  if (!("chunks" in file)) {
    yield { type: "problem", problem: file };
    return;
  }
  const start: Place = { file: file.path, line: null, offset: null };
  if (file.size === 0 && !file.isCut) yield { type: "problem", problem: problem("empty-file", start) };
  // One problem for all lines of a file: a copy as text changes each of them.
  const crlf: { place: Place | null; lines: number } = { place: null, lines: 0 };
  let isFirst = true;
  let gluedLine = 0;
  for (const stretch of scan(file.chunks(), format)) {
    const place: Place = { file: file.path, line: stretch.line, offset: stretch.offset };
    const header = isFirst && format.isHeader ? headerProblem(stretch, format) : null;
    if (header) yield { type: "problem", problem: problem(header, place) };
    isFirst = false;
    for (const kind of stretch.damage) {
      // Said of the first of them.
      if (kind === "glued-records" && gluedLine === stretch.line) continue;
      if (kind === "glued-records") gluedLine = stretch.line;
      if (kind !== "crlf") yield { type: "problem", problem: problem(kind, place) };
      else {
        crlf.place ??= place;
        crlf.lines++;
      }
    }
    yield { type: "record", record: recordOf(stretch, place, format, thread) };
  }
  if (crlf.place) yield { type: "problem", problem: problem("crlf", crlf.place, { detail: `${crlf.lines} lines` }) };
  if (file.isCut) yield { type: "problem", problem: problem("truncated-compression", start) };
}

function headerProblem({ state, value }: Stretch, format: LineFormat): ProblemKind | null {
  if (state === "partial" || state === "unreadable") return "header-damaged";
  return format.isHeader!(value) ? null : "header-missing";
}

const NO_UNITS: SessionRecord["units"] = [];

function recordOf(stretch: Stretch, place: Place, format: LineFormat, thread: string): SessionRecord {
  const { bytes, length, state, value, repaired } = stretch;
  const known = value === undefined ? null : format.understand(value);
  // Written out: this runs for every line of a file of gigabytes.
  return {
    place,
    bytes,
    length,
    kind: known?.kind ?? "unknown",
    state,
    value,
    thread: known?.thread ?? thread,
    id: known?.id ?? null,
    parent: known?.parent ?? null,
    sequence: known?.sequence ?? null,
    at: known?.at ?? null,
    units: known?.units ?? NO_UNITS,
    ...(known?.view === undefined ? {} : { view: known.view }),
    ...(repaired === undefined ? {} : { repaired }),
  };
}

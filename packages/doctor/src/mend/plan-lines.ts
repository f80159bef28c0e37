import type { SessionPlace } from "../contract/agent.ts";
import type { Change, Plan } from "../contract/plan.ts";
import { type Fields, fieldsOf } from "../contract/shapes.ts";
import type { Door } from "../files/door.ts";
import type { LineFormat } from "../jsonl/read-lines.ts";
import { type Entry, LineEntries } from "./entries.ts";
import { CUT_OFF } from "./words.ts";

/**
 * Repairs the text of a file of lines, as far as that needs no knowledge of the agent: lines that are broken, glued or
 * there twice, fragments, and chains with a gap.
 */

export interface LineRepair {
  readonly format: LineFormat;
  /** The record with another parent, in formats whose records name theirs; null if this one may name any. */
  relink?(value: Fields, parent: string): Fields | null;
  /** As in the agent's rules. */
  readonly repeatsIds?: boolean;
}

/** What `planLines` repairs, and every plan that takes its edits from `LineEntries`. */
export const LINE_REPAIRS = [
  ...(["torn-record", "glued-records", "nul-run", "raw-line-break", "raw-control-character"] as const),
  ...(["line-separator", "split-record", "unclosed-record", "invalid-utf8", "byte-order-mark", "crlf"] as const),
  ...(["garbage", "doubled-record", "doubled-file"] as const),
];

/** What the plans of agents repair that know the header, the chain and the calls of their format. */
export const CONVERSATION_REPAIRS = [
  ...(["header-missing", "header-damaged", "lost-record", "bad-tool-input", "poisoned-result"] as const),
  ...(["call-without-result", "result-without-call", "result-before-call"] as const),
];

/** Where the agents keep what is said. */
const TEXT_FIELDS: ReadonlySet<string> = new Set(["text", "content", "output", "message"]);

export async function planLines(session: SessionPlace, door: Door, repair: LineRepair): Promise<Plan | null> {
  const changes: Change[] = [];
  const lost: string[] = [];
  for (const path of [session.path, ...session.parts]) {
    const file = await door.open(path);
    // What a compressed file holds cannot be replaced in part.
    if (file.isExpanded || file.size === 0) continue;
    const lines = new LineEntries(file, repair.format, "main");
    lines.removeDoubles(repair.repeatsIds);
    for (const entry of lines.living) if (entry.state === "partial") completePartial(entry, lines, repair.format, lost);
    if (repair.relink) closeGaps(lines, repair);
    // Completed, linked again, or without what stood between them, two may now be the same.
    lines.removeDoubles(repair.repeatsIds);
    const edits = lines.edits();
    if (edits.length > 0) changes.push({ type: "edit", path, size: file.size, edits });
  }
  return changes.length > 0 ? { changes, lost } : null;
}

/** Half a record stays if what was said in it can be read, with a mark where it ends. */
export function completePartial(entry: Entry, lines: LineEntries, format: LineFormat, lost: string[]): void {
  // A hole inside of a string shows where it is.
  if (!entry.damage.includes("torn-record") && format.isRecord(lines.valueOf(entry)) && entry.kind !== "unknown")
    return;
  const marked = withMark(lines.valueOf(entry));
  const units = marked === null ? [] : (format.understand(marked)?.units ?? []);
  const isSpeech = units.length > 0 && units.every(({ type }) => type === "user" || type === "assistant");
  lost.push(`The end of the record at line ${entry.place?.line} is lost.`);
  if (marked !== null && format.isRecord(marked) && isSpeech && isTold(marked)) {
    entry.replacement = { value: marked, grade: "unknown", why: "keeps the readable beginning of a record" };
    return;
  }
  entry.replacement = null;
  entry.why = "removes a fragment without readable text";
}

const isTold = (value: unknown): boolean => JSON.stringify(value).includes(CUT_OFF);

/** The value with a mark behind its last text; null if it does not end in one. */
function withMark(value: unknown, field = ""): unknown {
  if (typeof value === "string") return TEXT_FIELDS.has(field) && value !== "" ? `${value}\n${CUT_OFF}` : null;
  if (Array.isArray(value)) {
    const last = value.length > 0 ? withMark(value.at(-1), field) : null;
    return last === null ? null : [...value.slice(0, -1), last];
  }
  const entries = Object.entries(fieldsOf(value));
  const end = entries.at(-1);
  const last = end ? withMark(end[1], end[0]) : null;
  return last === null ? null : Object.fromEntries([...entries.slice(0, -1), [end![0], last]]);
}

function closeGaps(lines: LineEntries, { relink }: LineRepair): void {
  const ids = new Set(lines.living.map(({ id }) => id));
  let previous: string | null = null;
  for (const entry of lines.living) {
    if (entry.parent !== null && !ids.has(entry.parent) && previous !== null) {
      const value = relink!(fieldsOf(lines.valueOf(entry)), previous);
      if (value !== null) entry.replacement = { value, grade: "rebuilt", why: "links a record over a gap" };
    }
    previous = entry.id ?? previous;
  }
}

import { basename } from "node:path";
import type { SessionPlace } from "../../contract/agent.ts";
import type { Grade, Plan } from "../../contract/plan.ts";
import { type Fields, fieldsOf, textIn } from "../../contract/shapes.ts";
import type { Door } from "../../files/door.ts";
import { type Entry, LineEntries, madeUuid } from "../../mend/entries.ts";
import { completeMessage, type MessageEntry, mendMessages } from "../../mend/messages.ts";
import { format, SHAPE } from "./format.ts";

/** What makes zot load the session whole again. */
export async function plan(session: SessionPlace, door: Door): Promise<Plan | null> {
  const file = await door.open(session.path);
  if (file.isExpanded || file.size === 0) return null;
  const lost: string[] = [];
  const lines = new LineEntries(file, format, "main");
  lines.removeDoubles();
  for (const entry of lines.living) if (entry.state === "partial") complete(entry, lines, lost);
  mendConversation(lines);
  lines.removeDoubles();
  if (lines.living[0]?.kind !== "meta") {
    const meta = { type: "meta", meta: metaOf(session, lines) };
    lines.entries.unshift(lines.made(meta, "main", "rebuilt", "rebuilds the first record"));
  }
  const edits = lines.edits();
  return edits.length > 0 ? { changes: [{ type: "edit", path: session.path, size: file.size, edits }], lost } : null;
}

function complete(entry: Entry, lines: LineEntries, lost: string[]): void {
  const value = fieldsOf(lines.valueOf(entry));
  const isTorn = entry.damage.includes("torn-record") || Object.keys(value).at(-1) === "message";
  if (format.isRecord(value) && !isTorn) return;
  if (format.isRecord(value) && entry.damage.every((kind) => kind === "invalid-utf8")) return;
  const kept = completeMessage(value["message"], SHAPE, () => null);
  lost.push(`The end of the record at line ${entry.place?.line} is lost.`);
  entry.replacement =
    kept === null
      ? null
      : { value: { ...value, message: kept.value }, grade: "unknown", why: "keeps the readable beginning of a record" };
  if (kept === null) entry.why = "removes a fragment without readable text";
}

interface LineMessage extends MessageEntry {
  readonly line: Entry | null;
}

function mendConversation(lines: LineEntries): void {
  const all = lines.living.filter(({ kind }) => kind === "user" || kind === "assistant" || kind === "tool");
  const before = all.map((line): LineMessage => ({ line, value: fieldsOf(lines.valueOf(line))["message"] }));
  const messages = [...before];
  const made = (value: Fields, grade: Grade, why: string): LineMessage => ({ line: null, value, grade, why });
  mendMessages(messages, SHAPE, { leavesOpenCalls: true }, made);
  const added = new Map<Entry, Entry[]>();
  let last: Entry | null = null;
  for (const { line, value, isRemoved, grade, why } of messages) {
    if (line === null) {
      const entry = lines.made({ type: "message", message: value }, "main", grade!, why!);
      if (last) added.set(last, [...(added.get(last) ?? []), entry]);
      continue;
    }
    last = line;
    if (isRemoved) {
      line.replacement = null;
      line.why = why!;
    } else if (why !== undefined)
      line.replacement = { value: { ...fieldsOf(lines.valueOf(line)), message: value }, grade: grade!, why };
  }
  lines.insert("behind", added);
}

/** What is left of a damaged one, a later one, and the name of the file: `<day>-<time>-<8 digits of the id>.jsonl`. */
function metaOf({ path, id }: SessionPlace, lines: LineEntries): Fields {
  const later = lines.living.find(({ kind }) => kind === "meta");
  if (later) return fieldsOf(fieldsOf(lines.valueOf(later))["meta"]);
  const [, year, month, day, hour, minute, second] =
    /^(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)-/.exec(basename(path)) ?? [];
  const first = lines.living.map((line) => fieldsOf(fieldsOf(lines.valueOf(line))["message"])).find(({ time }) => time);
  const started = year
    ? `${year}-${month}-${day}T${hour}:${minute}:${second}Z`
    : (textIn(first?.["time"]) ?? "1970-01-01T00:00:00Z");
  const own = madeUuid("zot", id);
  const known = /-([0-9a-f]{8})$/.exec(basename(path, ".jsonl"))?.[1];
  const whole = /^[0-9a-f]{8}-/.test(id) ? id : `${known ?? own.slice(0, 8)}${own.slice(8)}`;
  return { id: whole, cwd: "", model: "", provider: "", started, version: "" };
}

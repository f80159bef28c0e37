import type { SessionPlace } from "../../contract/agent.ts";
import type { Change, Edit, Plan } from "../../contract/plan.ts";
import { type Fields, fieldsOf, listIn, textIn } from "../../contract/shapes.ts";
import type { Door } from "../../files/door.ts";
import { packZstd } from "../../files/pack.ts";
import type { SourceFile } from "../../files/source-file.ts";
import { cleanResult } from "../../mend/clean-result.ts";
import { type Entry, LineEntries } from "../../mend/entries.ts";
import { LOST_INPUT, LOST_RESULT } from "../../mend/words.ts";
import { format } from "./format.ts";
import { bringBackItems } from "./index-items.ts";
import { projectionReset, threadIn } from "./indexes.ts";
import { threadChanges } from "./rows.ts";
import { itemOf, Twins } from "./twins.ts";

/** What makes Codex load the rollout whole again. */
export async function plan(session: SessionPlace, door: Door): Promise<Plan | null> {
  const file = await door.open(session.path);
  const lines = new LineEntries(file, format, "main");
  const lost: string[] = [];
  const thread = threadIn(session.path) ?? session.id;
  let isRestored = false;
  new Mending(lines, thread, lost, () => {
    isRestored = bringBackItems(session.path, thread, lines, door);
  }).run();
  const edits = lines.edits();
  const { ordinal } = fieldsOf(lines.living.length > 0 ? lines.valueOf(lines.living.at(-1)!) : null);
  // What the index had alone is in the rollout now.
  const reach = isRestored
    ? { next: Number.POSITIVE_INFINITY }
    : lost.length === 0 && typeof ordinal === "number"
      ? { next: ordinal + 1 }
      : { size: file.size };
  const changes: Change[] = [];
  if (file.isExpanded && (edits.length > 0 || (file.isCut && file.size > 0)))
    changes.push(await packed(file, edits, door));
  else if (edits.length > 0) changes.push({ type: "edit", path: session.path, size: file.size, edits });
  // Every place in the rollout is another one now; if none is, it was the index that was wrong.
  changes.push(...projectionReset(session.path, thread, reach, door));
  changes.push(...threadChanges(session.path, thread, lines, door));
  return changes.length > 0 ? { changes, lost } : null;
}

/** A rollout that is compressed, mended and compressed again. */
async function packed(file: SourceFile, edits: readonly Edit[], door: Door): Promise<Change> {
  const from = await packZstd(file, edits, door);
  const [grades, words] = [edits.map(({ grade }) => grade), [...new Set(edits.map(({ why }) => why))]];
  const grade = GRADES.find((each) => grades.includes(each)) ?? "intact";
  const why = ["compresses the readable records again", ...words].join("; ");
  return { type: "replace", path: file.path, size: door.facts(file.path)!.size, from, grade, why };
}

/** The least sure first. */
const GRADES = ["unknown", "rebuilt", "brought back"] as const;

class Mending {
  readonly #lines: LineEntries;
  readonly #thread: string;
  readonly #lost: string[];

  readonly #restore: () => void;

  constructor(lines: LineEntries, thread: string, lost: string[], restore: () => void) {
    this.#restore = restore;
    this.#lines = lines;
    this.#thread = thread;
    this.#lost = lost;
  }

  run(): void {
    let isDamaged = this.#lines.entries.some(({ state }) => state !== "intact") || this.#hasGap();
    this.#lines.removeDoubles();
    this.#removeFragments();
    // Of an empty file, the index may have everything.
    if (this.#lines.living.length === 0) this.#restore();
    if (this.#lines.living.length === 0) return;
    this.#rebuildHeader();
    const count = this.#lines.living.length;
    this.#restore();
    isDamaged ||= this.#lines.living.length > count || this.#lines.living.every(({ place }) => place === null);
    const twins = new Twins(this.#lines);
    if (isDamaged) this.#bringBack(twins);
    this.#pairCalls(twins);
    this.#cleanItems(twins);
    this.#number();
  }

  #fields(entry: Entry): Fields {
    return fieldsOf(this.#lines.valueOf(entry));
  }

  #ordinalOf(entry: Entry): number | null {
    const { ordinal } = this.#fields(entry);
    return typeof ordinal === "number" ? ordinal : null;
  }

  #hasGap(): boolean {
    let next: number | null = null;
    for (const entry of this.#lines.living) {
      const ordinal = this.#ordinalOf(entry);
      if (next !== null && ordinal !== null && ordinal !== next) return true;
      if (ordinal !== null) next = ordinal + 1;
    }
    return false;
  }

  /** Half a record is brought back from its event, or is lost. One that lost a byte of its text stays. */
  #removeFragments(): void {
    for (const entry of this.#lines.living) {
      if (entry.state !== "partial") continue;
      const { type, payload } = this.#fields(entry);
      const isWhole = type === "response_item" ? isWholeItem(fieldsOf(payload)) : false;
      const why = entry.replacement?.why ?? "";
      if (type === "session_meta" || isWhole || (why.endsWith("invalid-utf8") && typeof payload === "object")) continue;
      entry.replacement = null;
      entry.why = "removes half of a record";
      if (!this.#isHeader(entry))
        this.#lost.push(`The record at line ${entry.place?.line} is lost, unless an event repeats it.`);
    }
  }

  /** Half of the first record: the header is made again, so nothing of the conversation is lost with it. */
  #isHeader(entry: Entry): boolean {
    const [first, second] = this.#lines.entries;
    return entry === first && second !== undefined && this.#fields(second)["ordinal"] === 1;
  }

  #rebuildHeader(): void {
    const [first] = this.#lines.living;
    const value = this.#fields(first!);
    const old = value["type"] === "session_meta" ? fieldsOf(value["payload"]) : {};
    const isComplete = ["id", "timestamp", "cwd", "originator", "cli_version"].every(
      (name) => typeof old[name] === "string",
    );
    if (value["type"] === "session_meta" && isComplete && first!.state !== "partial") return;
    const rest = value["type"] === "session_meta" ? this.#lines.living.slice(1) : this.#lines.living;
    const next = rest[0] ? this.#fields(rest[0]) : {};
    let cwd: string | null = null;
    let provider: string | null = null;
    for (const entry of rest) {
      const { type, payload } = this.#fields(entry);
      if (type === "turn_context") cwd ??= textIn(fieldsOf(payload)["cwd"]);
      provider ??= textIn(fieldsOf(fieldsOf(payload)["thread_settings"])["model_provider_id"]);
      if (cwd !== null && provider !== null) break;
    }
    const isNumbered = typeof next["ordinal"] === "number";
    const timestamp = next["timestamp"] ?? new Date(0).toISOString();
    const payload = {
      ...{ session_id: this.#thread, id: this.#thread, timestamp, cwd: cwd ?? "/", originator: "holdfast_doctor" },
      ...{ cli_version: "0.0.0", source: "exec", model_provider: provider },
      ...(isNumbered ? { history_mode: "paginated" } : {}),
      ...old,
    };
    const ordinal = isNumbered ? { ordinal: Math.max(0, Number(next["ordinal"]) - 1) } : {};
    const made = { timestamp, ...ordinal, type: "session_meta", payload };
    if (value["type"] === "session_meta")
      first!.replacement = { value: made, grade: "rebuilt", why: "completes the header" };
    else this.#lines.insert("before", new Map([[first!, [this.#made(made, "rebuilt", "makes the header")]]]));
  }

  #made(value: unknown, grade: "rebuilt" | "brought back", why: string): Entry {
    return this.#lines.made(value, "main", grade, why);
  }

  /** Items of which only the event is left. */
  #bringBack(twins: Twins): void {
    const before = new Map<Entry, Entry[]>();
    const behind = new Map<Entry, Entry[]>();
    for (const { event, item, isBefore } of twins.missing()) {
      const { timestamp } = this.#fields(event);
      const made = this.#made(
        { timestamp, type: "response_item", payload: item },
        "brought back",
        "brings back an item",
      );
      const side = isBefore ? before : behind;
      side.set(event, [...(side.get(event) ?? []), made]);
    }
    this.#lines.insert("before", before);
    this.#lines.insert("behind", behind);
    // An event that stands there twice brings its item back twice.
    this.#lines.removeDoubles();
  }

  /** Every call that the model went on after has its result behind it; every result has a call. */
  #pairCalls(twins: Twins): void {
    const entries = this.#lines.living;
    const results = new Set(entries.flatMap((entry) => entry.results));
    const callers = new Map(entries.flatMap((entry, index) => entry.calls.map(({ id }) => [id, index] as const)));
    const before = new Map<Entry, Entry[]>();
    const behind = new Map<Entry, Entry[]>();
    for (const [index, entry] of entries.entries()) {
      const { timestamp } = this.#fields(entry);
      for (const { id } of entry.calls) {
        if (results.has(id) || !isAnswered(entries, index)) continue;
        const isCustom = itemOf(this.#fields(entry))["type"] === "custom_tool_call";
        const type = isCustom ? "custom_tool_call_output" : "function_call_output";
        const payload = { type, call_id: id, output: LOST_RESULT };
        const made = this.#made({ timestamp, type: "response_item", payload }, "rebuilt", "adds the result of a call");
        behind.set(entry, [...(behind.get(entry) ?? []), made]);
        this.#lost.push(`The result of the call ${id} is lost.`);
      }
      for (const call of entry.results) {
        const caller = callers.get(call);
        if (caller === undefined) {
          const isCustom = itemOf(this.#fields(entry))["type"] === "custom_tool_call_output";
          const input = JSON.stringify(twins.input(call) ?? LOST_INPUT);
          const payload = isCustom
            ? { type: "custom_tool_call", call_id: call, name: "lost_call", input }
            : { type: "function_call", call_id: call, name: "lost_call", arguments: input };
          const made = this.#made(
            { timestamp, type: "response_item", payload },
            "rebuilt",
            "adds the call of a result",
          );
          before.set(entry, [...(before.get(entry) ?? []), made]);
          this.#lost.push(`The call ${call} is lost; its result is there.`);
        } else if (caller > index) {
          const moved = this.#lines.made(this.#fields(entry), "main", "intact", "puts a result behind its call");
          entry.replacement = null;
          entry.why = "moves a result behind its call";
          behind.set(entries[caller]!, [...(behind.get(entries[caller]!) ?? []), moved]);
        }
      }
    }
    this.#lines.insert("before", before);
    this.#lines.insert("behind", behind);
  }

  /** Inputs that are not there, and results that the API refuses. */
  #cleanItems(twins: Twins): void {
    for (const entry of this.#lines.living) {
      if (entry.calls.length === 0 && entry.results.length === 0) continue;
      const value = this.#fields(entry);
      const item = itemOf(value);
      const clean = entry.results.length > 0 ? cleanResult(item["output"]) : null;
      const isBroken = item["type"] === "function_call" && !isInput(item["arguments"]);
      if (clean === null && !isBroken) continue;
      const twin = isBroken ? twins.input(String(item["call_id"])) : null;
      const change = clean ? { output: clean.content } : { arguments: JSON.stringify(twin ?? LOST_INPUT) };
      const why = clean ? "takes binary output out of a result" : "restores the input of a call";
      const grade = twin ? "brought back" : "rebuilt";
      entry.replacement = { value: { ...value, payload: { ...item, ...change } }, grade, why };
    }
  }

  /** Where records count, each has the number behind that of the one before. */
  #number(): void {
    const entries = this.#lines.living;
    const first = this.#ordinalOf(entries[0]!);
    if (first === null) return;
    for (const [index, entry] of entries.entries()) {
      const value = this.#fields(entry);
      if (value["ordinal"] === first + index) continue;
      const { timestamp, ordinal: _, ...rest } = value;
      const grade = entry.replacement?.grade ?? "intact";
      const why = entry.replacement?.why ?? "numbers the records again";
      entry.replacement = { value: { timestamp, ordinal: first + index, ...rest }, grade, why };
    }
  }
}

function isWholeItem(item: Fields): boolean {
  switch (item["type"]) {
    case "message":
      return (
        listIn(item["content"]).length > 0 &&
        typeof item["role"] === "string" &&
        "internal_chat_message_metadata_passthrough" in item
      );
    default:
      return false;
  }
}

function isInput(text: unknown): boolean {
  if (text === "") return true;
  try {
    const input: unknown = typeof text === "string" ? JSON.parse(text) : null;
    return typeof input === "object" && input !== null && !Array.isArray(input);
  } catch {
    return false;
  }
}

/** Whether the model went on after the call of this entry; Codex closes those that were interrupted itself. */
function isAnswered(entries: readonly Entry[], index: number): boolean {
  const next = entries
    .slice(index + 1)
    .find(({ kind, results, isSpeech }) => isSpeech && results.length === 0 && kind === "response_item/message");
  return next !== undefined && !next.isPrompt;
}

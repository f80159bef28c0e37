import { basename, dirname } from "node:path";
import type { SessionPlace } from "../../contract/agent.ts";
import type { Plan } from "../../contract/plan.ts";
import { type Fields, fieldsOf, listIn, textIn } from "../../contract/shapes.ts";
import { type Door, Refused } from "../../files/door.ts";
import { cleanResult } from "../../mend/clean-result.ts";
import { type Entry, LineEntries, madeUuid } from "../../mend/entries.ts";
import { CUT_OFF, LOST_INPUT, LOST_RECORD, LOST_RESULT } from "../../mend/words.ts";
import { folderFor, format, VERSION_MAX } from "./format.ts";

/** What makes pi load the session whole again. */
export async function plan(session: SessionPlace, door: Door): Promise<Plan | null> {
  const file = await door.open(session.path);
  if (file.isExpanded) return null;
  const lines = new LineEntries(file, format, "main");
  const header = lines.entries[0] && fieldsOf(lines.valueOf(lines.entries[0]));
  if (header?.["type"] === "session" && Number(header["version"] ?? 1) > VERSION_MAX) return null;
  const lost: string[] = [];
  new Mending(lines, session, door, lost).run();
  const edits = lines.edits();
  return edits.length > 0 ? { changes: [{ type: "edit", path: session.path, size: file.size, edits }], lost } : null;
}

class Mending {
  readonly #lines: LineEntries;
  readonly #session: SessionPlace;
  readonly #door: Door;
  readonly #lost: string[];

  constructor(lines: LineEntries, session: SessionPlace, door: Door, lost: string[]) {
    this.#lines = lines;
    this.#session = session;
    this.#door = door;
    this.#lost = lost;
  }

  run(): void {
    this.#lines.removeDoubles();
    this.#completePartials();
    if (this.#lines.living.length === 0) return;
    this.#rebuildHeader();
    this.#renameDoubles();
    this.#fillGaps();
    this.#pairCalls();
    this.#cleanMessages();
  }

  #fields(entry: Entry): Fields {
    return fieldsOf(this.#lines.valueOf(entry));
  }

  /** Of an entry that is cut off, its beginning is kept if it is speech. */
  #completePartials(): void {
    for (const entry of this.#lines.living) {
      if (entry.state !== "partial" || this.#fields(entry)["type"] === "session") continue;
      const value = this.#fields(entry);
      const message = speechOf(fieldsOf(value["message"]), this.#envelope());
      if (entry.id === null || value["parentId"] === undefined || value["type"] !== "message" || message === null) {
        entry.replacement = null;
        entry.why = "removes a fragment without readable text";
        continue;
      }
      const why = "keeps the readable beginning of a record";
      entry.replacement = { value: { ...value, message }, grade: "unknown", why };
      this.#refresh(entry);
      this.#lost.push(`The end of the record at line ${entry.place?.line} is lost.`);
    }
  }

  /** The entry with the calls and results of what now stands in its place. */
  #refresh(entry: Entry): void {
    const { value, grade, why } = entry.replacement!;
    const { calls, results } = this.#lines.made(value, entry.thread, grade, why);
    Object.assign(entry, { calls, results });
  }

  /** The fields of an answer that all answers of a session share. */
  #envelope(): Fields {
    for (const entry of this.#lines.living) {
      if (entry.state === "partial") continue;
      const { role, api, provider, model } = fieldsOf(this.#fields(entry)["message"]);
      if (role === "assistant") return { api, provider, model };
    }
    return { api: "unknown", provider: "unknown", model: "unknown" };
  }

  #rebuildHeader(): void {
    const [first] = this.#lines.living;
    const value = this.#fields(first!);
    if (format.isHeader!(value) && typeof value["cwd"] === "string") return;
    const isHeader = value["type"] === "session";
    const next = isHeader ? this.#lines.living[1] : first;
    const hasIds = !next || next.id !== null;
    const made = {
      ...{ type: "session", ...(hasIds ? { version: VERSION_MAX } : {}), id: this.#session.id },
      ...{ timestamp: next ? this.#fields(next)["timestamp"] : new Date(0).toISOString(), cwd: this.#folder() },
    };
    if (isHeader) first!.replacement = { value: { ...made, ...value }, grade: "rebuilt", why: "completes the header" };
    else
      this.#lines.insert(
        "before",
        new Map([[first!, [this.#lines.made(made, "main", "rebuilt", "makes the header")]]]),
      );
  }

  /** Another session of the same project knows its folder; otherwise its name says it nearly. */
  #folder(): string {
    const folder = dirname(this.#session.path);
    for (const { path, kind } of this.#door.list(folder)) {
      if (kind !== "file" || path === this.#session.path) continue;
      try {
        using file = this.#door.openRaw(path);
        const [line = ""] = Buffer.from(file.read(0, 4_096)).toString("utf8").split("\n");
        const cwd = /"cwd":("(?:[^"\\]|\\.)*")/.exec(line)?.[1];
        const known = cwd === undefined ? null : (JSON.parse(cwd) as string);
        if (known !== null && folderFor(known) === basename(folder)) return known;
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
      }
    }
    return `/${basename(folder)
      .replace(/^--|--$/g, "")
      .replaceAll("-", "/")}`;
  }

  /** pi takes the second for the first: it gets an id of its own, and what follows it goes with it. */
  #renameDoubles(): void {
    const seen = new Set<string>();
    const renamed = new Map<string, string>();
    for (const entry of this.#lines.living) {
      const parent = entry.parent === null ? undefined : renamed.get(entry.parent);
      const isDouble = entry.id !== null && seen.has(entry.id);
      if (parent !== undefined || isDouble) {
        const id = isDouble ? shortId("double", entry.id!, String(entry.place?.line)) : entry.id;
        if (isDouble) renamed.set(entry.id!, id!);
        // The second one follows the first, if it says that it follows itself.
        const value = { ...this.#fields(entry), id, parentId: parent ?? entry.parent };
        entry.replacement = { value, grade: "intact", why: "gives a record an id of its own" };
        entry.id = id;
        entry.parent = parent ?? entry.parent;
      }
      if (entry.id !== null) seen.add(entry.id);
    }
  }

  /** Puts an entry in the place of each that is named as a parent, and is not there. */
  #fillGaps(): void {
    const entries = this.#lines.living;
    const ids = new Set(entries.map(({ id }) => id));
    const calls = new Set(entries.flatMap((entry) => entry.calls.map(({ id }) => id)));
    const results = new Set(entries.flatMap((entry) => entry.results));
    const made = new Map<Entry, Entry[]>();
    let previous: Entry | null = null;
    for (const [index, entry] of entries.entries()) {
      if (entry.parent !== null && !ids.has(entry.parent)) {
        const orphans: string[] = [];
        for (const next of entries.slice(index)) {
          if (next.results.length === 0) break;
          orphans.push(...next.results.filter((call) => !calls.has(call)));
        }
        const open = previous?.calls.find(({ id }) => !results.has(id));
        const parentId = previous?.id ?? null;
        const base = { id: entry.parent, parentId, timestamp: this.#fields(entry)["timestamp"] };
        let value: Fields = {
          type: "custom_message",
          customType: "holdfast-doctor",
          content: LOST_RECORD,
          display: true,
          ...base,
        };
        if (orphans.length > 0)
          value = { type: "message", ...base, message: this.#callMessage(orphans, base.timestamp) };
        else if (open) value = { type: "message", ...base, message: resultMessage(open, base.timestamp) };
        for (const id of orphans) calls.add(id);
        if (orphans.length === 0 && open) results.add(open.id);
        made.set(entry, [this.#lines.made(value, "main", "rebuilt", "adds a note where a record was lost")]);
        ids.add(entry.parent);
        this.#lost.push(`A record before line ${entry.place?.line} is lost.`);
      }
      if (entry.kind !== "session") previous = entry;
    }
    this.#lines.insert("before", made);
  }

  #callMessage(orphans: readonly string[], timestamp: unknown): Fields {
    const content = orphans.map((id) => ({ type: "toolCall", id, name: "lost_call", arguments: LOST_INPUT }));
    return {
      role: "assistant",
      content,
      ...this.#envelope(),
      usage: NO_USAGE,
      stopReason: "toolUse",
      timestamp: timeOf(timestamp),
    };
  }

  /** Every call that the model went on after has a result, behind it. */
  #pairCalls(): void {
    const entries = this.#lines.living;
    const results = new Set(entries.flatMap((entry) => entry.results));
    const callers = new Map(entries.flatMap((entry, index) => entry.calls.map(({ id }) => [id, index] as const)));
    const behind = new Map<Entry, Entry[]>();
    const before = new Map<Entry, Entry[]>();
    for (const [index, entry] of entries.entries()) {
      for (const call of entry.calls) {
        if (results.has(call.id) || !isAnswered(entries, index)) continue;
        const added = behind.get(entry) ?? [];
        const id = shortId("result", entry.id ?? String(index), call.id);
        const { timestamp } = this.#fields(entry);
        const parentId = added.at(-1)?.id ?? entry.id;
        const ids = entry.id === null ? {} : { id, parentId };
        const value = { type: "message", ...ids, timestamp, message: resultMessage(call, timestamp) };
        behind.set(entry, [...added, this.#lines.made(value, "main", "rebuilt", "adds the result of a call")]);
        this.#lost.push(`The result of the call ${call.id} is lost.`);
        this.#hang(entries, entry.id, parentId, id);
      }
      for (const call of entry.results) {
        const caller = callers.get(call);
        if (caller === undefined) {
          const { timestamp } = this.#fields(entry);
          const id = shortId("call", entry.id ?? String(index), call);
          const ids = entry.id === null ? {} : { id, parentId: entry.parent };
          const value = { type: "message", ...ids, timestamp, message: this.#callMessage([call], timestamp) };
          before.set(entry, [this.#lines.made(value, "main", "rebuilt", "adds the call of a result")]);
          if (entry.id !== null) this.#link(entry, id);
          this.#lost.push(`The call ${call} is lost; its result is there.`);
        } else if (caller > index) {
          const moved = this.#lines.made(this.#fields(entry), "main", "intact", "puts a result behind its call");
          behind.set(entries[caller]!, [...(behind.get(entries[caller]!) ?? []), moved]);
          entry.replacement = null;
          entry.why = "moves a result behind its call";
        }
      }
    }
    this.#lines.insert("before", before);
    this.#lines.insert("behind", behind);
  }

  /** What followed the call follows its result now. */
  #hang(entries: readonly Entry[], caller: string | null, last: string | null, id: string): void {
    if (caller === null) return;
    for (const child of entries) if (child.parent === caller || child.parent === last) this.#link(child, id);
  }

  #link(entry: Entry, parentId: string): void {
    const grade = entry.replacement?.grade ?? "intact";
    entry.replacement = { value: { ...this.#fields(entry), parentId }, grade, why: "links a record to the one before" };
    entry.parent = parentId;
  }

  /** Inputs that are not there, and results that the API refuses. */
  #cleanMessages(): void {
    for (const entry of this.#lines.living) {
      if (entry.calls.length === 0 && entry.results.length === 0) continue;
      const value = this.#fields(entry);
      const message = fieldsOf(value["message"]);
      const clean = entry.results.length > 0 ? cleanResult(message["content"]) : null;
      let why = clean ? "takes binary output out of a result" : null;
      const content = clean
        ? clean.content
        : listIn(message["content"]).map((block) => {
            const part = fieldsOf(block);
            const input = part["arguments"];
            const isInput = typeof input === "object" && input !== null && !Array.isArray(input);
            if (part["type"] !== "toolCall" || isInput) return block;
            why = "adds an input to a call that has none";
            return { ...part, arguments: LOST_INPUT };
          });
      if (why !== null)
        entry.replacement = { value: { ...value, message: { ...message, content } }, grade: "rebuilt", why };
    }
  }
}

const NO_USAGE = {
  ...{ input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0 },
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};

const shortId = (...from: readonly string[]): string => madeUuid(...from).slice(0, 8);
const timeOf = (timestamp: unknown): number => Date.parse(String(timestamp)) || 0;

function resultMessage({ id, name }: { readonly id: string; readonly name: string }, timestamp: unknown): Fields {
  const content = [{ type: "text", text: LOST_RESULT }];
  return { role: "toolResult", toolCallId: id, toolName: name, content, isError: true, timestamp: timeOf(timestamp) };
}

/** Whether the model went on after the calls of this entry; pi closes those that were interrupted itself. */
function isAnswered(entries: readonly Entry[], index: number): boolean {
  const next = entries.slice(index + 1).find(({ kind, results }) => kind === "message" && results.length === 0);
  return next !== undefined && !next.isPrompt;
}

/** What is said in the beginning of a message, with a mark where it ends; null if nothing in it can stand alone. */
function speechOf(message: Fields, envelope: Fields): Fields | null {
  const { role, content } = message;
  // A byte of it was lost, and nothing else.
  if (typeof message["timestamp"] === "number" && content !== undefined) return message;
  const timestamp = 0;
  const blocks = listIn(content).filter((block) => textIn(fieldsOf(block)["text"]) !== null);
  if (blocks.length === 0) return null;
  const last = fieldsOf(blocks.at(-1));
  const kept = [...blocks.slice(0, -1), { type: "text", text: `${String(last["text"])}\n${CUT_OFF}` }];
  if (role === "user") return { role, content: kept, timestamp };
  if (role === "assistant") return { role, content: kept, ...envelope, usage: NO_USAGE, stopReason: "stop", timestamp };
  const { toolCallId, toolName } = message;
  if (role !== "toolResult" || typeof toolCallId !== "string") return null;
  return { role, toolCallId, toolName: toolName ?? "unknown", content: kept, isError: false, timestamp };
}

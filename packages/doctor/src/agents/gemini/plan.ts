import { createHash } from "node:crypto";
import { basename, dirname, join } from "node:path";
import type { SessionPlace } from "../../contract/agent.ts";
import type { Change, Grade, Plan } from "../../contract/plan.ts";
import { type Fields, fieldsOf, listIn, textIn } from "../../contract/shapes.ts";
import { type Door, Refused } from "../../files/door.ts";
import { cleanResult } from "../../mend/clean-result.ts";
import { type Entry, LineEntries, madeUuid } from "../../mend/entries.ts";
import { completePartial } from "../../mend/plan-lines.ts";
import { LOST_ANSWER, LOST_INPUT, LOST_PROMPT } from "../../mend/words.ts";
import { format } from "./format.ts";
import { isContext, LineOrder } from "./order.ts";
import { isWholeObject, mendWholeObject } from "./whole-object.ts";

/** What makes Gemini CLI load the session whole again, and its sub-agents. */
export async function plan(session: SessionPlace, door: Door): Promise<Plan | null> {
  const changes: Change[] = [];
  const lost: string[] = [];
  for (const path of [session.path, ...session.parts]) {
    const file = await door.open(path);
    if (file.isExpanded || file.size === 0) continue;
    const header = (): Fields => headerFor(path, path === session.path ? session.id : null, door);
    if (isWholeObject(file)) {
      const edit = mendWholeObject(file, header, lost);
      if (edit) changes.push({ type: "edit", path, size: file.size, edits: [edit] });
      continue;
    }
    const lines = new LineEntries(file, format, "main");
    new Mending(lines, header, lost).run();
    const edits = lines.edits();
    if (edits.length > 0) changes.push({ type: "edit", path, size: file.size, edits });
  }
  return changes.length > 0 ? { changes, lost } : null;
}

const HEAD_BYTES = 2 ** 16;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The header of a file without one: from its name, and from other sessions of the project. */
function headerFor(path: string, session: string | null, door: Door): Fields {
  const name = basename(path).replace(/\.jsonl?$/, "");
  const [, minute, short] = /^session-(\d{4}-\d\d-\d\dT\d\d-\d\d)-(.{8})/.exec(name) ?? [];
  const chats = short === undefined ? dirname(dirname(path)) : dirname(path);
  const heads = [...door.list(chats)].flatMap((entry) =>
    entry.kind === "file" && entry.path !== path ? [headOf(entry.path, door)] : [],
  );
  const ids = [
    ...heads.map(({ sessionId }) => sessionId),
    // Its sub-agents lie in a folder that is named after it.
    ...[...door.list(chats)].flatMap((entry) => (entry.kind === "folder" ? [entry.name] : [])),
  ];
  // What the user typed is logged with the id of the session.
  const log = textOf(join(dirname(chats), "logs.json"), door) ?? "";
  for (const [, id] of log.matchAll(/"sessionId":\s*"([0-9a-f-]{36})"/g)) ids.push(id!);
  const known = ids.find((id) => typeof id === "string" && short !== undefined && id.startsWith(short));
  const made = short === undefined ? name : `${short}${madeUuid("session", name).slice(8)}`;
  const root = textOf(join(dirname(chats), ".project_root"), door)?.trim();
  const projectHash =
    heads.find((head) => typeof head.projectHash === "string")?.projectHash ??
    createHash("sha256")
      .update(root ?? dirname(chats))
      .digest("hex");
  const startTime = minute && `${minute.replace(/-(\d\d)$/, ":$1")}:00.000Z`;
  return {
    sessionId: session !== null && UUID.test(session) ? session : (known ?? made),
    projectHash,
    ...(startTime ? { startTime } : {}),
    kind: short === undefined ? "subagent" : "main",
  };
}

function headOf(path: string, door: Door): { readonly sessionId?: string; readonly projectHash?: string } {
  const text = textOf(path, door) ?? "";
  const sessionId = /"sessionId"\s*:\s*"([^"]*)"/.exec(text)?.[1];
  const projectHash = /"projectHash"\s*:\s*"([0-9a-f]{64})"/.exec(text)?.[1];
  return { ...(sessionId ? { sessionId } : {}), ...(projectHash ? { projectHash } : {}) };
}

function textOf(path: string, door: Door): string | null {
  try {
    if (door.facts(path) === null) return null;
    using file = door.openRaw(path);
    return Buffer.from(file.read(0, HEAD_BYTES)).toString("utf8");
  } catch (error) {
    if (error instanceof Refused) return null;
    throw error;
  }
}

class Mending {
  readonly #lines: LineEntries;
  readonly #header: () => Fields;
  readonly #lost: string[];
  /** Messages of snapshots, with the entry of the snapshot. */
  #snapshots: { readonly entry: Entry; readonly messages: readonly Fields[] }[] = [];

  constructor(lines: LineEntries, header: () => Fields, lost: string[]) {
    this.#lines = lines;
    this.#header = header;
    this.#lost = lost;
  }

  run(): void {
    this.#lines.removeDoubles(true);
    this.#findSnapshots();
    for (const entry of this.#lines.living) if (entry.state === "partial") this.#completePart(entry);
    for (const entry of this.#lines.entries) if (entry.state === "unreadable") this.#completeEnd(entry);
    this.#lines.removeDoubles(true);
    this.#rebuildHeader();
    this.#findSnapshots();
    this.#fillGaps();
    this.#addCalls();
    this.#cleanMessages();
  }

  #fields(entry: Entry): Fields {
    return fieldsOf(this.#lines.valueOf(entry));
  }

  #replace(entry: Entry, value: Fields, grade: Grade, why: string): void {
    entry.replacement = { value, grade, why };
    const { id, calls, results, isPrompt, isSpeech, kind } = this.#lines.made(value, entry.thread, grade, why);
    Object.assign(entry, { id, calls, results, isPrompt, isSpeech, kind });
  }

  #findSnapshots(): void {
    this.#snapshots = this.#lines.living
      .filter(({ kind, state }) => kind === "snapshot" && state !== "partial")
      .map((entry) => ({
        entry,
        messages: listIn(fieldsOf(this.#fields(entry)["$set"])["messages"]).map(fieldsOf),
      }));
  }

  /** A message as it stands elsewhere: written again, or in a snapshot. */
  #twinOf(entry: Entry): Fields | null {
    const written = this.#lines.living.find(
      (other) => other !== entry && other.state !== "partial" && other.id !== null && other.id === entry.id,
    );
    if (written) return this.#fields(written);
    for (const { messages } of this.#snapshots) {
      // In a snapshot, the results of calls have the id of the calls' message.
      const found = messages.find(({ id, type }) => id === entry.id && type === this.#fields(entry)["type"]);
      if (found) return found;
    }
    return null;
  }

  #completePart(entry: Entry): void {
    const value = this.#fields(entry);
    // A snapshot is made again, if it is needed.
    if (value["$set"] !== undefined || value["$rewindTo"] !== undefined) {
      const isTime = Object.keys(fieldsOf(value["$set"])).join() === "lastUpdated";
      if (isTime && format.isRecord(value) && !entry.damage.includes("torn-record")) return;
      entry.replacement = null;
      entry.why = "removes half of a note";
      this.#removeRepeated(entry);
      return;
    }
    if (typeof value["sessionId"] === "string" && typeof value["projectHash"] !== "string") {
      if (entry === this.#lines.living[0]) return;
      entry.replacement = null;
      entry.why = "removes half of a header";
      return;
    }
    const twin = entry.id === null ? null : this.#twinOf(entry);
    if (twin) {
      const { toolCalls: _, ...first } = twin;
      // What it is now is what the beginning shows: without the calls, if they come later.
      const isLater = this.#lines.living.some((other) => other !== entry && other.id === entry.id);
      this.#replace(entry, isLater && entry.calls.length === 0 ? first : twin, "brought back", "brings back a message");
    } else if (this.#keepCalls(entry, value)) return;
    else completePartial(entry, this.#lines, format, this.#lost);
  }

  /** The messages of a broken snapshot, which now stand behind it on its line, and were said before. */
  #removeRepeated(snapshot: Entry): void {
    const living = this.#lines.entries;
    const at = living.indexOf(snapshot);
    const known = new Set(
      living.slice(0, at).flatMap(({ id, replacement }) => (replacement === null ? [] : (id ?? []))),
    );
    for (const entry of living.slice(at + 1)) {
      if (entry.place?.line !== snapshot.place?.line) return;
      if (entry.id === null || !known.has(entry.id)) continue;
      entry.replacement = null;
      entry.why = "removes a message of a broken snapshot, which stands before it";
    }
  }

  /** A message that is cut off in its calls: those before the cut are whole. */
  #keepCalls(entry: Entry, value: Fields): boolean {
    if (!format.isRecord(value) || !entry.damage.includes("torn-record") || value["type"] !== "gemini") return false;
    const calls = listIn(value["toolCalls"]).slice(0, -1);
    const rest = Object.fromEntries(Object.entries(value).filter(([name]) => name !== "toolCalls"));
    if (typeof value["content"] !== "string" || Object.keys(value).at(-1) === "content") return false;
    this.#lost.push(`The end of the record at line ${entry.place?.line} is lost.`);
    const kept = calls.length > 0 ? { ...rest, toolCalls: calls } : rest;
    this.#replace(entry, kept, "unknown", "keeps what can be read of a message");
    return true;
  }

  /** A message whose beginning is lost, with its id. */
  #completeEnd(entry: Entry): void {
    const value = fieldsOf(this.#lines.suffixOf(entry));
    if (!("content" in value) || value["messages"] !== undefined) return;
    const { "": _, ...rest } = value;
    const type = "thoughts" in value || "tokens" in value || "toolCalls" in value ? "gemini" : "user";
    const id = madeUuid("end", String(entry.place?.offset));
    const near = this.#lines.living.find(({ id: other }) => other !== null);
    const timestamp = near ? this.#fields(near)["timestamp"] : new Date(0).toISOString();
    this.#replace(entry, { id, timestamp, type, ...rest }, "unknown", "keeps the readable end of a message");
    this.#lost.push(`The beginning of the record at line ${entry.place?.line} is lost.`);
  }

  /** Gemini refuses a file without these two. */
  #rebuildHeader(): void {
    const [first] = this.#lines.living;
    if (!first) return;
    const value = this.#fields(first);
    if (format.isHeader!(value) && first.state !== "partial") return;
    const isHeader = typeof value["sessionId"] === "string" || typeof value["projectHash"] === "string";
    const other = this.#lines.living.slice(isHeader ? 1 : 0).find(({ kind }) => kind === "facts");
    const known = other ? this.#fields(other) : {};
    const times = this.#lines.living.flatMap((entry) => textIn(this.#fields(entry)["timestamp"]) ?? []);
    const made = this.#header();
    const startTime = textIn(times[0]) ?? made["startTime"] ?? new Date(0).toISOString();
    const header = {
      ...{ ...made, sessionId: known["sessionId"] ?? made["sessionId"] },
      ...{ projectHash: known["projectHash"] ?? made["projectHash"], startTime, lastUpdated: startTime },
      kind: known["kind"] ?? made["kind"],
      ...(isHeader ? validParts(value) : {}),
    };
    if (isHeader) this.#replace(first, header, "rebuilt", "completes the header");
    else this.#insert("before", first, header, "rebuilt", "makes the header");
  }

  #insert(where: "before" | "behind", at: Entry, value: Fields, grade: Grade, why: string): Entry {
    const made = this.#lines.made(value, "main", grade, why);
    this.#lines.insert(where, new Map([[at, [made]]]));
    return made;
  }

  #fillGaps(): void {
    const order = new LineOrder();
    for (const entry of this.#lines.living) {
      const value = this.#fields(entry);
      const gap = order.next(entry.kind, value);
      if (gap === "snapshot") this.#restore("before", entry);
      const made = gap === "message" ? this.#bringBack(entry, order.ids) : null;
      // What was said before it must be back in view, too.
      if (made && order.next(made.kind, this.#fields(made)) === "snapshot") this.#restore("before", made);
      // The note now stands behind a message: the next one needs another.
      if (made) order.next(entry.kind, value);
      const isLost = gap === null && entry.kind === "$rewindTo" && !order.ids.has(String(value["$rewindTo"]));
      if (!isLost) continue;
      entry.replacement = null;
      entry.why = "takes out a step back to a message that is not there";
    }
    const last = this.#lines.living.at(-1);
    if (last && order.end() !== null) this.#restore("behind", last);
  }

  /** Everything that was said before a resume emptied the session. */
  #restore(where: "before" | "behind", at: Entry): void {
    const living = this.#lines.living;
    const messages = new Map<string, Fields>();
    for (const entry of living.slice(0, living.indexOf(at) + (where === "behind" ? 1 : 0))) {
      const value = this.#fields(entry);
      if (entry.kind === "snapshot") {
        const all = listIn(fieldsOf(value["$set"])["messages"]).map(fieldsOf);
        if (all.some((message) => !isContext(message))) messages.clear();
        for (const message of all) messages.set(String(message["id"]), message);
      } else if (entry.kind === "$rewindTo") {
        const ids = [...messages.keys()];
        const from = ids.indexOf(String(value["$rewindTo"]));
        for (const id of from < 0 ? [] : ids.slice(from)) messages.delete(id);
      } else if (entry.id !== null) messages.set(entry.id, value);
    }
    const snapshot = { $set: { messages: [...messages.values()] } };
    this.#insert(where, at, snapshot, "brought back", "brings back what a resume took out");
  }

  /** The message before a note of the time: one that was not `said` before, or it would be no new one. */
  #bringBack(note: Entry, said: ReadonlySet<string>): Entry {
    const living = this.#lines.living;
    const at = living.indexOf(note);
    const previous = living.slice(0, at).findLast(({ id }) => id !== null);
    const next = living.slice(at + 1).find(({ id, kind }) => id !== null || kind === "snapshot");
    const { timestamp = new Date(0).toISOString() } = previous ? this.#fields(previous) : {};
    const told = (value: Fields, why: string): Entry => this.#insert("before", note, value, "brought back", why);

    if (next?.kind === "gemini" && next.calls.length > 0 && !said.has(next.id!) && !this.#isBehindNote(next)) {
      const { toolCalls: _, ...first } = this.#fields(next);
      return told(first, "brings back a message that was written twice");
    }
    const id = madeUuid("results", String(previous?.id));
    if (previous?.kind === "gemini" && previous.results.length > 0 && living[at - 1] === previous && !said.has(id)) {
      const parts = listIn(this.#fields(previous)["toolCalls"]).flatMap((call) => listIn(fieldsOf(call)["result"]));
      return told({ id, timestamp, type: "user", content: parts }, "brings back the results of calls");
    }
    const twin = this.#snapshots
      .filter(({ entry }) => living.indexOf(entry) > at)
      .map(({ messages }) => messages[messages.findLastIndex(({ id }) => id === previous?.id) + 1])
      .find((message) => message !== undefined && !isContext(message));
    const twinId = textIn(twin?.["id"]) ?? "";
    if (twin && !said.has(twinId) && !living.some((entry) => entry.id === twinId))
      return told(twin, "brings back a message");
    const isPrompt = previous?.kind !== "user";
    this.#lost.push(`A message before line ${note.place?.line} is lost.`);
    const own = { id: madeUuid("lost", String(note.place?.offset ?? at), String(previous?.id)), timestamp };
    const value = isPrompt
      ? { ...own, type: "user", content: [{ text: LOST_PROMPT }] }
      : { ...own, type: "gemini", content: LOST_ANSWER, thoughts: [], tokens: null, model: null };
    return this.#insert("before", note, value, "rebuilt", "adds a note where a message was lost");
  }

  /** Whether a note of the time follows: the message was new then. */
  #isBehindNote(entry: Entry): boolean {
    const living = this.#lines.living;
    return living[living.indexOf(entry) + 1]?.kind === "$set";
  }

  /** Results whose call is lost: the message of the model that had it is written once more, with the call. */
  #addCalls(): void {
    const known = new Set(this.#lines.living.flatMap(({ calls }) => calls.map(({ id }) => id)));
    let answer: Entry | null = null;
    for (const entry of this.#lines.living) {
      if (entry.kind === "gemini") answer = entry;
      if (entry.kind !== "user") continue;
      const orphans = listIn(this.#fields(entry)["content"]).flatMap((part) => {
        const result = fieldsOf(fieldsOf(part)["functionResponse"]);
        return typeof result["id"] === "string" && !known.has(result["id"]) ? [{ part, result }] : [];
      });
      if (orphans.length === 0) {
        if (entry.isPrompt) answer = null;
        continue;
      }
      const { timestamp } = this.#fields(entry);
      let grade: Grade = "brought back";
      const toolCalls = orphans.map(({ part, result }) => {
        const id = String(result["id"]);
        known.add(id);
        const args = this.#inputOf(id);
        if (args === null) {
          grade = "rebuilt";
          this.#lost.push(`The input of the call ${id} is lost; its result is there.`);
        }
        return { id, name: result["name"], args: args ?? LOST_INPUT, result: [part], status: "success", timestamp };
      });
      const id = madeUuid("answer", String(entry.id));
      const base = answer
        ? this.#fields(answer)
        : { id, timestamp, type: "gemini", content: "", thoughts: [], tokens: null, model: null };
      const value = { ...base, toolCalls: [...listIn(base["toolCalls"]), ...toolCalls] };
      this.#insert("before", entry, value, grade, "brings back the calls of results");
    }
  }

  #inputOf(call: string): Fields | null {
    for (const message of this.#messages()) {
      const own = listIn(message["toolCalls"]).map(fieldsOf);
      const parts = listIn(message["content"]).map((part) => fieldsOf(fieldsOf(part)["functionCall"]));
      const found = [...own, ...parts].find(({ id, args }) => id === call && isInput(args));
      if (found) return fieldsOf(found["args"]);
    }
    return null;
  }

  #cleanPart(part: unknown): readonly unknown[] {
    const clean = cleanResult(part);
    if (!clean) return [part];
    const { id } = fieldsOf(fieldsOf(part)["functionResponse"]);
    return this.#resultOf(String(id)) ?? [clean.content];
  }

  /** What a call was answered, as it stands elsewhere. */
  #resultOf(call: string): readonly unknown[] | null {
    for (const message of this.#messages()) {
      const own = listIn(message["toolCalls"])
        .map(fieldsOf)
        .find(({ id }) => id === call);
      const parts = own ? listIn(own["result"]) : listIn(message["content"]);
      const found = parts.filter((part) => fieldsOf(fieldsOf(part)["functionResponse"])["id"] === call);
      if (found.length > 0 && !cleanResult(found)) return found;
    }
    return null;
  }

  #messages(): readonly Fields[] {
    return [
      ...this.#lines.living.filter(({ id }) => id !== null).map((entry) => this.#fields(entry)),
      ...this.#snapshots.flatMap((snapshot) => snapshot.messages),
    ];
  }

  /** Inputs that are not there, and results that the API refuses. */
  #cleanMessages(): void {
    for (const entry of this.#lines.living) {
      if (entry.calls.length === 0 && entry.results.length === 0) continue;
      const value = this.#fields(entry);
      let why: string | null = null;
      let grade: Grade = "rebuilt";
      const toolCalls = listIn(value["toolCalls"]).map((call) => {
        const fields = fieldsOf(call);
        const clean = cleanResult(fields["result"]);
        const whole = clean ? this.#resultOf(String(fields["id"])) : null;
        if (clean) why = "takes binary output out of a result";
        if (whole) grade = "brought back";
        const result = clean ? { result: whole ?? clean.content } : {};
        if (isInput(fields["args"])) return { ...fields, ...result };
        why = "restores the input of a call";
        const args = this.#inputOf(String(fields["id"]));
        if (args) grade = "brought back";
        return { ...fields, args: args ?? LOST_INPUT, ...result };
      });
      const isPoisoned = entry.kind === "user" && cleanResult(value["content"]) !== null;
      if (isPoisoned) why = "takes binary output out of a result";
      if (why === null) continue;
      const content = isPoisoned ? { content: listIn(value["content"]).flatMap((part) => this.#cleanPart(part)) } : {};
      this.#replace(entry, { ...value, ...content, ...(toolCalls.length > 0 ? { toolCalls } : {}) }, grade, why);
    }
  }
}

const isInput = (input: unknown): boolean => typeof input === "object" && input !== null && !Array.isArray(input);

/** The fields of half a header that are as they were. */
function validParts({ sessionId, projectHash, startTime, kind }: Fields): Fields {
  return {
    ...(UUID.test(String(sessionId)) ? { sessionId } : {}),
    ...(/^[0-9a-f]{64}$/.test(String(projectHash)) ? { projectHash } : {}),
    ...(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(String(startTime)) ? { startTime } : {}),
    ...(kind === "main" || kind === "subagent" ? { kind } : {}),
  };
}

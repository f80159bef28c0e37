import type { SessionPlace } from "../../contract/agent.ts";
import type { Change, Plan } from "../../contract/plan.ts";
import { type Fields, fieldsOf, listIn, textIn } from "../../contract/shapes.ts";
import type { Door } from "../../files/door.ts";
import { cleanResult } from "../../mend/clean-result.ts";
import { type Entry, LineEntries, madeUuid } from "../../mend/entries.ts";
import { CUT_OFF, LOST_INPUT, LOST_RECORD, LOST_RESULT } from "../../mend/words.ts";
import { bringBack } from "./bring-back.ts";
import { separateIds } from "./doubled-ids.ts";
import { Forks } from "./forks.ts";
import { format, isPlaceholder } from "./format.ts";
import { movedTo, WorkingFolders } from "./place.ts";
import { Twins } from "./twins.ts";

/** What makes Claude Code load the session whole again. */
export async function plan(session: SessionPlace, door: Door): Promise<Plan | null> {
  const changes: Change[] = [];
  const lost: string[] = [];
  const folders = new WorkingFolders(session);
  for (const path of [session.path, ...session.parts]) {
    const file = await door.open(path);
    const twins = new Twins();
    const isMain = path === session.path;
    // The notes name records too.
    const leaves = new Set<string>();
    const lines = new LineEntries(file, format, "main", (value) => {
      twins.see(value);
      const { uuid, cwd, leafUuid } = fieldsOf(value);
      if (isMain && typeof uuid === "string") folders.add(cwd);
      if (isMain && typeof leafUuid === "string") leaves.add(leafUuid);
    });
    const mending = new Mending(lines, twins, lost);
    mending.prepare();
    const lacking = isMain ? lackingIn(lines, leaves) : null;
    if (lacking) bringBack(lines, await Forks.of(session, lacking, door));
    mending.run();
    const edits = lines.edits();
    if (edits.length > 0) changes.push({ type: "edit", path, size: file.size, edits });
  }
  const right = folders.right(door);
  if (right !== null) changes.push(...movedTo(right, session, door));
  return changes.length > 0 ? { changes, lost } : null;
}

/** The ids of the session's records, and of those that it lacks; null if it lacks nothing. */
function lackingIn({ entries, living }: LineEntries, leaves: ReadonlySet<string>): ReadonlySet<string> | null {
  const ids = new Set(living.flatMap(({ id }) => id ?? []));
  const results = new Set(living.flatMap((entry) => entry.results));
  const isWhole =
    ids.size > 0 &&
    entries.every(({ state }) => state !== "partial" && state !== "unreadable") &&
    living.every(({ parent }) => parent === null || ids.has(parent)) &&
    living.every(({ calls }) => calls.every(({ id }) => results.has(id)));
  return isWhole ? null : new Set([...ids, ...leaves, ...living.flatMap(({ parent }) => parent ?? [])]);
}

class Mending {
  readonly #lines: LineEntries;
  readonly #twins: Twins;
  readonly #lost: string[];

  constructor(lines: LineEntries, twins: Twins, lost: string[]) {
    this.#lines = lines;
    this.#twins = twins;
    this.#lost = lost;
  }

  /** What needs no other file. */
  prepare(): void {
    this.#lines.removeDoubles();
    separateIds(this.#lines);
    this.#removePlaceholders();
  }

  run(): void {
    this.#completePartials();
    // What was completed may now be the second copy of another.
    this.#lines.removeDoubles();
    this.#fillGaps();
    this.#pairCalls();
    this.#cleanBlocks();
  }

  /** Answers that no model gave, at the end of the session; what pointed to one points to the record before it. */
  #removePlaceholders(): void {
    const moved = new Map<string, string | null>();
    for (const entry of this.#lines.living.toReversed()) {
      if (!entry.isSpeech) continue;
      if (entry.thread !== "main" || entry.id === null || !isPlaceholder(this.#lines.valueOf(entry))) break;
      entry.replacement = null;
      entry.why = "removes an answer that no model gave";
      moved.set(entry.id, entry.parent);
    }
    for (const entry of moved.size > 0 ? this.#lines.living : []) {
      const value = fieldsOf(this.#lines.valueOf(entry));
      for (const field of ["parentUuid", "leafUuid"]) {
        let to = textIn(value[field]);
        if (to === null || !moved.has(to)) continue;
        while (to !== null && moved.has(to)) to = moved.get(to)!;
        const why = "points to the record before an answer that no model gave";
        entry.replacement = { value: { ...value, [field]: to }, grade: "rebuilt", why };
        if (field === "parentUuid") entry.parent = to;
      }
    }
  }

  /** Records that are cut off lack their id; the record behind them names it. */
  #completePartials(): void {
    const entries = this.#lines.living;
    const ids = new Set(entries.map(({ id }) => id));
    for (const [index, entry] of entries.entries()) {
      if (entry.state !== "partial") continue;
      const value = fieldsOf(this.#lines.valueOf(entry));
      if (typeof value["uuid"] === "string" && "message" in value) continue;
      const next = entries.slice(index + 1).find(({ id, thread }) => id !== null && thread === entry.thread);
      const id = next && next.parent !== null && !ids.has(next.parent) ? next.parent : null;
      const speech = speechOf(value);
      const near = next ?? entries.slice(0, index).findLast((other) => other.id !== null);
      if (speech === null || !near || (next && id === null)) {
        entry.replacement = null;
        entry.why = "removes a fragment without readable text";
        continue;
      }
      const uuid = id ?? madeUuid("cut off", String(value["parentUuid"]), JSON.stringify(speech));
      const whole = { ...this.#envelope(near), ...value, message: speech, uuid };
      entry.replacement = { value: whole, grade: "unknown", why: "keeps the readable beginning of a record" };
      entry.id = uuid;
      entry.parent = textIn(value["parentUuid"]);
      ids.add(uuid);
      this.#lost.push(`The end of the record at line ${entry.place?.line} is lost.`);
    }
  }

  /** The fields of a record that all records of a session share. */
  #envelope(near: Entry): Fields {
    const { isSidechain, agentId, timestamp, userType, entrypoint, cwd, sessionId, version, gitBranch } = fieldsOf(
      this.#lines.valueOf(near),
    );
    const all = { isSidechain, agentId, timestamp, userType, entrypoint, cwd, sessionId, version, gitBranch };
    return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
  }

  /** Puts a record in the place of each that is named as a parent, and is not there. */
  #fillGaps(): void {
    const entries = this.#lines.living;
    const ids = new Set(entries.map(({ id }) => id));
    const calls = new Set(entries.flatMap((entry) => entry.calls.map(({ id }) => id)));
    const results = new Set(entries.flatMap((entry) => entry.results));
    const before = new Map<string, Entry>();
    const made = new Map<Entry, Entry>();
    const children = Map.groupBy(entries, ({ parent }) => parent);
    for (const entry of entries) {
      const { parent, thread } = entry;
      if (parent !== null && !ids.has(parent)) {
        const previous = before.get(thread);
        const orphan = children
          .get(parent)!
          .flatMap((child) => child.results)
          .find((call) => !calls.has(call));
        const filler = this.#filler(parent, entry, previous, orphan, results);
        for (const { id } of filler.calls) calls.add(id);
        for (const id of filler.results) results.add(id);
        made.set(entry, filler);
        ids.add(parent);
      }
      if (entry.id !== null) before.set(thread, entry);
    }
    this.#insertBefore(made);
  }

  #filler(
    uuid: string,
    child: Entry,
    previous: Entry | undefined,
    orphan: string | undefined,
    results: ReadonlySet<string>,
  ): Entry {
    const base = { parentUuid: previous?.id ?? null, ...this.#envelope(child), uuid };
    if (orphan !== undefined) {
      const twin = this.#twins.call(orphan);
      const block = twin ?? { type: "tool_use", id: orphan, name: "lost_call", input: LOST_INPUT };
      if (!twin) this.#lost.push(`The call ${orphan} is lost; its result is there.`);
      // The blocks of one answer share its id.
      const sibling = [previous, child].find((near) => near?.kind === "assistant");
      const answer = sibling && fieldsOf(fieldsOf(this.#lines.valueOf(sibling))["message"]);
      return this.#made({ ...base, ...assistant(block, uuid, answer) }, child, twin !== null, "the call of a result");
    }
    const open = previous?.calls.find(({ id }) => !results.has(id));
    if (open) return this.#resultEntry(open.id, previous!, child, uuid);
    const prompt = child.kind === "user" ? null : this.#twins.lostPrompt();
    if (prompt !== null) {
      const message = { role: "user", content: prompt };
      return this.#made({ ...base, type: "user", message }, child, true, "a prompt");
    }
    this.#lost.push(`A record before line ${child.place?.line} is lost.`);
    const note = { type: "system", subtype: "informational", content: LOST_RECORD, isMeta: false, level: "info" };
    return this.#made({ ...base, ...note }, child, false, "a note where a record was lost");
  }

  #made(value: unknown, { thread }: Entry, isBroughtBack: boolean, what: string): Entry {
    const words = isBroughtBack ? `brings back ${what}` : `adds ${what}`;
    return this.#lines.made(value, thread, isBroughtBack ? "brought back" : "rebuilt", words);
  }

  #resultEntry(call: string, caller: Entry, near: Entry, uuid: string): Entry {
    const twin = this.#twins.result(call);
    const block = twin ?? { type: "tool_result", tool_use_id: call, content: LOST_RESULT, is_error: true };
    if (!twin) this.#lost.push(`The result of the call ${call} is lost.`);
    const value = {
      ...{ parentUuid: caller.id, ...this.#envelope(near), type: "user", message: { role: "user", content: [block] } },
      ...{ uuid, sourceToolAssistantUUID: caller.id },
    };
    return this.#made(value, caller, twin !== null, "the result of a call");
  }

  /** Every call that is not the last has a result, behind it; every result has a call. */
  #pairCalls(): void {
    const entries = this.#lines.living;
    const results = new Set(entries.flatMap((entry) => entry.results));
    const callers = new Map(entries.flatMap((entry) => entry.calls.map(({ id }) => [id, entry] as const)));
    const positions = new Map(entries.map((entry, index) => [entry, index]));
    const before = new Map<Entry, Entry>();
    const after = new Map<Entry, Entry[]>();
    for (const [index, entry] of entries.entries()) {
      for (const { id } of entry.calls) {
        if (results.has(id) || !isAnswered(entries, index)) continue;
        const made = this.#resultEntry(id, entry, entry, madeUuid("result", entry.id ?? "", id));
        after.set(entry, [...(after.get(entry) ?? []), made]);
      }
      for (const id of entry.results) {
        const caller = callers.get(id);
        if (!caller) {
          const uuid = madeUuid("call", entry.id ?? "", id);
          const block = this.#twins.call(id) ?? { type: "tool_use", id, name: "lost_call", input: LOST_INPUT };
          const base = { parentUuid: entry.parent, ...this.#envelope(entry), ...assistant(block, uuid), uuid };
          before.set(entry, this.#made(base, entry, this.#twins.call(id) !== null, "the call of a result"));
          const value = { ...fieldsOf(this.#lines.valueOf(entry)), parentUuid: uuid };
          entry.replacement = { value, grade: "intact", why: "hangs a result on its call" };
        } else if (positions.get(caller)! > index) {
          const value = this.#lines.valueOf(entry);
          const moved = this.#lines.made(value, entry.thread, "intact", "puts a result behind its call");
          entry.replacement = null;
          entry.why = "moves a result behind its call";
          after.set(caller, [...(after.get(caller) ?? []), moved]);
        }
      }
    }
    this.#insertBefore(before);
    for (const [entry, added] of after) this.#lines.entries.splice(this.#lines.entries.indexOf(entry) + 1, 0, ...added);
  }

  #insertBefore(made: ReadonlyMap<Entry, Entry>): void {
    if (made.size === 0) return;
    const all = this.#lines.entries.flatMap((entry) => (made.has(entry) ? [made.get(entry)!, entry] : [entry]));
    this.#lines.entries.splice(0, this.#lines.entries.length, ...all);
  }

  /** Inputs that are not there, and results that the API refuses. */
  #cleanBlocks(): void {
    for (const entry of this.#lines.living) {
      if (entry.calls.length === 0 && entry.results.length === 0) continue;
      const value = fieldsOf(this.#lines.valueOf(entry));
      const message = fieldsOf(value["message"]);
      let why: string | null = null;
      const content = listIn(message["content"]).map((block) => {
        const part = fieldsOf(block);
        if (part["type"] === "tool_use" && !isObject(part["input"])) {
          const twin = this.#twins.call(String(part["id"]));
          why = twin ? "brings back the input of a call" : "adds an input to a call that has none";
          return { ...part, input: twin ? twin["input"] : LOST_INPUT };
        }
        const clean = part["type"] === "tool_result" ? cleanResult(part["content"]) : null;
        if (clean === null) return block;
        why = "takes binary output out of a result";
        return { ...part, content: clean.content };
      });
      if (why === null) continue;
      const mended: Fields = { ...value, message: { ...message, content } };
      entry.replacement = { value: mended, grade: "rebuilt", why };
    }
  }
}

/** Whether the model went on after the calls of this record. */
function isAnswered(entries: readonly Entry[], index: number): boolean {
  const { thread } = entries[index]!;
  let sawResult = false;
  for (let at = index + 1; at < entries.length; at++) {
    const next = entries[at]!;
    if (next.thread !== thread || !next.isSpeech) continue;
    if (next.results.length > 0) sawResult = true;
    else if (next.kind === "user" || sawResult) return true;
  }
  return false;
}

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null && !Array.isArray(value);

/** `answer`: a message of the same answer of the model, if there is one. */
function assistant(block: Fields, uuid: string, answer?: Fields): Fields {
  if (answer) return { type: "assistant", message: { ...answer, content: [block] } };
  const message = { id: `msg_${uuid}`, type: "message", role: "assistant", model: "<synthetic>", content: [block] };
  return {
    type: "assistant",
    message: { ...message, stop_reason: "tool_use", stop_sequence: null, usage: { input_tokens: 0, output_tokens: 0 } },
  };
}

/** What is said in the beginning of a record, with a mark where it ends; null if it is nothing that can stand alone. */
function speechOf({ type, message }: Fields): Fields | null {
  const { role, content, ...more } = fieldsOf(message);
  if ((type !== "user" && type !== "assistant") || role !== type) return null;
  if (typeof content === "string") return { ...more, role, content: `${content}\n${CUT_OFF}` };
  const blocks = listIn(content).filter((block) => {
    const part = fieldsOf(block);
    return part["type"] === "text" && typeof part["text"] === "string";
  });
  const last = fieldsOf(blocks.at(-1));
  if (blocks.length === 0) return null;
  return { ...more, role, content: [...blocks.slice(0, -1), { ...last, text: `${last["text"]}\n${CUT_OFF}` }] };
}

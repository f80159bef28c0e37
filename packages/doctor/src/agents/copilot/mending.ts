import type { Grade } from "../../contract/plan.ts";
import { type Fields, fieldsOf, listIn, textIn } from "../../contract/shapes.ts";
import { cleanResult } from "../../mend/clean-result.ts";
import { type Entry, type LineEntries, madeUuid } from "../../mend/entries.ts";
import { LOST_INPUT, LOST_RESULT } from "../../mend/words.ts";
import { Events, UUID } from "./events.ts";
import { format } from "./format.ts";
import { completeEnd, completeEvent } from "./fragments.ts";
import { bringBackSpeech, outcomeOf } from "./speech.ts";
import type { Twins } from "./twins.ts";

/** What is known of the session beside its events. */
export interface SessionNotes {
  readonly session: string;
  readonly cwd: string | null;
  readonly at: string | null;
}

const EPOCH = new Date(0).toISOString();

/** The events of a session on their way to being whole again. */
export class Mending extends Events {
  readonly #notes: SessionNotes;

  constructor(lines: LineEntries, twins: Twins, notes: SessionNotes, lost: string[]) {
    super(lines, twins, lost);
    this.#notes = notes;
  }

  run(): void {
    this.lines.removeDoubles();
    this.#removeRestated();
    for (const entry of this.lines.living) if (entry.state === "partial") completeEvent(entry, this);
    for (const entry of this.lines.entries) if (entry.state === "unreadable") completeEnd(entry, this);
    this.#rebuildHeader();
    if (this.lines.living.length === 0) return;
    this.#renameDoubles();
    this.findHoles();
    if (this.hasHoles) bringBackSpeech(this);
    this.#addCalls();
    this.#addResults();
    this.#moveResults();
    this.#cleanData();
    this.#link();
  }

  /** Half of an event, or a broken one, of which the file has another copy. */
  #removeRestated(): void {
    const whole = new Set(
      this.lines.living.flatMap((entry) => (entry.state === "partial" ? [] : (this.#keyOf(entry) ?? []))),
    );
    for (const entry of this.lines.living)
      if (entry.state === "partial" && whole.has(this.#keyOf(entry) ?? ""))
        this.remove(entry, "removes a part of an event that is there whole");
  }

  #keyOf(entry: Entry): string | null {
    const { messageId, toolCallId, turnId } = this.data(entry);
    const id = textIn(messageId) ?? textIn(toolCallId);
    if (entry.id !== null && id === null && turnId === undefined) return entry.id;
    return id === null ? null : `${String(this.fields(entry)["type"])} ${id}`;
  }

  /** Copilot refuses a session whose first event is not this one, with these fields. */
  #rebuildHeader(): void {
    const [first] = this.lines.living;
    const value = first ? this.fields(first) : {};
    const old = value["type"] === "session.start" ? fieldsOf(value["data"]) : {};
    const needed = ["sessionId", "producer", "copilotVersion", "startTime"];
    const isWhole = needed.every((name) => typeof old[name] === "string") && typeof old["version"] === "number";
    if (isWhole && old["sessionId"] === this.#notes.session && UUID.test(String(value["id"]))) return;
    if (!first && this.twins.turns.length === 0) return;
    const isStart = first !== undefined && value["type"] === "session.start";
    const rest = isStart ? this.lines.living.slice(1) : this.lines.living;
    const next = rest[0] ? this.fields(rest[0]) : {};
    const named = rest.find(({ parent }) => parent !== null)?.parent;
    const at = textIn(next["timestamp"]) ?? this.#notes.at ?? EPOCH;
    const context = rest
      .map((entry) => fieldsOf(this.data(entry)["context"]))
      .find(({ cwd }) => typeof cwd === "string");
    const selectedModel = rest
      .map((entry) => textIn(this.data(entry)["selectedModel"]))
      .find((model) => model !== null);
    const data = {
      ...{ sessionId: this.#notes.session, version: 1, producer: "copilot-agent", copilotVersion: "0.0.0" },
      ...{ startTime: this.#notes.at ?? at, ...(selectedModel === undefined ? {} : { selectedModel }) },
      ...{ contextTier: null, context: context ?? { cwd: this.#notes.cwd ?? "/" } },
      ...{ alreadyInUse: false, remoteSteerable: false },
      ...old,
      sessionId: this.#notes.session,
    };
    const known = new Set(rest.map(({ id }) => id));
    const isNamed = named && UUID.test(named) && !known.has(named);
    const id = isNamed ? named : madeUuid("start", this.#notes.session);
    const made = { type: "session.start", data, id, timestamp: this.#notes.at ?? at, parentId: null };
    if (isStart) this.replace(first, made, "rebuilt", "completes the first event");
    else {
      const entry = this.lines.made(made, "main", "rebuilt", "makes the first event");
      if (first) this.lines.insert("before", new Map([[first, [entry]]]));
      else this.lines.entries.push(entry);
    }
    if (!first) this.markEnd();
  }

  /** Two different events with one id. */
  #renameDoubles(): void {
    const known = new Map<string, Entry>();
    for (const [index, entry] of this.lines.living.entries()) {
      if (entry.id === null) continue;
      const other = known.get(entry.id);
      if (other === undefined) known.set(entry.id, entry);
      else {
        const id = madeUuid("doubled", entry.id, String(index));
        this.replace(
          entry,
          { ...this.fields(entry), id },
          "rebuilt",
          "gives the second of two events an id of its own",
        );
      }
    }
  }

  /** Results, and starts of tools, whose call is lost. */
  #addCalls(): void {
    const names = new Set(this.lines.living.map(({ thread }) => thread));
    for (const name of names) {
      const entries = this.thread(name);
      const known = new Set(entries.flatMap(({ calls }) => calls.map(({ id }) => id)));
      /** The answer that calls belong to whose own is lost. */
      let host: Entry | null = null;
      for (const entry of entries) {
        if (entry.kind === "assistant.message") host = this.#isOpenHost(entry) ? entry : null;
        if (entry.kind === "assistant.turn_end" || entry.kind === "assistant.turn_start") host = null;
        const isStart = entry.kind === "tool.execution_start";
        const call = isStart ? textIn(this.data(entry)["toolCallId"]) : (entry.results[0] ?? null);
        if (call === null || known.has(call) || (isStart && !this.hasHoles)) continue;
        known.add(call);
        host = this.#addCall(entry, call, host);
      }
    }
  }

  /** Whether calls may be missing in an answer: it was cut off, or was made here. */
  #isOpenHost({ state, place }: Entry): boolean {
    return state === "partial" || place === null;
  }

  #addCall(entry: Entry, call: string, host: Entry | null): Entry {
    const twin = this.twins.calls.get(call);
    const isInput = typeof twin?.input === "object" && twin.input !== null;
    const request = {
      ...{ toolCallId: call, name: twin?.name ?? "lost_call", arguments: isInput ? twin.input : LOST_INPUT },
      type: "function",
    };
    const grade = isInput ? "brought back" : "rebuilt";
    if (!isInput) this.lost.push(`The call ${call} is lost; its result is there.`);
    if (host) {
      const data = this.data(host);
      this.change(host, { ...data, toolRequests: [...listIn(data["toolRequests"]), request] }, grade, "adds a call");
      return host;
    }
    const { interactionId, turnId, model } = this.data(entry);
    const preamble = this.twins.preambles.get(call);
    if (preamble === undefined) this.lost.push(`What the model said before the call ${call} is lost, if anything.`);
    const messageId = madeUuid("answer", call);
    const facts = Object.fromEntries(
      Object.entries({ interactionId, turnId, model }).filter(([, value]) => value !== undefined),
    );
    const data = { messageId, ...facts, content: preamble ?? "", toolRequests: [request], rte: false };
    return this.add("before", entry, "assistant.message", data, grade, "brings back the call of a result");
  }

  /** Calls without a result, after which the conversation goes on; Copilot closes the others itself. */
  #addResults(): void {
    const results = new Set(this.lines.living.flatMap((entry) => entry.results));
    for (const name of new Set(this.lines.living.map(({ thread }) => thread))) {
      const entries = this.thread(name);
      const last = entries.findLastIndex(({ kind }) => kind === "assistant.message" || kind === "user.message");
      for (const [index, entry] of entries.entries()) {
        for (const { id } of entry.calls) {
          if (results.has(id) || index >= last) continue;
          results.add(id);
          const start = entries.find(
            (other) => other.kind === "tool.execution_start" && this.data(other)["toolCallId"] === id,
          );
          this.#addResult(start ?? entry, id, this.data(entry));
        }
      }
    }
  }

  #addResult(behind: Entry, call: string, { interactionId, turnId }: Fields): void {
    const twin = this.twins.results.get(call) ?? outcomeOf(call, this) ?? undefined;
    const ids = { toolCallId: call, interactionId, turnId };
    const outcome =
      twin === undefined
        ? { success: false, error: { message: LOST_RESULT, code: "lost" } }
        : { success: true, result: { content: twin } };
    if (twin === undefined) this.lost.push(`The result of the call ${call} is lost.`);
    const data = { ...Object.fromEntries(Object.entries(ids).filter(([, value]) => value !== undefined)), ...outcome };
    const grade = twin === undefined ? "rebuilt" : "brought back";
    this.add("behind", behind, "tool.execution_complete", data, grade, "adds the result of a call");
  }

  #moveResults(): void {
    const entries = this.lines.living;
    const callers = new Map(entries.flatMap((entry, at) => entry.calls.map(({ id }) => [id, { entry, at }] as const)));
    for (const [at, entry] of entries.entries()) {
      const caller = callers.get(entry.results[0] ?? "");
      if (!caller || caller.at < at) continue;
      const moved = this.lines.made(this.fields(entry), entry.thread, "intact", "puts a result behind its call");
      this.remove(entry, "moves a result behind its call");
      this.lines.insert("behind", new Map([[caller.entry, [moved]]]));
    }
  }

  /** Inputs that are not there, and results that the provider refuses. */
  #cleanData(): void {
    for (const entry of this.lines.living) {
      const data = this.data(entry);
      if (entry.results.length > 0) {
        const field = data["result"] === undefined || data["result"] === null ? "error" : "result";
        const clean = cleanResult(data[field]);
        if (clean)
          this.change(entry, { ...data, [field]: clean.content }, "rebuilt", "takes binary output out of a result");
      }
      const broken = format
        .understand(this.fields(entry))
        ?.units?.some((unit) => unit.type === "call" && !isInput(unit.input));
      if (entry.calls.length === 0 || !broken) continue;
      let grade: Grade = "brought back";
      const toolRequests = listIn(data["toolRequests"]).map((request) => {
        const fields = fieldsOf(request);
        const [unit] = format.understand({ ...this.fields(entry), data: { toolRequests: [request] } })?.units ?? [];
        if (unit?.type !== "call" || isInput(unit.input)) return request;
        const twin = this.twins.calls.get(String(fields["toolCallId"]))?.input;
        if (!isInput(twin)) {
          grade = "rebuilt";
          this.lost.push(`The input of the call ${String(fields["toolCallId"])} is lost.`);
        }
        return { ...fields, arguments: isInput(twin) ? twin : LOST_INPUT };
      });
      this.change(entry, { ...data, toolRequests }, grade, "restores the input of a call");
    }
  }

  /** Each event names one that stands before it. */
  #link(): void {
    const known = new Set<string>();
    let previous: string | null = null;
    for (const entry of this.lines.living) {
      const isLost = entry.parent === null ? entry.place === null : !known.has(entry.parent);
      if (isLost && previous !== null && !entry.kind.startsWith("model.")) {
        const { grade = "intact", why = "links an event over a gap" } = entry.replacement ?? {};
        entry.replacement = { value: { ...this.fields(entry), parentId: previous }, grade, why };
        entry.parent = previous;
      }
      if (entry.id !== null) {
        known.add(entry.id);
        previous = entry.id;
      }
      // Copilot follows events that it does not write.
      if (entry.parent !== null) known.add(entry.parent);
    }
  }
}

const isInput = (input: unknown): boolean => typeof input === "object" && input !== null && !Array.isArray(input);

/**
 * Reads session records as FORMAT.md, section 10, describes them, for the dialect `anthropic`. By the author of that
 * section. It imports nothing from Holdfast, and is slow and simple: it keeps no state that it can derive from the
 * entries, so that it shares no idea with the fold that it is compared with.
 */
// biome-ignore lint/suspicious/noExplicitAny: what stands in a journal can be anything.
type Any = any;
type Place = { message: string; index: number };

export interface ReadEntry {
  id: string;
  turn: number;
  step: string;
  message: Any;
  metadata: Any;
  synthetic?: string;
  incomplete?: true;
  late?: true;
  replacedBy?: string;
  value?: unknown;
  source?: string;
  call?: Place;
}
interface Item extends ReadEntry {
  seq: number;
  from: "message" | "result" | "repair" | "edit";
  hidden: boolean;
}
interface Called {
  id: string;
  idless: boolean;
  by: "agent" | "provider";
  at: number;
  message: string;
  index: number;
  answer: Item | null;
}

const isText = (value: Any): boolean => typeof value === "string";
const isCount = (value: Any): boolean => Number.isSafeInteger(value) && value >= 0;
const isObject = (value: Any): boolean => typeof value === "object" && value !== null && !Array.isArray(value);
const isTime = (value: Any): boolean => isText(value) && /^\d{4}(-\d\d){2}T(\d\d:){2}\d\d\.\d{3}Z$/.test(value);
/** 10.2: by none of these, `aborted` is somebody's wish. */
const isCutOff = ({ outcome, by }: Any): boolean =>
  outcome === "aborted"
    ? ["close", "recorder", "server"].includes(by)
    : !["completed", "failed", "left"].includes(outcome);
const isPlace = (value: Any): boolean => isObject(value) && isText(value.message) && isCount(value.index);
const flag = (value: Any): true | undefined => (value === true ? true : undefined);
const listOf = (value: Any, fits: (item: Any) => boolean): Any[] => (Array.isArray(value) ? value.filter(fits) : []);

/** 10.6: the members of a message, as a checkpoint has those of its prompt. */
function isPrompt(value: Any): boolean {
  return (
    isObject(value) && isText(value.id) && isCount(value.turn) && isText(value.step) && value.message !== undefined
  );
}

/** 10.1 to 10.4: the members without which a record says nothing. */
const NEEDED: Record<string, Record<string, (value: Any) => boolean>> = {
  session: {},
  "turn.started": { turn: isCount, prompt: isText },
  "turn.resumed": { turn: isCount, n: isCount },
  "turn.claimed": { turn: isCount, n: isCount },
  "turn.suspended": { turn: isCount, reason: isText },
  "turn.ended": { turn: isCount, outcome: isText },
  signal: { signal: isText },
  message: { id: isText, turn: isCount, step: isText, message: (value) => value !== undefined },
  draft: { id: isText, turn: isCount, n: isCount },
  "draft.accepted": { id: isText, turn: isCount, asked: isCount, handle: (value) => value !== undefined },
  patch: { id: isText, metadata: isObject },
  edit: { id: isText, ids: Array.isArray, shown: Array.isArray, reason: isText },
  repair: { turn: isCount, entries: Array.isArray },
  "queue.put": { id: isText, prompt: (value) => value !== undefined },
  "queue.take": { id: isText },
  "turn.keys": { keys: Array.isArray },
  "tool.started": { turn: isCount, call: isText, name: isText },
  "tool.process": { turn: isCount, call: isText, pid: (value) => isCount(value) && value > 0, started: isText },
  "tool.unstarted": { turn: isCount, call: isText, source: isText },
  "tool.ended": { id: isText, turn: isCount, call: isText, name: isText },
  "step.started": { turn: isCount, call: isText, step: isText },
  "step.ended": { turn: isCount, call: isText, step: isText },
  note: { name: isText, value: (value) => value !== undefined },
  state: { name: isText, value: (value) => value !== undefined },
  "turn.prompt": { turn: isCount, prompt: isPrompt },
  epoch: { reason: isText, checkpoint: isObject },
};

/** 10.8, `anthropic`. */
function roleOf(message: Any): string {
  if (!isObject(message)) return "other";
  if (message.role === "user") return blocksOf(message).some(({ type }) => type === "tool_result") ? "tool" : "user";
  return message.role === "assistant" || message.role === "system" ? message.role : "other";
}
function blocksOf(message: Any): Any[] {
  return isObject(message) && Array.isArray(message.content) ? message.content.filter(isObject) : [];
}
type MadeCall = Pick<Called, "id" | "idless" | "by">;
function callsOf(message: Any): MadeCall[] {
  if (roleOf(message) !== "assistant") return [];
  const counts = new Map<string, number>();
  return blocksOf(message).flatMap(({ type, id, name }): MadeCall[] => {
    if (!["tool_use", "server_tool_use", "mcp_tool_use"].includes(type)) return [];
    const by = type === "tool_use" ? ("agent" as const) : ("provider" as const);
    if (isText(id) && id !== "") return [{ id, idless: false, by }];
    const tool = isText(name) ? name : "";
    const n = counts.get(tool) ?? 0;
    counts.set(tool, n + 1);
    return [{ id: `${tool}#${n}`, idless: true, by }];
  });
}
function resultsOf(message: Any): string[] {
  const role = roleOf(message);
  const id = (value: Any): string => (isText(value) ? value : "");
  if (role === "tool")
    return blocksOf(message).flatMap(({ type, tool_use_id }) => (type === "tool_result" ? [id(tool_use_id)] : []));
  if (role !== "assistant") return [];
  return blocksOf(message).flatMap(({ type, tool_use_id }) =>
    isText(type) && type.endsWith("_tool_result") && isText(tool_use_id) ? [tool_use_id] : [],
  );
}
function speaks(message: Any): boolean {
  return blocksOf(message).some(({ type, text }) => type === "text" && isText(text) && text.trim() !== "");
}

const isShown = (item: Item): boolean => !item.hidden && item.late !== true;

/** 10.5, calls and results: the last section of these entries, and the ids of the agent's calls before it. */
function sectionOf(items: readonly Item[]): {
  calls: Called[];
  past: Set<string>;
  assistants: Set<string>;
  isClosed: boolean;
} {
  let calls: Called[] = [];
  let isClosed = false;
  let assistants = new Set<string>();
  const past = new Set<string>();
  for (const [at, item] of items.entries()) {
    if (!isShown(item)) continue;
    const role = roleOf(item.message);
    if (role === "assistant") {
      if (isClosed) {
        for (const { id, by } of calls) if (by === "agent") past.add(id);
        calls = [];
        assistants = new Set();
        isClosed = false;
      }
      assistants.add(item.id);
      for (const [index, call] of callsOf(item.message).entries())
        calls.push({ ...call, at, message: item.id, index, answer: null });
    } else if (role !== "other") isClosed = true;
    const isPlaced = item.call !== undefined && assistants.has(item.call.message);
    for (const [n, id] of resultsOf(item.message).entries()) {
      const call = isPlaced
        ? calls.find(({ message, index }) => n === 0 && message === item.call!.message && index === item.call!.index)
        : answered(calls, id, role === "assistant");
      if (call && !call.answer) call.answer = item;
    }
  }
  return { calls, past, assistants, isClosed };
}

function answered(calls: readonly Called[], id: string, isAssistants: boolean): Called | undefined {
  const open = calls.filter(({ answer }) => !answer);
  if (id !== "") {
    for (const by of ["agent", "provider"]) {
      const same = open.filter((call) => call.id === id && call.by === by);
      const newest = same.at(-1);
      if (newest) return same.find(({ at }) => at === newest.at);
    }
    if (calls.some((call) => call.id === id)) return undefined;
  }
  if (isAssistants) return undefined;
  const agents = open.filter(({ by }) => by === "agent");
  return agents.find(({ idless }) => idless) ?? (id === "" ? agents[0] : undefined);
}

type ReadSteps = { name: string; state: string }[];

interface Writer {
  starts: boolean;
}

interface ReadTurn {
  number: number;
  resumes: number;
  /** The id of its prompt, and what it says. */
  prompt: { id: string; message: Any };
  ended?: Any;
  suspended?: Any;
  signal?: Any;
  writers: Set<Writer>;
  tries: number;
  tried: boolean;
}

export class SessionReader {
  items: Item[] = [];
  queue = new Map<string, Any>();
  /** By key: the digest of the prompt, and its turn, or the id that it waits under in the queue. */
  keys = new Map<string, { digest: string; turn?: number; queued?: string }>();
  #queuedKeys = new Map<string, Any>();
  notes: Record<string, Any> = {};
  state = new Map<string, Any>();
  draft: { id: string; n: number; gap: boolean; parts: Map<number, { text: string; reasoning: string }> } | null = null;
  accepted: { id: string; asked: number; handle: Any; calls: boolean } | null = null;
  turns = 0;
  turn: ReadTurn | null = null;
  #writer: Writer = { starts: false };
  #starts = new Map<string, Start>();
  #strays = new Map<string, Start & { ended: Any }>();
  #over = new Set<string>();
  #early = new Map<string, Any[]>();
  #head = 0;
  #answer: { at: number; step: string | null } | null = null;
  /** Hiding or editing waits to come into force. */
  #isPending = false;
  /** 10.5: of the carried messages of this epoch, `hidden` alone says whether they are shown. */
  #isByFlag = false;

  add(record: Any): void {
    if (this.#head > 0 && record.seq !== this.#head + 1) {
      this.#writer = { starts: false };
      this.turn?.writers.add(this.#writer);
      for (const start of this.#starts.values()) delete start.unstarted;
    }
    this.#head = record.seq;
    if (record.kind === "opened") this.#writer = { starts: record.intents === true };
    if (record.kind === "opened" && this.turn) this.turn.tried = false;
    const needed = NEEDED[record.kind];
    if (!needed || !Object.entries(needed).every(([name, fits]) => fits(record[name]))) return;
    this.#apply(record);
  }

  /** How the last turn came to its end; null if there is none, or it was completed or left. */
  get how(): string | null {
    const { turn } = this;
    if (!turn) return null;
    const { ended, suspended, signal } = turn;
    if (ended?.outcome === "completed" || ended?.outcome === "left") return null;
    if (ended?.outcome === "aborted" || ended?.outcome === "failed") return ended.outcome;
    if (suspended && !ended) {
      if (isTime(suspended.until) && suspended.reason === "hand-over") return "handed-over";
      return "suspended";
    }
    if (signal) return isText(signal.error) ? "failed" : "signal";
    return "killed";
  }

  get open(): ({ id: string; message: string | null; state: string } & Start)[] {
    const recorded = this.turn !== null && [...this.turn.writers].every(({ starts }) => starts);
    const calls = this.turn?.suspended?.calls;
    const waiting: Any[] = Array.isArray(calls) ? calls.filter(isText) : [];
    const open = sectionOf(this.items)
      .calls.filter(({ answer }) => !answer)
      .map(({ id, by, message, index }) => {
        const isLast = this.items.find((item) => item.id === message)!.turn === this.turn?.number;
        const found = this.#starts.get(`${index} ${message}`);
        const start = found?.unstarted === undefined ? found : undefined;
        const isNever = (recorded && isLast) || (found !== undefined && !start);
        const unstarted = waiting.includes(id) ? "awaiting" : isNever ? "never-started" : "unrecorded";
        const state = by === "provider" ? "provider" : start ? "outcome-unknown" : unstarted;
        const said = found && { key: found.key, unstarted: found.unstarted, steps: found.steps };
        const more = start && { process: start.process, probe: start.probe, before: start.before };
        return { id, message, state, ...said, ...more };
      });
    const strays = [...this.#strays].filter(([, { ended }]) => !ended);
    return [
      ...open,
      ...strays.map(([id, { ended: _, ...start }]) => ({ id, message: null, state: "outcome-unknown", ...start })),
    ];
  }

  #try(): void {
    if (!this.turn!.tried) this.turn!.tries += 1;
    this.turn!.tried = true;
  }

  #apply(record: Any): void {
    const { turn } = this;
    const isProgress = record.kind === "tool.ended" || (record.kind === "step.ended" && record.carried !== true);
    if (isProgress && turn?.number === record.turn) turn!.tries = 0;
    switch (record.kind) {
      case "epoch":
        this.#begin(record.checkpoint);
        return;
      case "turn.prompt":
        if (turn?.number === record.turn) turn!.prompt = record.prompt;
        return;
      case "edit":
        this.#edit(record);
        return;
      case "turn.started":
        this.#startTurn(record.turn, record.prompt);
        this.#setKey(record, { turn: record.turn });
        return;
      case "turn.claimed":
        if (turn?.number === record.turn) this.#try();
        return;
      case "turn.resumed":
        if (turn?.number !== record.turn) return;
        this.#try();
        Object.assign(turn!, { resumes: record.n, ended: undefined, suspended: undefined, signal: undefined });
        turn!.writers.add(this.#writer);
        if (this.accepted?.calls) this.#dropAccepted();
        if (this.draft && this.draft.id !== this.accepted?.id) this.#over.add(this.draft.id);
        this.draft = null;
        this.#strays.clear();
        return;
      case "turn.suspended":
        if (turn?.number !== record.turn) return;
        turn!.suspended = record;
        turn!.tried = false;
        turn!.tries = [record.parked, record.attempts].find(isCount) ?? 0;
        return;
      case "turn.ended":
        if (turn?.number !== record.turn || (turn!.ended && record.outcome !== "left")) return;
        turn!.ended = record;
        if (turn!.tried && turn!.tries > 0 && isCutOff(record)) turn!.tries -= 1;
        turn!.tried = false;
        if (record.outcome === "completed" || record.outcome === "left") this.#dropBoth();
        return;
      case "signal":
        if (turn && !turn.ended && turn.writers.has(this.#writer)) turn.signal = record;
        return;
      case "message":
        this.#message(record);
        return;
      case "draft":
        this.#draft(record);
        return;
      case "draft.accepted":
        this.#accept(record);
        return;
      case "tool.started":
        if (record.intents === true) this.#writer.starts = true;
        if (isText(record.message)) {
          const at = `${isCount(record.index) ? record.index : 0} ${record.message}`;
          const { key, steps } = this.#starts.get(at) ?? {};
          this.#starts.set(at, { ...(key === undefined ? {} : { key }), ...startIn(record), steps });
        } else this.#strays.set(record.call, { ended: null, ...startIn(record) });
        return;
      case "tool.unstarted": {
        if (!isText(record.message)) {
          if (this.#strays.get(record.call)?.ended === null) this.#strays.delete(record.call);
          return;
        }
        const start = this.#starts.get(`${isCount(record.index) ? record.index : 0} ${record.message}`);
        if (start) start.unstarted ??= record.source;
        return;
      }
      case "tool.process": {
        const { pid, started } = record;
        const start = this.#startOf(record);
        if (start && start.unstarted === undefined)
          start.process = record.group === true ? { pid, started, group: true } : { pid, started };
        return;
      }
      case "step.started":
      case "step.ended":
        this.#stepped(record);
        return;
      case "tool.ended":
        this.#ended(record);
        return;
      case "repair": {
        const behind = isCount(record.asked) ? this.#setAside(record.asked) : null;
        for (const one of record.entries) {
          if (!isObject(one) || !isText(one.id) || !isText(one.synthetic) || one.message === undefined) continue;
          const call: Place | undefined = isPlace(one.call) ? one.call : undefined;
          const id = this.#freeId(one.id, call);
          if (id === null) continue;
          const { message, synthetic } = one;
          const entry: ReadEntry = { id, turn: record.turn, step: id, message, metadata: {}, synthetic };
          if (one.incomplete === true) entry.incomplete = true;
          if (call) entry.call = call;
          this.#push(entry, "repair");
        }
        this.#dropAccepted();
        if (this.draft && this.#has(this.draft.id)) this.#dropDraft();
        if (!behind) return;
        this.#answer = { at: this.items.length - behind.length, step: null };
        this.items = [...this.items.filter((item) => !behind.includes(item)), ...behind];
        return;
      }
      case "patch": {
        const item = this.items.find(({ id }) => id === record.id);
        if (item && "hiddenFromModel" in record.metadata) this.#isPending = true;
        if (item) item.metadata = merged(item.metadata, record.metadata);
        else this.#early.set(record.id, [...(this.#early.get(record.id) ?? []), record.metadata]);
        return;
      }
      case "queue.put":
        this.queue.set(record.id, record.prompt);
        this.#waits(record);
        return;
      case "turn.keys":
        for (const one of listOf(record.keys, (item) => Array.isArray(item) && isText(item[0]) && isText(item[1])))
          if (isCount(one[2])) this.keys.set(one[0], { digest: one[1], turn: one[2] });
        return;
      case "queue.take": {
        const taken = this.#queuedKeys.get(record.id);
        if (taken && record.withdrawn !== true) this.#setKey(taken, { turn: this.turns });
        else if (taken && this.keys.get(taken.promptKey)?.turn === undefined) this.keys.delete(taken.promptKey);
        this.#queuedKeys.delete(record.id);
        this.queue.delete(record.id);
        return;
      }
      case "note":
        this.notes[record.name] = record.value;
        return;
      case "state":
        if (record.value === null) this.state.delete(record.name);
        else this.state.set(record.name, record.value);
    }
  }

  /** The entries at the end that came since: results without words become late, the others are to stand behind. */
  #setAside(asked: number): Item[] {
    let from = this.items.length;
    while (from > 0 && this.items[from - 1]!.seq > asked && roleOf(this.items[from - 1]!.message) !== "assistant")
      from--;
    const since = this.items.slice(from);
    const isResult = ({ message }: Item): boolean => resultsOf(message).length > 0 && !speaks(message);
    for (const item of since.filter(isResult)) item.late = true;
    return since.filter((item) => !isResult(item));
  }

  #freeId(wanted: string, call: Place | undefined): string | null {
    const taken = this.items.find(({ id }) => id === wanted);
    if (!taken) return wanted;
    const isSame = taken.call?.message === call?.message && taken.call?.index === call?.index;
    const at =
      call && sectionOf(this.items).calls.find((one) => one.message === call.message && one.index === call.index);
    const isOpen = at !== undefined && !at.answer;
    return taken.synthetic !== undefined && isSame && !isOpen ? null : this.#freeId(`${wanted}~`, call);
  }

  /** 10.6: everything before is forgotten. */
  #begin(checkpoint: Any): void {
    this.items = [];
    this.#early.clear();
    this.#over = new Set();
    this.#answer = null;
    this.#isPending = checkpoint.pending === true;
    this.#isByFlag = checkpoint.pending === true;
    this.#writer = { starts: checkpoint.intents === true };
    this.turns = isCount(checkpoint.turns) ? checkpoint.turns : 0;
    this.turn = this.#turnIn(checkpoint.turn);
    const isQueued = (item: Any): boolean =>
      isObject(item) && isText(item.id) && item.prompt !== undefined && isText(item.queuedAt);
    this.queue = new Map(listOf(checkpoint.queue, isQueued).map(({ id, prompt }) => [id, prompt]));
    this.keys.clear();
    this.state.clear();
    this.#queuedKeys.clear();
    for (const item of listOf(checkpoint.queue, isQueued)) this.#waits(item);
    this.notes = isObject(checkpoint.notes) ? { ...checkpoint.notes } : {};
    this.#starts.clear();
    this.#strays.clear();
    const isStart = (item: Any): boolean =>
      isObject(item) && isCount(item.turn) && isText(item.call) && isText(item.name) && isText(item.startedAt);
    for (const item of listOf(checkpoint.started, isStart)) {
      const { call, message, index } = item;
      const start: Start = { ...startIn(item), process: processIn(item.process) };
      if (!isText(message)) this.#strays.set(call, { ended: null, ...start });
      else {
        if (isText(item.unstarted)) start.unstarted = item.unstarted;
        this.#starts.set(`${isCount(index) ? index : 0} ${message}`, start);
      }
    }
    const { draft } = checkpoint;
    this.draft = null;
    this.accepted = null;
    if (
      !isObject(draft) ||
      !isText(draft.id) ||
      !isCount(draft.turn) ||
      !isCount(draft.n) ||
      !Array.isArray(draft.parts)
    )
      return;
    this.draft = { id: draft.id, n: draft.n, gap: draft.gap === true, parts: new Map() };
    this.#addParts(draft.parts);
  }

  #turnIn(saved: Any): ReadTurn | null {
    if (!isObject(saved) || !isCount(saved.number) || !isText(saved.startedAt) || !isText(saved.lastAt)) return null;
    if (!isCount(saved.resumes) || !isPrompt(saved.prompt)) return null;
    const { number, resumes, prompt, ended, suspended, signal } = saved;
    const writers = saved.intents === true ? [this.#writer] : [this.#writer, { starts: false }];
    const tries = isCount(saved.attempts) ? saved.attempts : 0;
    const turn: ReadTurn = { number, resumes, prompt, writers: new Set(writers), tries, tried: saved.tried === true };
    if (isObject(ended) && isText(ended.outcome)) turn.ended = ended;
    if (isObject(suspended) && isText(suspended.reason)) turn.suspended = suspended;
    if (isObject(signal) && isText(signal.signal)) turn.signal = signal;
    return turn;
  }

  /** 10.5, 4. */
  #edit(record: Any): void {
    if (record.now === true) this.#dropAccepted();
    const ids = listOf(record.ids, isText);
    const replaced = this.items.filter(({ id }) => ids.includes(id));
    const place = this.items.findIndex((item) => replaced.includes(item));
    if (place < 0) return;
    const { turn } = this.items[place]!;
    const shown: Item[] = [];
    for (const one of listOf(record.shown, (item) => isObject(item) && isText(item.id) && item.message !== undefined)) {
      if (this.#has(one.id) || shown.some(({ id }) => id === one.id)) continue;
      const { id, message } = one;
      const entry = { id, turn, step: record.id, message, metadata: {}, synthetic: record.reason };
      shown.push({ ...entry, from: "edit", hidden: true, seq: this.#head });
    }
    for (const item of replaced) item.replacedBy = shown[0]?.id ?? record.id;
    this.items.splice(place, 0, ...shown);
    this.#isPending = true;
    if (record.now !== true) return;
    this.#settle();
    // 10.4: what was started for a call of the old message was started for the same call of the new one.
    for (const was of replaced) {
      for (const is of this.items.filter(({ id }) =>
        (record.shown as Any[]).some((one) => isObject(one) && one.id === id),
      )) {
        const free = callsOf(is.message).map(({ id }, index) => ({ id, index }));
        for (const [index, { id }] of callsOf(was.message).entries()) {
          const at = free.findIndex((one) => one.id === id);
          const start = this.#starts.get(`${index} ${was.id}`);
          if (at < 0) continue;
          const [to] = free.splice(at, 1);
          if (!start) continue;
          this.#starts.delete(`${index} ${was.id}`);
          this.#starts.set(`${to!.index} ${is.id}`, start);
        }
      }
    }
  }

  /** 10.5: what was to be hidden, shown or replaced, is so from now on. */
  #settle(): void {
    if (!this.#isPending) return;
    this.#isPending = false;
    const kept = this.items.filter(({ replacedBy }) => replacedBy === undefined);
    const pairs = pairsIn(kept);
    const hidden = new Set(
      this.items
        .filter((item) => item.replacedBy !== undefined || item.metadata.hiddenFromModel === true)
        .map(({ step }) => step),
    );
    for (let before = -1; before !== hidden.size; ) {
      before = hidden.size;
      for (const { caller, answer } of pairs) if (hidden.has(answer.step)) hidden.add(caller.step);
      for (const item of kept) {
        const results = resultsOf(item.message).length;
        const own = pairs.filter(({ answer }) => answer === item);
        const isGone = results > 0 && own.length === results && own.every(({ caller }) => hidden.has(caller.step));
        if (isGone && !speaks(item.message)) hidden.add(item.step);
      }
    }
    for (const item of this.items) item.hidden = hidden.has(item.step);
  }

  #setKey({ promptKey, promptDigest: digest }: Any, place: { turn?: number; queued?: string }): void {
    if (isText(promptKey) && isText(digest)) this.keys.set(promptKey, { digest, ...place });
  }

  #waits(item: Any): void {
    this.#queuedKeys.set(item.id, item);
    if (this.keys.get(item.promptKey)?.turn === undefined) this.#setKey(item, { queued: item.id });
  }

  #startTurn(number: number, prompt: string): void {
    this.#settle();
    this.turns = number;
    const first = { resumes: 0, tries: 0, tried: false, writers: new Set([this.#writer]) };
    this.turn = { number, prompt: { id: prompt, message: null }, ...first };
    this.draft = null;
    this.accepted = null;
    this.#over = new Set();
    this.#starts.clear();
    this.#strays.clear();
  }

  #message(record: Any): void {
    const carried = flag(record.carried);
    if (!carried && record.turn > this.turns) this.#startTurn(record.turn, record.id);
    if (!carried && this.turn?.number === record.turn) this.turn!.tries = 0;
    if (this.#has(record.id)) return;
    if (this.turn?.prompt.id === record.id && this.turn!.number === record.turn) this.turn!.prompt = record;
    const { id, turn, step, message } = record;
    const metadata = isObject(record.metadata) ? record.metadata : {};
    const entry: ReadEntry = { id, turn, step, message, metadata };
    if (isText(record.synthetic)) entry.synthetic = record.synthetic;
    if (record.incomplete === true) entry.incomplete = true;
    if (record.late === true) entry.late = true;
    if (isText(record.replacedBy)) entry.replacedBy = record.replacedBy;
    if (isPlace(record.call)) entry.call = record.call;
    if (record.value !== undefined) entry.value = record.value;
    if (isText(record.source)) entry.source = record.source;
    this.#push(entry, "message", record.hidden === true, carried === true && this.#isByFlag);
    if (carried) return;
    this.turn?.writers.add(this.#writer);
    if (roleOf(message) !== "assistant") return;
    this.#dropBoth();
    for (const [index, call] of callsOf(message).entries()) {
      const stray = call.by === "agent" ? this.#strays.get(call.id) : undefined;
      if (!stray) continue;
      this.#strays.delete(call.id);
      if (stray.ended) this.#ended({ ...stray.ended, message: id, index });
      else {
        const { ended: _, ...start } = stray;
        this.#starts.set(`${index} ${id}`, start);
      }
    }
  }

  #isLate(message: Any): boolean {
    const results = resultsOf(message);
    if (roleOf(message) !== "tool" || results.length === 0 || speaks(message)) return false;
    const { calls, past } = sectionOf(this.items);
    return results.every((id) => {
      const same = calls.filter((call) => call.id === id);
      return same.length > 0 ? same.every(({ answer }) => answer?.from === "repair") : past.has(id);
    });
  }

  #startOf(record: Any): Start | undefined {
    if (isText(record.message))
      return this.#starts.get(`${isCount(record.index) ? record.index : 0} ${record.message}`);
    if (this.#strays.has(record.call)) return this.#strays.get(record.call);
    const { calls } = sectionOf(this.items);
    const open = calls.some(({ id }) => id === record.call) ? openBy(calls, record.call) : undefined;
    return open && this.#starts.get(`${open.index} ${open.message}`);
  }

  #stepped(record: Any): void {
    const start = this.#startOf(record);
    if (!start) return;
    start.steps ??= [];
    const how = isText(record.error) ? "failed" : "finished";
    const state = record.kind === "step.started" ? "unknown" : how;
    const known = start.steps.find(({ name }) => name === record.step);
    if (known) known.state = state;
    else start.steps.push({ name: record.step, state });
  }

  #ended(record: Any): void {
    const isNamed = isText(record.message);
    if (!isNamed && this.#strays.has(record.call)) {
      this.#strays.get(record.call)!.ended = record;
      return;
    }
    const { calls } = sectionOf(this.items);
    const index = isCount(record.index) ? record.index : 0;
    const open = isNamed
      ? undefined
      : calls.some(({ id }) => id === record.call)
        ? openBy(calls, record.call)
        : undefined;
    const place = isNamed ? { message: record.message, index } : open && { message: open.message, index: open.index };
    if (this.#has(record.id)) return;
    const isAt = (one: Called): boolean => one.message === place!.message && one.index === place!.index;
    const call = place && calls.find((one) => one.by === "agent" && isAt(one));
    // There are no words for what it came to: it ran, and that is all.
    if (record.shown === null) {
      const at = place && `${place.index} ${place.message}`;
      const start = at === null || at === undefined ? undefined : this.#starts.get(at);
      if (at && (!start || start.unstarted !== undefined))
        this.#starts.set(at, { ...(start?.key === undefined ? {} : { key: start.key }), steps: start?.steps });
      return;
    }
    const started = place && this.#starts.get(`${place.index} ${place.message}`);
    if (started && started.unstarted === undefined) this.#starts.delete(`${place!.index} ${place!.message}`);
    if (call?.answer?.from === "message") return;
    const message = record.shown === undefined ? PHRASED(call?.id ?? record.call) : record.shown;
    const entry: ReadEntry = { id: record.id, turn: record.turn, step: record.id, message, metadata: {} };
    if (place) entry.call = place;
    if (record.shown !== undefined && record.value !== undefined) entry.value = record.value;
    if (isText(record.source)) entry.source = record.source;
    if (!call || call.answer) entry.late = true;
    // It may have waited for its call.
    this.#push(entry, "result", false, false, record.seq);
  }

  #push(entry: ReadEntry, from: Item["from"], hidden = false, isByFlag = false, seq = this.#head): void {
    if (this.#has(entry.id)) return;
    let { metadata } = entry;
    for (const early of this.#early.get(entry.id) ?? []) metadata = merged(metadata, early);
    const item: Item = { ...entry, metadata, from, hidden, seq };
    if (from === "message") {
      this.#hide(item, isByFlag);
      if (this.#isLate(item.message)) item.late = true;
    }
    if (!item.hidden && item.metadata.hiddenFromModel === true) this.#isPending = true;
    if (from === "message" && (roleOf(item.message) === "assistant" || this.#answer?.step === item.step)) {
      const step = item.step === item.id ? -1 : this.items.findLastIndex((one) => one.step === item.step);
      const answer: { at: number; step: string | null } | null = this.#answer;
      const isAnswer = answer !== null && (answer.step === null || answer.step === item.step);
      const at = isAnswer ? answer.at : step < 0 ? this.items.length : step + 1;
      this.#answer = isAnswer ? { at: at + 1, step: item.step } : null;
      if (isAnswer || at < this.items.length) {
        this.items.splice(at, 0, item);
        return;
      }
    }
    this.#answer = null;
    if (from === "message" && isShown(item)) this.#takeOver(item);
    this.items.push(item);
  }

  /** At once: a message that comes so, and the others of its step that stand beside it. */
  #hide(item: Item, isByFlag: boolean): void {
    const before = this.items.at(-1);
    item.hidden ||= !isByFlag && item.metadata.hiddenFromModel === true;
    item.hidden ||= before?.hidden === true && before.step === item.step;
    for (let at = this.items.length - 1; item.hidden && this.items[at]?.step === item.step; at--)
      this.items[at]!.hidden = true;
  }

  /** It holds results that came from `tool.ended` until now. */
  #takeOver(item: Item): void {
    const isAssistants = roleOf(item.message) === "assistant";
    const { calls: all, assistants, isClosed } = sectionOf(this.items);
    if (item.call && assistants.has(item.call.message)) return;
    const calls = isAssistants && isClosed ? [] : all;
    for (const id of resultsOf(item.message)) {
      const open = answered(calls, id, isAssistants);
      if (open) {
        open.answer = item;
        continue;
      }
      const held = calls.filter((call) => call.answer?.from === "result" && (id === "" || call.id === id));
      const newest = id === "" ? held[0] : held.find(({ at }) => at === held.at(-1)!.at);
      if (!newest) continue;
      this.items.splice(this.items.indexOf(newest.answer!), 1);
      newest.answer = item;
    }
  }

  #draft(record: Any): void {
    if (record.turn < this.turns || this.#has(record.id) || this.#over.has(record.id)) return;
    if (isText(record.discarded)) {
      this.#over.add(record.id);
      if (this.draft?.id === record.id) this.draft = null;
      if (this.accepted?.id === record.id) this.accepted = null;
      return;
    }
    if (this.accepted && this.accepted.id !== record.id) this.#dropAccepted();
    if (this.draft?.id !== record.id) {
      this.#dropDraft();
      this.draft = { id: record.id, n: 0, gap: false, parts: new Map() };
    }
    const draft = this.draft!;
    if (record.n !== draft.n) draft.gap = true;
    draft.n = record.n + 1;
    if (!draft.gap && Array.isArray(record.parts)) this.#addParts(record.parts);
  }

  #accept({ id, turn, asked, handle, calls }: Any): void {
    if (turn < this.turns || this.#has(id) || this.#over.has(id)) return;
    if (this.draft && this.draft.id !== id) this.#dropDraft();
    if (this.accepted && this.accepted.id !== id) this.#dropAccepted();
    this.accepted = { id, asked, handle, calls: calls === true };
  }

  #addParts(parts: readonly Any[]): void {
    const draft = this.draft!;
    for (const one of parts) {
      if (!isObject(one) || !isCount(one.part)) continue;
      const part = draft.parts.get(one.part) ?? { text: "", reasoning: "" };
      if (isText(one.text)) part.text += one.text;
      if (isText(one.reasoning)) part.reasoning += one.reasoning;
      draft.parts.set(one.part, part);
    }
  }

  #dropBoth(): void {
    this.#dropDraft();
    this.#dropAccepted();
  }

  #dropAccepted(): void {
    if (this.accepted) this.#over.add(this.accepted.id);
    this.accepted = null;
  }

  #dropDraft(): void {
    if (this.draft) this.#over.add(this.draft.id);
    this.draft = null;
  }

  #has(id: string): boolean {
    return this.items.some((item) => item.id === id);
  }
}

/** Which entry answers which, over all sections. The results of the provider's calls may stand in a later one. */
function pairsIn(items: readonly Item[]): { caller: Item; answer: Item }[] {
  const pairs: { caller: Item; answer: Item }[] = [];
  let calls: Called[] = [];
  let assistants = new Set<string>();
  let isClosed = false;
  for (const [at, item] of items.entries()) {
    const results = resultsOf(item.message);
    if (item.late && results.length > 0) continue;
    const role = roleOf(item.message);
    if (role === "assistant") {
      if (isClosed) {
        calls = calls.filter(({ by, answer }) => by === "provider" && !answer);
        assistants = new Set();
        isClosed = false;
      }
      assistants.add(item.id);
      for (const [index, call] of callsOf(item.message).entries())
        calls.push({ ...call, at, message: item.id, index, answer: null });
    } else if (role !== "other") isClosed = true;
    const isPlaced = item.call !== undefined && assistants.has(item.call.message);
    for (const [n, id] of results.entries()) {
      const call = isPlaced
        ? calls.find(({ message, index }) => n === 0 && message === item.call!.message && index === item.call!.index)
        : answered(calls, id, role === "assistant");
      if (!call || call.answer) continue;
      call.answer = item;
      pairs.push({ caller: items.find((one) => one.id === call.message)!, answer: item });
    }
  }
  return pairs;
}

/** What a reader keeps of a start (10.4). */
interface Start {
  process?: Any;
  key?: string;
  probe?: true;
  before?: Any;
  unstarted?: string;
  steps?: ReadSteps | undefined;
}

function startIn({ idempotencyKey, probe, before }: Any): Start {
  return {
    ...(isText(idempotencyKey) ? { key: idempotencyKey } : {}),
    ...(probe === true ? { probe } : {}),
    ...(before === undefined ? {} : { before }),
  };
}

function processIn(value: Any): Any {
  if (!isObject(value) || !isCount(value.pid) || value.pid === 0 || !isText(value.started)) return undefined;
  const { pid, started } = value;
  return value.group === true ? { pid, started, group: true } : { pid, started };
}

/** By its id: of several calls, the first of the newest message. The agent's come first. */
function openBy(calls: readonly Called[], id: string): Called | undefined {
  for (const by of ["agent", "provider"]) {
    const same = calls.filter((call) => call.id === id && call.by === by && !call.answer);
    if (same.length > 0) return same.find(({ at }) => at === same.at(-1)!.at);
  }
  return undefined;
}

/** The words are the dialect's to choose. */
function PHRASED(id: string): Any {
  return { role: "user", content: [{ type: "tool_result", tool_use_id: id }] };
}

/** RFC 7396. */
function merged(target: Any, patch: Any): Any {
  if (!isObject(patch)) return patch;
  const result: Any = isObject(target) ? { ...target } : {};
  for (const [name, change] of Object.entries(patch)) {
    if (change === null) delete result[name];
    else result[name] = merged(result[name], change);
  }
  return result;
}

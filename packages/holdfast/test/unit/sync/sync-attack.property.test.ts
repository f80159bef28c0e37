import fc from "fast-check";
import type { Entry, Session } from "holdfast";
import { describe, expect, test } from "vitest";
import { seedOf } from "../../seed.ts";
import { modelVoices, type Voice } from "../dialects/dialect-voices.ts";
import { judges, told } from "../dialects/provider-judges.ts";
import { type Made, Speaker } from "./sync-agents.ts";
import { CrashingStore } from "./sync-crash-disk.ts";

/**
 * R14, P1, P3, P5: agents that do to their array whatever they like: trim, strip, drop, move, repeat, clone, freeze and
 * write into messages, and are killed at any write of the sync that follows. The array is what is recorded, once; what
 * had been acknowledged is there, as it was or as the array has it; and of every tool that ran the result is there, or
 * the interruption names it.
 */
const seed = seedOf(import.meta.url, "unit");

type Kind =
  | "prompt"
  | "call"
  | "result"
  | "answer"
  | "run"
  | "start"
  | "trim"
  | "strip"
  | "strip last"
  | "write"
  | "drop turn"
  | "drop first"
  | "drop last"
  | "move"
  | "repeat"
  | "clone"
  | "freeze"
  | "sum up"
  | "prepend"
  | "steer"
  | "look"
  | "sync"
  | "kill";

interface Command {
  readonly kind: Kind;
  readonly where: number;
}

const grows: Kind[] = ["prompt", "call", "result", "answer", "run", "start", "sync"];
const changes: Kind[] = ["trim", "strip", "strip last", "write", "drop turn", "drop first", "drop last"];
const rare: Kind[] = ["move", "repeat", "clone", "freeze", "sum up", "prepend", "steer", "look"];
const command = fc.record({
  kind: fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...grows) },
    { weight: 6, arbitrary: fc.constantFrom(...changes) },
    { weight: 2, arbitrary: fc.constantFrom(...rare) },
    { weight: 2, arbitrary: fc.constant<Kind>("kill") },
  ),
  where: fc.nat(40),
});

class Agent {
  readonly #voice: Voice;
  readonly #speaker: Speaker;
  readonly #crashing: CrashingStore;
  #session: Session<Made>;
  #array: Made[] = [];
  #count = 0;
  /**
   * Calls whose tool has run, and what it said; null if it runs still. Of those that the array had at the last sync.
   */
  readonly #ran = new Map<string, string | null>();
  /** Calls whose result the array had at a sync. */
  readonly #answered = new Set<string>();
  /** Recorded beside the array, and not in it. */
  #steered: string[] = [];

  constructor(voice: Voice, crashing: CrashingStore, session: Session<Made>) {
    this.#voice = voice;
    this.#speaker = new Speaker(voice);
    this.#crashing = crashing;
    this.#session = session;
  }

  async do({ kind, where }: Command): Promise<void> {
    const { dialect } = this.#voice;
    const array = this.#array;
    const at = array.length === 0 ? 0 : where % array.length;
    const open = this.#open();
    const last = array.at(-1);
    const role = last === undefined ? null : dialect.role(last);
    const { user, says, calls } = this.#speaker;
    switch (kind) {
      case "prompt":
        if (open.length === 0 && role !== "user") array.push(user(`question ${this.#count++ % 4}`));
        return;
      case "call":
        if (role === null || role === "assistant" || open.length > 0) return;
        array.push(...this.#signed(calls(...Array.from({ length: 1 + (where % 2) }, () => `call_${this.#count++}`))));
        return;
      case "result":
        if (open[0] !== undefined) array.push(this.#result(open[0], `result ${this.#count++ % 3}`));
        return;
      case "answer":
        if (role !== null && role !== "assistant" && open.length === 0)
          array.push(...says(`answer ${this.#count++ % 3}`));
        return;
      case "run":
      case "start":
        return this.#run(open, kind === "run");
      case "trim":
        this.#trim(where);
        return;
      case "strip":
        if (array.length > 0) array[at] = { ...array[at], note: this.#count++ };
        return;
      case "strip last":
        if (array.length > 0) array[array.length - 1] = { ...last, note: this.#count++ };
        return;
      case "write":
        if (array.length > 0 && !Object.isFrozen(last)) last.note = this.#count++;
        return;
      case "drop turn":
        this.#dropTurn(at);
        return;
      case "drop first":
        array.splice(0, where % 4);
        return;
      case "drop last":
        array.splice(array.length - (where % 3));
        return;
      case "move":
        if (array.length > 2) array.push(...array.splice(at, 1));
        return;
      case "repeat":
        if (array.length > 0) array.push(where % 2 ? array[at] : structuredClone(array[at]));
        return;
      case "clone":
        this.#array = structuredClone(array);
        return;
      case "freeze":
        for (const message of array) Object.freeze(message);
        return;
      case "sum up":
        if (array.length > 4) this.#array = [user("in short"), ...array.slice(-(1 + (where % 4)))];
        return;
      case "prepend":
        array.unshift(user(`before ${this.#count++}`));
        return;
      case "steer":
        return this.#steer();
      case "look":
        expect(this.#session.messages.length).toBeGreaterThanOrEqual(0);
        return;
      case "sync":
        return this.#sync();
      case "kill":
        return this.#kill(where);
    }
  }

  /** Of calls that came without an id it is not known which is meant: ids may repeat here, once messages have. */
  #result(id: string, text: string): Made {
    return this.#speaker.result(id, text);
  }

  /** Gemini wants its own calls signed. */
  #signed(step: Made[]): Made[] {
    const { name } = this.#voice.dialect;
    return name === "gemini" ? (judges[name]!.signed(step, []) as Made[]) : step;
  }

  /** Calls in the array that have no result in it. */
  #open(): string[] {
    const { dialect } = this.#voice;
    const answered = new Set(this.#array.flatMap((message) => dialect.results(message).map(({ call }) => call)));
    const made = this.#array.flatMap((message) => dialect.calls(message).map(({ id }) => id));
    return made.filter((id) => !answered.has(id));
  }

  async #run(open: string[], isEnded: boolean): Promise<void> {
    await this.#sync();
    const { turn } = this.#session;
    const id = open.find((one) => !this.#ran.has(one));
    if (!turn || id === undefined) return;
    try {
      if (isEnded) await turn.tool(id, () => `outcome of ${id}`);
      else await turn.toolStarted(id);
      this.#ran.set(id, isEnded ? `outcome of ${id}` : null);
    } catch (error) {
      // The array has torn the call from the live end.
      expect(error).toMatchObject({ code: expect.stringMatching(/^CALL_(UNKNOWN|TAKEN)$/) });
    }
  }

  #trim(where: number): void {
    const { dialect } = this.#voice;
    const results = [...this.#array.keys()].filter((at) => dialect.results(this.#array[at]).length === 1);
    const at = results[where % Math.max(1, results.length)];
    if (at === undefined) return;
    const [{ call }] = dialect.results(this.#array[at]) as [{ call: string }];
    this.#array[at] = this.#result(call, `trimmed ${this.#count++ % 3}`);
  }

  #dropTurn(at: number): void {
    const { dialect } = this.#voice;
    const isPrompt = (message: Made): boolean => dialect.role(message) === "user";
    let from = at;
    while (from > 0 && !isPrompt(this.#array[from])) from -= 1;
    let to = from + 1;
    while (to < this.#array.length && !isPrompt(this.#array[to])) to += 1;
    if (to < this.#array.length) this.#array.splice(from, to - from);
  }

  async #steer(): Promise<void> {
    const { turn } = this.#session;
    if (!turn) return;
    const text = `steer ${this.#count++}`;
    await turn.append(this.#speaker.user(text));
    this.#steered.push(text);
  }

  async #sync(): Promise<void> {
    try {
      await this.#session.sync(this.#array, { rewrite: "epoch" });
    } catch (error) {
      this.#mend(error);
      return;
    }
    for (const message of this.#array)
      for (const { call } of this.#voice.dialect.results(message)) this.#answered.add(call);
    this.check(this.#session);
    expect(await this.#session.sync(this.#array, { rewrite: "error" })).toEqual({ appended: [], epoch: false });
  }

  /** Only a tool that runs, and whose call the array has dropped, may keep it from being recorded. */
  #mend(error: unknown): void {
    expect(error).toMatchObject({ code: "CALLS_OPEN" });
    this.#array = [...this.#session.messages];
  }

  async #kill(where: number): Promise<void> {
    const before = structuredClone(shown(this.#session.entries));
    let isSynced = true;
    const found = await this.#crashing.killedIn(this.#session, () =>
      this.#session.sync(this.#array, { rewrite: "epoch" }).catch((error) => {
        isSynced = false;
        this.#mend(error);
      }),
    );
    for (const killed of found) {
      this.#judge(killed);
      const has = shown(killed.entries);
      const isOld = this.#equal(has, before);
      // What was recorded beside the array stays: steering, and outcomes that no message holds.
      const isGiven = (message: Made): boolean =>
        !isMadeUp(message) && !isOutcome(message) && !this.#steered.includes(this.#voice.dialect.text(message));
      const made = this.#array.filter(isGiven);
      const isNew =
        [false, true].some((withLate) => {
          const now = shown(killed.entries, withLate).filter(isGiven);
          return this.#equal(now, made.slice(0, now.length));
        }) || this.#isShown(killed);
      expect(
        isOld || isNew || !isSynced,
        `${JSON.stringify(has)}\nwas ${JSON.stringify(before)}\nis ${JSON.stringify(this.#array)}`,
      ).toBe(true);
      this.#expectTools(killed);
    }
    this.#session = found[where % found.length]!;
    this.#steered = [];
    for (const [id, outcome] of this.#ran) if (outcome === null) this.#ran.set(id, "");
    // It goes on with its own array, or with what was recorded.
    this.#array = where % 3 === 0 ? structuredClone(shown(this.#session.entries)) : [...this.#session.messages];
    if (where % 3 === 0) await this.#sync();
  }

  check(session: Session<Made>): void {
    this.#judge(session);
    const isGiven = (message: Made): boolean => !this.#steered.includes(this.#voice.dialect.text(message));
    const has = shown(session.entries).filter(isGiven);
    const made = this.#array.filter(isGiven);
    if (session.turn || session.interruption === null) {
      // A result that the array has moved behind the next answer is recorded as late. An outcome that no message held
      // is a message after a rewrite.
      const withLate = shown(session.entries, true).filter(isGiven);
      const isRecorded =
        this.#equal(has, this.#withoutWaiting(made)) ||
        this.#equal(withLate, made) ||
        this.#equal(without(has, isOutcome), without(made, isOutcome)) ||
        this.#isShown(session);
      expect(isRecorded, `${JSON.stringify(has)}\nis not ${JSON.stringify(made)}`).toBe(true);
    }
    this.#expectTools(session);
  }

  /** Messages at the end that wait for a prompt are not recorded yet. */
  #withoutWaiting(array: Made[]): Made[] {
    const count = shown(this.#session.entries).length + array.filter(isMadeUp).length;
    return array.length > count && this.#session.turn === null ? array.slice(0, count) : array;
  }

  #judge(session: Session<Made>): void {
    const { dialect, user } = this.#voice;
    const view = session.messages;
    const isPrompted = view.length > 0 && dialect.role(view.at(-1)) !== "assistant";
    const judge = judges[dialect.name]!;
    expect(told(judge.judge(isPrompted ? view : [...view, user("and now?")]))).toBe("");
  }

  /** Of the calls that are recorded and whose tool has run. */
  #expectTools(session: Session<Made>): void {
    const { dialect } = this.#voice;
    const entries = session.entries.filter(({ replacedBy }) => replacedBy === undefined);
    const made = entries.flatMap(({ message }) => dialect.calls(message).map(({ id }) => id));
    const answered = entries.flatMap(({ message, synthetic }) =>
      synthetic === undefined || synthetic === "changed by the application"
        ? dialect.results(message).map(({ call }) => call)
        : [],
    );
    const named = session.interruption?.calls.map(({ id }) => id) ?? session.turn?.open.map(({ id }) => id) ?? [];
    const states = session.interruption?.calls ?? [];
    const open = this.#open();
    for (const [id, outcome] of this.#ran) {
      // The application took back the result that it had given.
      if (this.#answered.has(id) && open.includes(id)) continue;
      // Where messages were repeated or moved, the same call may stand in several places.
      if (made.filter((one) => one === id).length !== 1) continue;
      const closed = entries.some(
        ({ message, synthetic }) => synthetic !== undefined && dialect.results(message).some(({ call }) => call === id),
      );
      const isKnown =
        answered.includes(id) || closed || named.includes(id) || (outcome === null && session.turn !== null);
      expect(isKnown, `${id} ${outcome}: ${JSON.stringify(entries)}`).toBe(true);
      const state = states.find((one) => one.id === id)?.state;
      if (state !== undefined) expect(`${id} ${state}`).toBe(`${id} outcome-unknown`);
    }
  }

  /** The model sees the array: it may hold what a view joined, or an outcome that no message holds. */
  #isShown({ messages, entries }: Session<Made>): boolean {
    // What was signed may be sent in another way behind a change.
    return [null, "0"].some((changedAt) => {
      const wanted = this.#view(this.#array, changedAt);
      return this.#equal(messages, wanted) || this.#equal(this.#view(shown(entries), changedAt), wanted);
    });
  }

  /** What the model is shown of these messages. */
  #view(messages: readonly Made[], changedAt: string | null): Made[] {
    const { dialect } = this.#voice;
    let step = 0;
    const entries = messages.map((message, at): Entry<Made> => {
      if (at > 0 && !(dialect.role(message) === "assistant" && dialect.role(messages[at - 1]!) === "assistant"))
        step += 1;
      return { id: `${at}`, seq: at, at: "", turn: 0, step: `${step}`, message, metadata: {} };
    });
    return dialect.arrange(entries, { changedAt, next: "model" }) as Made[];
  }

  #equal(recorded: readonly Made[], array: readonly Made[]): boolean {
    const [has, wanted] = [recorded, array].map((list) => list.filter((message) => !isMadeUp(message))) as [
      Made[],
      Made[],
    ];
    const { dialect } = this.#voice;
    // A view leaves out the ids of items whose past has changed, and members that the API does not know; an agent may
    // go on with what a view shows.
    const bare = (message: Made): Made => {
      if (dialect.name === "openai-responses") return withoutId(message);
      return dialect.name === "anthropic" || dialect.name === "gemini" ? withoutNote(message) : message;
    };
    return has.length === wanted.length && has.every((message, at) => dialect.same(bare(message), bare(wanted[at])));
  }
}

/** A result in Holdfast's own words: a view has it, and with it the array of an agent that went on with a view. */
function isMadeUp(message: Made): boolean {
  return /"(Error: )?(Not run|No result was recorded|Started, then|Was running|Still running)/.test(
    JSON.stringify(message),
  );
}

function without(messages: readonly Made[], is: (message: Made) => boolean): Made[] {
  return messages.filter((message) => !is(message));
}

/** What `turn.tool` recorded. */
function isOutcome(message: Made): boolean {
  return /"outcome of /.test(JSON.stringify(message));
}

function withoutId({ id: _id, ...rest }: Made): Made {
  return rest;
}

function withoutNote({ note: _note, ...rest }: Made): Made {
  return rest;
}

/**
 * What the application has said, in its own words: without what it has changed or left out, what was made up, and
 * outcomes that no message holds.
 */
function shown(entries: readonly Entry<Made>[], withLate = false): Made[] {
  const isMade = (synthetic: string | undefined): boolean =>
    synthetic !== undefined && synthetic !== "changed by the application";
  return entries
    .filter(({ replacedBy, synthetic, call }) => replacedBy === undefined && !isMade(synthetic) && !call)
    .filter(({ late }) => withLate || !late)
    .map(({ message }) => message);
}

describe.each(modelVoices.map((voice) => [voice.dialect.name, voice] as const))("%s", (_name, voice) => {
  test("whatever an agent does to its array, and whenever it is killed", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 40 }), async (commands) => {
        await using crashing = new CrashingStore();
        const agent = new Agent(voice, crashing, await crashing.create(voice));
        for (const one of commands) await agent.do(one);
      }),
      { seed, numRuns: 20 * Number(process.env["HOLDFAST_EFFORT"] ?? 1) },
    );
  });
});

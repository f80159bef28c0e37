import fc from "fast-check";
import type { Session } from "holdfast";
import { describe, expect, test } from "vitest";
import { seedOf } from "../../seed.ts";
import { entry } from "../dialects/dialect-conversations.ts";
import type { Voice } from "../dialects/dialect-voices.ts";
import { judged, type Made, marked, Speaker, said, signed, spoken, World } from "./sync-agents.ts";

/**
 * An agent that keeps an array, syncs it at any moment and in any condition (clones, cache marks that moved, a message
 * that still grows), and is killed at any moment. Whatever was synced is there, once; and what is shown is accepted by
 * the provider, signatures over what the model was asked with included.
 */
const seed = seedOf(import.meta.url, "unit");

type Condition = "same" | "copied" | "cloned" | "marked";
type Command =
  | { readonly kind: "prompt" | "system" | "tool" | "abort" | "compact" | "rewind" }
  | {
      readonly kind: "model";
      readonly reasons: boolean;
      readonly says: string | null;
      readonly calls: number;
      readonly pieces: number;
    }
  | { readonly kind: "sync"; readonly condition: Condition }
  | { readonly kind: "kill"; readonly loads: "view" | "own"; readonly condition: Condition };

const condition = fc.constantFrom<Condition>("same", "copied", "cloned", "marked");
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constantFrom("prompt" as const, "prompt" as const, "system" as const) }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("tool" as const) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("model" as const),
      reasons: fc.boolean(),
      says: fc.constantFrom(null, "yes", "yes", "no, and here is why"),
      calls: fc.nat(3),
      pieces: fc.nat(2),
    }),
  },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("sync" as const), condition }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("kill" as const),
      loads: fc.constantFrom("view" as const, "own" as const),
      condition,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom("abort" as const, "compact" as const, "rewind" as const) }),
  },
);

class Agent {
  readonly #voice: Voice;
  readonly #speaker: Speaker;
  readonly #world: World;
  #session: Session<Made>;
  #array: Made[] = [];
  /** The array as of the last sync, as an agent that stores it would have it. */
  #stored: Made[] = [];
  /** What was said and synced, and what was said since. */
  #truth: Made[] = [];
  #pending: Made[] = [];
  /** A rewrite that is not synced yet. */
  #rewritten: Made[] | null = null;
  readonly #steps: Made[][] = [];
  #calls = 0;

  constructor(voice: Voice, world: World, session: Session<Made>) {
    this.#voice = voice;
    this.#speaker = new Speaker(voice);
    this.#world = world;
    this.#session = session;
  }

  async do(command: Command): Promise<void> {
    const { dialect } = this.#voice;
    const last = this.#array.at(-1);
    const role = last === undefined ? null : dialect.role(last);
    const open = this.#open();
    switch (command.kind) {
      case "prompt":
        if (open.length === 0) this.#say([this.#speaker.user(`question ${this.#calls++ % 3}`)]);
        return;
      case "system":
        // It stands where every provider takes it: at the very beginning.
        if (this.#array.length === 0) this.#say([this.#speaker.system("be kind"), this.#speaker.user("hello")]);
        return;
      case "tool":
        if (open[0] !== undefined) this.#say([this.#speaker.result(open[0], `result ${this.#calls++ % 2}`)]);
        return;
      case "model":
        if (role === "assistant" || role === null || open.length > 0) return;
        return this.#ask(command);
      case "sync":
        return this.#sync(command.condition);
      case "kill":
        return this.#die(command.loads, command.condition);
      case "abort":
        await this.#session.turn?.abort({ by: "user" });
        return;
      case "compact":
        if (role !== "user" || this.#array.length < 3) return;
        // A prompt that was asked before in the same words would make it an edit of the first message.
        if (this.#array.slice(0, -1).some((message) => dialect.same(message, last))) return;
        return this.#rewrite([this.#speaker.user("in short: …"), last]);
      case "rewind": {
        const prompt = this.#array.findLastIndex((message) => dialect.role(message) === "user");
        // What was made up for the provider before it stays with its calls.
        if (prompt > 0 && dialect.role(this.#array[prompt - 1]) === "assistant" && this.#pending.length === 0) {
          const isPlain = this.#array.every((message, at) => dialect.same(message, this.#truth[at]));
          if (isPlain) this.#rewrite(this.#array.slice(0, prompt));
        }
      }
    }
  }

  check(): void {
    const { dialect } = this.#voice;
    const recorded = said(this.#session.entries);
    expect(recorded.length).toBe(this.#truth.length);
    for (const [at, message] of recorded.entries())
      expect(dialect.same(message, this.#truth[at]), `message ${at}`).toBe(true);
    expect(judged(this.#voice, this.#session.messages, this.#steps)).toEqual([]);
  }

  #say(messages: Made[]): void {
    this.#array.push(...messages);
    this.#pending.push(...messages);
  }

  /** Calls in the array that have no result in it. */
  #open(): string[] {
    const { dialect } = this.#voice;
    const answered = new Set(this.#array.flatMap((message) => dialect.results(message).map(({ call }) => call)));
    return this.#array
      .flatMap((message) => dialect.calls(message).map(({ id }) => id))
      .filter((id) => !answered.has(id));
  }

  /** The request is the array, as its provider reads it: neighbours of one role joined. */
  async #ask({ reasons, says, calls, pieces }: Extract<Command, { kind: "model" }>): Promise<void> {
    const request = this.#voice.dialect.arrange(this.#array.map((message, at) => entry(message, at)) as Made, {
      changedAt: null,
      next: "model",
    });
    const ids = Array.from({ length: calls }, () => `call_${this.#calls++}`);
    const text = says === null && calls === 0 ? "well" : says;
    const made = this.#speaker.step({
      reasoning: reasons ? "signed" : "none",
      text,
      calls: ids.map((id) => ({ id, name: "read", input: "whole" as const })),
    });
    for (let piece = 1; piece <= pieces && text !== null; piece++) {
      const grown = this.#speaker.says(text.slice(0, Math.ceil((text.length * piece) / (pieces + 1))));
      // The first sync of a process that drops something has to say that this is meant.
      const rewrite = this.#rewritten ? "epoch" : "error";
      await this.#session.sync([...this.#array, ...grown], { open: true, rewrite });
      this.#synced();
      this.check();
    }
    const step = signed(this.#voice, made, request);
    this.#steps.push(step);
    this.#say(step);
  }

  async #sync(how: Condition): Promise<void> {
    this.#array = this.#in(how, this.#array);
    const { epoch } = await this.#session.sync(this.#array, { rewrite: this.#rewritten ? "epoch" : "error" });
    expect(epoch).toBe(this.#rewritten !== null && this.#truth.length > 0);
    this.#synced();
    this.check();
    expect(await this.#session.sync(this.#array, { rewrite: "error" })).toEqual({ appended: [], epoch: false });
  }

  #synced(): void {
    this.#truth = [...(this.#rewritten ?? this.#truth), ...this.#pending];
    this.#rewritten = null;
    this.#pending = [];
    this.#stored = structuredClone(this.#array);
  }

  #rewrite(array: Made[]): void {
    this.#array = array;
    this.#rewritten = [...array];
    this.#pending = [];
  }

  async #die(loads: "view" | "own", how: Condition): Promise<void> {
    await this.#session.flush();
    this.#session = await this.#world.kill(this.#session);
    this.#pending = [];
    this.#rewritten = null;
    this.check();
    this.#array = this.#in(how, loads === "view" ? [...this.#session.messages] : structuredClone(this.#stored));
  }

  #in(how: Condition, array: Made[]): Made[] {
    if (how === "same") return array;
    if (how === "copied") return [...array];
    const clones = structuredClone(array);
    if (how === "marked" && clones.length > 0) clones.push(marked(this.#voice, clones.pop()));
    return clones;
  }
}

describe.each(spoken)("%s", (_name, voice) => {
  test("R14, P1, P4: synced at any moment and killed at any moment, nothing is lost, nothing is there twice, and the provider accepts it", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { minLength: 5, maxLength: 40 }), async (commands) => {
        await using world = new World();
        const agent = new Agent(voice, world, await world.create(voice));
        for (const command of commands) await agent.do(command);
      }),
      { seed, numRuns: 60 * Number(process.env["HOLDFAST_EFFORT"] ?? 1) },
    );
  });
});

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { validateAnthropic } from "@holdfast/testkit";
import { folderPoints, type KillPoint, programBeside, temporaryPlace, Victim } from "@holdfast/testkit/internal/kill";
import { type AnthropicMessage, openStore, type Reading, type Session } from "holdfast";
import { openJournalStore } from "holdfast/store";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Job, Said } from "./session-agent.ts";

type M = AnthropicMessage;

/**
 * Agents that say where they stand, and are killed there with SIGKILL; then the session is looked at, and goes on, here
 * or in another process.
 */
const program = programBeside(import.meta.url, "session-agent");
const caches = temporaryPlace();
const spawn = { env: { NODE_COMPILE_CACHE: join(caches.path, "compile-cache") } };

beforeAll(async () => {
  // Node keeps what it compiled only when a process ends in order.
  await new Victim<Said>(program, { script: "none" } satisfies Partial<Job>, spawn).died;
});
afterAll(() => caches[Symbol.dispose]());

/** A store of its own for one test, with agents that work in it. */
function laboratory(module: "folder" | "sqlite") {
  const place = temporaryPlace();
  const address = module === "sqlite" ? `sqlite:${join(place.path, "store.sqlite")}` : join(place.path, "store");
  const effects = join(place.path, "effects");
  return {
    address,
    /** Runs a script until it stands where it is to be killed, and kills it there. Answers the session. */
    async kill(script: Job["script"], session?: string): Promise<string> {
      await using agent = new Victim<Said>(
        program,
        { script, address, effects, ...(session ? { session } : {}) },
        spawn,
      );
      await agent.until("at");
      agent.kill();
      expect((await agent.died).signal).toBe("SIGKILL");
      return agent.events.find((said) => said.e === "opened")!.session;
    },
    /** Lives through replacements until the time has come; answers the last one that was acknowledged. */
    async killReplacing(until: { readonly point: KillPoint } | { readonly us: number }) {
      const point = "point" in until ? { point: until.point } : {};
      await using agent = new Victim<Said>(program, { script: "replaces", address, effects, ...point }, spawn);
      const { session } = await agent.until("opened");
      if ("point" in until) await agent.until("at");
      else {
        await agent.until("replaced", ({ generation }) => generation === 3);
        await new Promise((resolve) => setTimeout(resolve, until.us / 1000));
      }
      agent.kill();
      await agent.died;
      const told = agent.events.findLast((said) => said.e === "replaced");
      return { session, generation: told?.e === "replaced" ? told.generation : 0 };
    },
    /** The calls whose tools have had their effect. */
    ran: (): string[] => (existsSync(effects) ? readFileSync(effects, "utf8").split("\n").slice(0, -1) : []),
    async read(session: string): Promise<Reading<M>> {
      await using store = await openStore(address, { recordsToolStarts: true });
      return store.read<M>(session);
    },
    async open(session: string): Promise<{ readonly session: Session<M> } & AsyncDisposable> {
      const store = await openStore(address, { recordsToolStarts: true });
      return {
        session: await store.resume<M>(session),
        [Symbol.asyncDispose]: () => store.close(),
      };
    },
    async kinds(session: string): Promise<string[]> {
      await using journals = await openJournalStore(address);
      return Array.fromAsync(journals.history(session), ({ kind }) => kind);
    },
    [Symbol.dispose]: () => place[Symbol.dispose](),
  };
}

const user = (text: string): M => ({ role: "user", content: text });
const textOf = (value: unknown): string => JSON.stringify(value);
/** How often words are said. */
const times = (value: unknown, words: string): number => textOf(value).split(words).length - 1;
const accepts = (messages: readonly M[]): void => expect(validateAnthropic(messages)).toEqual([]);

describe.each(["folder", "sqlite"] as const)("%s: killed in the middle of a turn", (module) => {
  test.concurrent("C2: what had been shown for longer than draftMs comes back, marked incomplete", async () => {
    using lab = laboratory(module);
    const id = await lab.kill("streams");
    const { interruption } = await lab.read(id);
    expect(interruption).toMatchObject({ how: { kind: "killed" }, draft: { gap: false }, answered: false });
    expect(interruption!.draft!.text).toMatch(/^words that were shown/);
    await using opened = await lab.open(id);
    const { session } = opened;
    await session.startTurn(user("go on"));
    expect(session.entries.filter(({ incomplete }) => incomplete)).toMatchObject([{ synthetic: "draft" }]);
    expect(times(session.messages, "words that were shown")).toBe(1);
    accepts(session.messages);
  });

  test.concurrent("C36: a stream that failed and was retried: the failed attempt's words never come back", async () => {
    using lab = laboratory(module);
    for (const [script, text] of [
      ["retries", "right words"],
      ["retriesInSilence", null],
    ] as const) {
      const id = await lab.kill(script);
      expect((await lab.read(id)).interruption?.draft?.text ?? null).toBe(text);
      await using opened = await lab.open(id);
      const { session } = opened;
      await session.startTurn(user("go on"));
      expect(times(session.messages, "wrong words")).toBe(0);
      expect(times(session.messages, "right words")).toBe(text === null ? 0 : 1);
      expect(await lab.kinds(id)).toContain("draft");
      accepts(session.messages);
    }
  });

  test.concurrent("C3: three parallel calls, the third hangs: two results, one of unknown outcome, and the provider accepts it", async () => {
    using lab = laboratory(module);
    const id = await lab.kill("runsThree");
    const { interruption, messages } = await lab.read(id);
    expect(interruption!.calls).toMatchObject([{ id: "c", state: "outcome-unknown" }]);
    expect(times(messages, "a is done")).toBe(1);
    expect(times(messages, "b is done")).toBe(1);
    accepts(messages);
    await using opened = await lab.open(id);
    const { session } = opened;
    await session.startTurn(user("go on"));
    expect(textOf(session.messages)).toMatch(/a is done.*b is done.*Started, then the process died: outcome unknown/);
    accepts(session.messages);
  });

  test.concurrent("C4: killed between a tool's effect and its result: resuming does not run it again", async () => {
    using lab = laboratory(module);
    const id = await lab.kill("actsAndDies");
    expect(lab.ran()).toEqual(["once"]);
    expect((await lab.read(id)).interruption!.calls).toMatchObject([
      { id: "once", state: "outcome-unknown" },
      { id: "later", state: "never-started" },
    ]);
    // What never started is run, by a process that runs all that it is given.
    await lab.kill("reruns", id);
    expect(lab.ran()).toEqual(["once", "later"]);
    const { messages } = await lab.read(id);
    expect(textOf(messages)).toMatch(/outcome unknown.*later is done/);
    accepts(messages);
  });

  test.concurrent("C5: killed before the model answered: the prompt is there, and goes on without being typed again", async () => {
    using lab = laboratory(module);
    const id = await lab.kill("waitsForTheModel");
    const { interruption, messages } = await lab.read(id);
    expect(interruption).toMatchObject({ turn: 1, answered: false, draft: null, calls: [], resumes: 0 });
    expect(interruption!.prompt.message).toEqual(user("a long question"));
    await using opened = await lab.open(id);
    await opened.session.resumeTurn();
    // The request is the one that died.
    expect(opened.session.messages).toEqual(messages);
    expect(messages).toEqual([user("a long question")]);
  });

  test.concurrent("C10: killed before the first answer, or before the first prompt: listed, and resumed", async () => {
    using lab = laboratory(module);
    const asked = await lab.kill("waitsForTheModel");
    const made = await lab.kill("isCreated");
    await using store = await openStore(lab.address, { recordsToolStarts: true });
    const { sessions } = await store.list();
    expect(sessions).toMatchObject([{ id: asked, status: "interrupted", turns: 1, title: "a long question" }]);
    expect((await store.list({ empty: true })).sessions.map(({ id }) => id).sort()).toEqual([asked, made].sort());
    for (const id of [asked, made]) {
      const session = await store.resume<M>(id);
      await session.startTurn(user("hello again"));
      expect(times(session.messages, "hello again")).toBe(1);
      accepts(session.messages);
    }
  });

  test.concurrent("C9: prompts that were queued are there, in order, and are delivered once", async () => {
    using lab = laboratory(module);
    const id = await lab.kill("queues");
    const textsOf = ({ queue }: Reading<M>): unknown[] => queue.map(({ prompt }) => prompt.content);
    const before = await lab.read(id);
    expect(textsOf(before)).toEqual(["third", "fourth"]);
    expect(times(before.messages, "second")).toBe(1);
    await lab.kill("delivers", id);
    const after = await lab.read(id);
    expect(textsOf(after)).toEqual(["fourth"]);
    expect(times(after.messages, "third")).toBe(1);
    expect(after.interruption!.prompt.message).toEqual(user("third"));
    accepts(after.messages);
  });

  test.concurrent("C37: a call that waits for approval over a restart runs once if approved", async () => {
    using lab = laboratory(module);
    const id = await lab.kill("asksForApproval");
    const { interruption } = await lab.read(id);
    expect(interruption).toMatchObject({
      how: { kind: "suspended", reason: "approval" },
      calls: [{ id: "guarded", state: "awaiting" }],
    });
    {
      await using store = await openStore(lab.address, { recordsToolStarts: true });
      expect((await store.list()).sessions).toMatchObject([{ id, status: "waiting" }]);
    }
    await lab.kill("isApprovedAndEnds", id);
    expect(lab.ran()).toEqual(["guarded"]);
    const { messages } = await lab.read(id);
    expect(times(messages, "guarded is done")).toBe(1);
    accepts(messages);
  });

  test.concurrent("C37: approved, and killed while it ran: nobody runs it again", async () => {
    using lab = laboratory(module);
    const id = await lab.kill("asksForApproval");
    await lab.kill("isApproved", id);
    expect((await lab.read(id)).interruption!.calls).toMatchObject([{ id: "guarded", state: "outcome-unknown" }]);
    await lab.kill("reruns", id);
    expect(lab.ran()).toEqual(["guarded"]);
    accepts((await lab.read(id)).messages);
  });

  test.concurrent("C37: not approved, it never runs", async () => {
    using lab = laboratory(module);
    const id = await lab.kill("asksForApproval");
    await lab.kill("waitsForTheModel", id);
    await lab.kill("reruns", id);
    expect(lab.ran()).toEqual([]);
    const { messages } = await lab.read(id);
    expect(times(messages, "This call was not approved, and did not run.")).toBe(1);
    accepts(messages);
  });

  test.concurrent("C38: compaction in mid-turn: open turn, queue, title, usage, notes and ids are all there", async () => {
    using lab = laboratory(module);
    const id = await lab.kill("compactsInMidTurn");
    const reading = await lab.read(id);
    expect(reading.attributes).toMatchObject({ title: "kept title", notes: { plan: { step: 3 } } });
    expect(reading.usage).toMatchObject({ inputTokens: 15 });
    expect(reading.queue).toMatchObject([{ id: "later", prompt: user("later") }]);
    expect(reading.interruption).toMatchObject({
      turn: 2,
      how: { kind: "killed" },
      prompt: { id: "now", metadata: { pinned: true } },
      calls: [{ id: "b", message: "calls", state: "outcome-unknown" }],
    });
    expect(reading.entries.map((entry) => entry.id)).toEqual(expect.arrayContaining(["now", "calls"]));
    expect(reading.entries.map((entry) => entry.id)).not.toContain("old");
    expect(textOf(reading.messages)).toMatch(/summary.*now.*a is done/);
    accepts(reading.messages);
    await using opened = await lab.open(id);
    const turn = await opened.session.resumeTurn();
    expect(turn.number).toBe(2);
    accepts(opened.session.messages);
  });
});

describe("C7: killed in the middle of a replacement: the old conversation or the new one", () => {
  /** All of one generation: the last one that was acknowledged, or the one that was on its way. */
  async function oneOrTheOther(lab: ReturnType<typeof laboratory>, until: Parameters<typeof lab.killReplacing>[0]) {
    const { session, generation } = await lab.killReplacing(until);
    const { entries } = await lab.read(session);
    const found = entries.map(({ message }) => String(message.content).split(" ").slice(0, 2).map(Number));
    const [shown] = found[0] ?? [0];
    expect([generation, generation + 1]).toContain(shown);
    expect(found).toEqual(shown === 0 ? [] : Array.from({ length: 6 }, (_, n) => [shown, n]));
    await using opened = await lab.open(session);
    await opened.session.startTurn(user("and now?"));
    expect(opened.session.entries).toHaveLength(found.length + 1);
    accepts(opened.session.messages);
    return { generation, shown };
  }

  // Of the fourth segment: the first was born with the session.
  const points = folderPoints
    .filter(({ name }) => /new epoch|temporary file/.test(name))
    .map((point) => ({ ...point, nth: 4 }));
  test.concurrent.each(points)("folder: $name", async (point) => {
    using lab = laboratory("folder");
    const { generation, shown } = await oneOrTheOther(lab, { point });
    // Behind the rename it is there, in front of it it is not.
    if (point.name === "before the rename of a new epoch") expect(shown).toBe(generation);
    if (point.name === "after the rename of a new epoch") expect(shown).toBe(generation + 1);
  });

  test.concurrent.each([0, 700, 1900, 3300, 5100])("sqlite: %i µs after a replacement", async (us) => {
    using lab = laboratory("sqlite");
    await oneOrTheOther(lab, { us });
  });
});

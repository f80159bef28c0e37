import { appendFileSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type AnthropicMessage,
  isHoldfastError,
  openStore,
  type Probe,
  type ProbeAnswer,
  type ProbedCall,
  type Session,
  type Store,
  type ToolOptions,
  type Turn,
} from "holdfast";
import { afterEach, describe, expect, test } from "vitest";
import { place } from "../../../place.ts";
import { rawLine } from "../../../raw-session.ts";

/** Calls whose outcome is unknown after a crash: their probes, their keys, and the rules by which they run again. */

type M = AnthropicMessage;

const user = (text: string): M => ({ role: "user", content: text });
const says = (text: string): M => ({ role: "assistant", content: text });
const calls = (...ids: string[]): M => ({
  role: "assistant",
  content: ids.map((id) => ({ type: "tool_use", id, name: "charge", input: { amount: id } })) as never,
});

const open: Disposable[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one[Symbol.dispose]();
});

type Life = { readonly store: Store; readonly session: Session<M>; readonly path: string };

async function begin(options: { redact?: (text: string) => string } = {}): Promise<Life> {
  const here = place();
  open.push(here);
  const store = await openStore(here.path, { recordsToolStarts: true, ...options });
  return { store, session: await store.create<M>({ dialect: "anthropic" }), path: here.path };
}

/** Another process opens the session. */
async function reopen({ store, session, path }: Life): Promise<Life> {
  await store.close();
  const again = await openStore(path, { recordsToolStarts: true });
  return { store: again, session: await again.resume<M>(session.id), path };
}

/** A turn whose calls were started with these options, each by id, when its process was gone. */
async function cutOff(starts: Readonly<Record<string, ToolOptions>>, made = Object.keys(starts)): Promise<Life> {
  const life = await begin();
  const turn = await life.session.startTurn(user("pay"));
  await turn.append(calls(...made));
  for (const [id, options] of Object.entries(starts)) await turn.toolStarted(id, options);
  return reopen(life);
}

const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "nothing",
    (error) => (isHoldfastError(error) ? error.code : error),
  );

const shownTo = ({ session }: Life): string => JSON.stringify(session.messages.at(-1));
const kindsOf = async ({ store, session }: Life): Promise<string[]> =>
  (await Array.fromAsync(store.history(session.id))).map(({ kind }) => kind).slice(-3);
const records = async ({ store, session }: Life, kind: string) =>
  (await Array.fromAsync(store.history(session.id))).filter((record) => record.kind === kind);

const SETTLED = "Settled by asking the service";
const never = (): never => expect.fail("it must not run");

/** Warnings of Holdfast that the work causes. */
async function warnings(work: () => Promise<unknown>): Promise<string[]> {
  const seen: string[] = [];
  const listen = (warning: Error & { code?: string }): void => {
    if (warning.code === "HOLDFAST_PROBE") seen.push(warning.message);
  };
  process.on("warning", listen);
  try {
    await work();
    await new Promise(setImmediate);
  } finally {
    process.off("warning", listen);
  }
  return seen;
}

describe("turn.tool", () => {
  test.each([
    [
      "an outcome",
      { value: { receipt: 7 } },
      { value: { receipt: 7 } },
      `${SETTLED}: it took effect. Result: {\\"receipt`,
    ],
    ["an outcome without a value", { value: undefined }, { value: undefined }, `${SETTLED}: it took effect.`],
    [
      "a failure",
      { error: new Error("declined") },
      { error: new Error("declined") },
      `${SETTLED}: it failed. declined`,
    ],
  ])(
    "P3: the probe finds %s: it is recorded once with its source, and the tool does not run",
    async (_name, found, outcome, words) => {
      const life = await cutOff({ a: { probe: () => "unknown" } });
      const turn = await life.session.resumeTurn({ calls: "rerun" });
      const asked: ProbedCall[] = [];
      const probe: Probe = (call) => {
        asked.push(call);
        return found;
      };
      expect(await turn.tool("a", never, { probe })).toEqual(outcome);
      expect(asked).toMatchObject([{ id: "a", name: "charge", input: { amount: "a" }, key: expect.any(String) }]);
      expect(shownTo(life)).toContain(words);
      expect(life.session.entries.at(-1)).toMatchObject({ source: "probe", call: { index: 0 } });
      expect(await codeOf(turn.tool("a", never, { probe }))).toBe("CALL_TAKEN");
      const ends = await records(life, "tool.ended");
      expect(ends).toMatchObject([{ call: "a", source: "probe" }]);
      const again = await reopen(life);
      expect(again.session.interruption).toMatchObject({
        calls: [],
        settled: [{ id: "a", name: "charge", source: "probe", unstarted: false }],
      });
    },
  );

  test("P3: what did not happen runs, with the key that it had", async () => {
    const life = await cutOff({ a: { probe: () => "unknown" } });
    const { key } = life.session.calls[0]!;
    const turn = await life.session.resumeTurn({ calls: "rerun" });
    const given: string[] = [];
    const run = (_signal: AbortSignal, call: { key: string }): string => {
      given.push(call.key);
      return "paid";
    };
    expect(await turn.tool("a", run, { probe: () => "did-not-happen" })).toEqual({ value: "paid" });
    expect(given).toEqual([key]);
    expect(await kindsOf(life)).toEqual(["tool.unstarted", "tool.started", "tool.ended"]);
    expect(shownTo(life)).toContain("paid");
    expect((await reopen(life)).session.interruption!.settled, "it has run since").toEqual([]);
  });

  test.each<[string, Probe, string | null]>([
    ["that nobody can tell", () => "unknown", null],
    ["by throwing", () => expect.fail("offline"), "offline"],
    ["by rejecting", () => Promise.reject(new Error("offline")), "offline"],
    ["something else", () => "perhaps" as ProbeAnswer, "the answer must be"],
    ["nothing", () => undefined as never, "the answer must be"],
    ["an object of another kind", () => ({ outcome: 1 }) as never, "the answer must be"],
    ["as many clients say that all went well", () => ({ value: 1, error: null }) as never, "the answer must be"],
    ["both a value and an error", () => ({ value: 1, error: "no" }) as never, "the answer must be"],
    ["never", () => new Promise(() => {}), "no answer after 5 ms"],
  ])("the probe answers %s: the model is told that the outcome is unknown", async (_name, probe, warned) => {
    const life = await cutOff({ a: { probe } });
    const turn = await life.session.resumeTurn({ calls: "rerun" });
    const seen = await warnings(async () => {
      const { error } = await turn.tool("a", never, { probe, probeMs: 5 });
      expect(error).toMatchObject({ code: "CALL_IN_DOUBT" });
    });
    expect(seen).toHaveLength(warned === null ? 0 : 1);
    for (const one of seen) expect(one).toContain(warned);
    expect(shownTo(life)).toContain("outcome unknown. It may have taken effect");
    expect(await records(life, "tool.ended")).toEqual([]);
    expect(turn.open).toEqual([]);
  });

  test("P5: a call is run again only if it was safe when it started and is safe now", async () => {
    for (const [was, is, runs] of [
      ["safe", "safe", true],
      ["safe", "never", false],
      ["never", "safe", false],
    ] as const) {
      const life = await cutOff({ a: { replay: was } });
      const turn = await life.session.resumeTurn({ calls: () => "keep" });
      let ran = false;
      const code = await codeOf(turn.tool("a", () => (ran = true), { replay: is }));
      expect([was, is, ran, code]).toEqual([was, is, runs, runs ? "nothing" : "CALL_IN_DOUBT"]);
      if (!runs) expect(await codeOf(turn.toolStarted("a", { replay: is }))).toBe("CALL_IN_DOUBT");
      await life.store.close();
    }
  });

  test("a turn that is stopped while a probe is asked: the call stays unknown, nothing is recorded, nobody is warned", async () => {
    const life = await cutOff({ a: { probe: () => "unknown" } });
    const turn = await life.session.resumeTurn({ calls: "rerun" });
    const asked = Promise.withResolvers<AbortSignal>();
    const probe: Probe = ({ signal }) => {
      asked.resolve(signal);
      return new Promise(() => {});
    };
    const seen = await warnings(async () => {
      const outcome = turn.tool("a", never, { probe });
      const signal = await asked.promise;
      await turn.abort({ by: "user" });
      expect(signal.aborted).toBe(true);
      expect(String((await outcome).error)).toContain("stopped by user");
    });
    expect(seen).toEqual([]);
    expect(life.session.calls).toMatchObject([{ id: "a", state: "outcome-unknown" }]);
  });

  test("a turn that ends while a probe is asked: the answer is not recorded, and the tool does not run", async () => {
    for (const answer of ["did-not-happen", "unknown", { value: 1 }] as const) {
      const life = await cutOff({ a: { probe: () => "unknown" } });
      const turn = await life.session.resumeTurn({ calls: "rerun" });
      const asked = Promise.withResolvers<void>();
      const found = Promise.withResolvers<ProbeAnswer>();
      const outcome = codeOf(
        turn.tool("a", never, {
          probe: () => {
            asked.resolve();
            return found.promise;
          },
        }),
      );
      await asked.promise;
      await turn.suspend({ reason: "night" });
      found.resolve(answer);
      expect(await outcome).toBe("TURN_ENDED");
      expect((await kindsOf(life)).at(-1)).toBe("turn.suspended");
      await life.store.close();
    }
  });

  test("the session is closed while a probe is asked", async () => {
    const life = await cutOff({ a: { probe: () => "unknown" } });
    const turn = await life.session.resumeTurn({ calls: "rerun" });
    const asked = Promise.withResolvers<void>();
    const outcome = turn.tool("a", never, {
      probe: () => {
        asked.resolve();
        return new Promise(() => {});
      },
    });
    await asked.promise;
    await life.session.close();
    expect((await outcome).error).toBeInstanceOf(Error);
    expect((await life.store.read(life.session.id)).calls).toMatchObject([{ state: "outcome-unknown" }]);
  });

  test("a call that gets its result while a probe is asked keeps that result", async () => {
    const life = await cutOff({ a: { probe: () => "unknown" } });
    const turn = await life.session.resumeTurn({ calls: "rerun" });
    const result: M = { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "by hand" }] };
    const probe = async (): Promise<ProbeAnswer> => {
      await turn.append(result);
      return "did-not-happen";
    };
    expect(await codeOf(turn.tool("a", never, { probe }))).toBe("CALL_TAKEN");
    expect(await records(life, "tool.unstarted")).toEqual([]);
    expect(shownTo(life)).toContain("by hand");
  });

  test("a conversation that is compacted while a probe is asked: the answer belongs to the call where it is now", async () => {
    const life = await cutOff({ a: { probe: () => "unknown" } });
    const turn = await life.session.resumeTurn({ calls: "rerun" });
    const probe = async (): Promise<ProbeAnswer> => {
      await life.session.replace([user("a summary"), ...life.session.entries.slice(-1)], { reason: "compaction" });
      return { value: "paid" };
    };
    expect(await turn.tool("a", never, { probe })).toEqual({ value: "paid" });
    expect(shownTo(life)).toContain(SETTLED);
    expect(life.session.calls).toEqual([]);
  });

  test("a message that is replaced while a probe is asked: the call runs where it is now", async () => {
    const life = await cutOff({ a: { probe: () => "unknown" } });
    const turn = await life.session.resumeTurn({ calls: "rerun" });
    const { id } = life.session.entries[1]!;
    const probe = async (): Promise<ProbeAnswer> => {
      await life.session.edit([id], [calls("a")], { reason: "shorter", now: true });
      return "did-not-happen";
    };
    expect(await turn.tool("a", () => "paid", { probe })).toEqual({ value: "paid" });
    expect(shownTo(life)).toContain("paid");
    expect(life.session.calls).toEqual([]);
  });

  test("a tool that may still run in this process: that it did not happen is no answer, an outcome is", async () => {
    for (const [answer, outcome] of [
      ["did-not-happen", { error: { code: "CALL_IN_DOUBT" } }],
      [{ value: "paid" }, { value: "paid" }],
    ] as const) {
      const { session, store } = await begin();
      const first = await session.startTurn(user("pay"));
      await first.append(calls("a"));
      const running = Promise.withResolvers<void>();
      const hang = (): Promise<never> => {
        running.resolve();
        return new Promise(() => {});
      };
      void first.tool("a", hang, { probe: () => answer });
      await running.promise;
      await first.abort({ by: "user" });
      const turn = await session.resumeTurn({ calls: "rerun" });
      expect(await turn.tool("a", never, { probe: () => answer })).toMatchObject(outcome);
      await store.close();
    }
  });

  test("the model, asked before the call is settled, is not told that it has not run", async () => {
    const life = await cutOff({ a: { probe: () => "unknown" } });
    const turn = await life.session.resumeTurn({ calls: "rerun" });
    expect(JSON.stringify(turn.request().messages.at(-1))).toContain("outcome unknown");
  });

  test("options of the wrong kind are refused before anything happens", async () => {
    const life = await cutOff({ a: {} });
    const turn = await life.session.resumeTurn({ calls: () => "keep" });
    for (const options of [{ probe: "yes" }, { probeMs: 0 }, { probeMs: Number.NaN }, { probeMs: 1e12 }]) {
      expect(await codeOf(turn.tool("a", never, options as ToolOptions))).toBe("RECORD_INVALID");
      expect(await codeOf(life.session.settleCalls({}, options as never))).toMatch(/RECORD_INVALID|TURN_OPEN/);
    }
    expect(await codeOf(turn.tool("a", never, { before: "x".repeat(1 << 21) }))).toBe("RECORD_TOO_LARGE");
    await turn.abort({ by: "user" });
    expect(await codeOf(life.session.settleCalls({ charge: "yes" as never }))).toBe("RECORD_INVALID");
  });
});

describe("session.settleCalls", () => {
  const states = ({ session }: Life): unknown => session.calls.map(({ id, state }) => [id, state]);

  test("P3: each call is asked about by the probe of its tool, and what is found is told to the model in the next turn too", async () => {
    const life = await cutOff({ a: {}, b: {}, c: {} }, ["a", "b", "c", "d"]);
    const asked: string[] = [];
    await life.session.settleCalls({
      charge: ({ id }) => {
        asked.push(id);
        return id === "a" ? { value: "paid" } : id === "b" ? "did-not-happen" : "unknown";
      },
      other: never,
    });
    expect(asked.sort()).toEqual(["a", "b", "c"]);
    expect(states(life)).toEqual([
      ["b", "never-started"],
      ["c", "outcome-unknown"],
      ["d", "never-started"],
    ]);
    expect(life.session.calls[0]).toMatchObject({ unstarted: "probe", key: expect.any(String) });
    expect(life.session.interruption!.settled).toEqual([
      { id: "a", name: "charge", source: "probe", unstarted: false },
      { id: "b", name: "charge", source: "probe", unstarted: true },
    ]);
    await life.session.startTurn(user("well?"));
    const told = JSON.stringify(life.session.messages);
    expect(told).toContain(`${SETTLED}: it took effect. Result: paid`);
    expect(told).toContain(`${SETTLED}: it did not take effect, so it is safe to run it.`);
    expect(told).toContain("it may have taken effect. Check before repeating it.");
    expect(told).toContain("It never started: it is safe to run it.");
  });

  test("twice at once: one question for each call", async () => {
    const life = await cutOff({ a: {}, b: {} });
    const asked: string[] = [];
    const probe: Probe = async ({ id }) => {
      asked.push(id);
      await new Promise(setImmediate);
      return id === "a" ? { value: 1 } : "did-not-happen";
    };
    await Promise.all([life.session.settleCalls({ charge: probe }), life.session.settleCalls({ charge: probe })]);
    expect(asked.sort()).toEqual(["a", "b"]);
    expect(await records(life, "tool.unstarted")).toHaveLength(1);
    expect(await records(life, "tool.ended")).toHaveLength(1);
  });

  test("a turn that is resumed or started meanwhile waits for the answers", async () => {
    const life = await cutOff({ a: {} });
    const found = Promise.withResolvers<ProbeAnswer>();
    const settled = life.session.settleCalls({ charge: () => found.promise });
    const resumed = life.session.resumeTurn();
    found.resolve({ value: "paid" });
    await Promise.all([settled, resumed]);
    expect(shownTo(life)).toContain(SETTLED);
  });

  test("R9: calls with one id are asked about one by one, each with its own key", async () => {
    const life = await begin();
    const turn = await life.session.startTurn(user("pay"));
    await turn.append(calls("a", "a"));
    await turn.toolStarted("a");
    await turn.toolStarted("a");
    const again = await reopen(life);
    const keys: (string | null)[] = [];
    await again.session.settleCalls({
      charge: ({ key }) => {
        keys.push(key);
        return keys.length === 1 ? { value: "first" } : { value: "second" };
      },
    });
    expect(new Set(keys).size).toBe(2);
    expect(again.session.calls).toEqual([]);
    expect(again.session.entries.slice(-2).map(({ call }) => call?.index)).toEqual([0, 1]);
  });

  test("R9: a tool that started before its call was recorded, which never was", async () => {
    for (const [answer, words, settled] of [
      [{ value: 1 }, "Ran to completion, but the call was not recorded: charge", 1],
      [{ error: "declined" }, "cut off. Failed, and the call was not recorded: charge", 1],
      ["did-not-happen", null, 0],
      ["unknown", "Started, with an unknown outcome: charge", 0],
    ] as const) {
      const life = await begin();
      const turn = await life.session.startTurn(user("pay"));
      turn.request().draft.push({ text: "I pay" });
      await turn.toolStarted("a", { name: "charge", input: { amount: 1 } });
      const again = await reopen(life);
      const { key } = again.session.calls[0]!;
      await again.session.settleCalls({
        charge: (call) => {
          expect(call).toMatchObject({ id: "a", input: { amount: 1 }, key });
          return answer;
        },
      });
      expect(again.session.interruption!.settled).toHaveLength(settled);
      await again.session.startTurn(user("well?"));
      const told = JSON.stringify(again.session.messages);
      if (words === null) expect(told).not.toContain("charge");
      else expect(told).toContain(words);
      await again.store.close();
    }
  });

  test("R9: a tool that started early keeps its key when its call is recorded", async () => {
    const life = await begin();
    const turn = await life.session.startTurn(user("pay"));
    const { draft } = turn.request();
    draft.push({ text: "I pay" });
    const { key } = await turn.toolStarted("a", { name: "charge", input: {} });
    await draft.commit(calls("a"));
    expect((await reopen(life)).session.calls).toMatchObject([{ id: "a", key }]);
  });

  test("the session is closed while it asks: it does not wait, and the call stays unknown", async () => {
    const life = await cutOff({ a: {} });
    const asked = Promise.withResolvers<AbortSignal>();
    const settled = codeOf(
      life.session.settleCalls({
        charge: ({ signal }) => {
          asked.resolve(signal);
          return new Promise(() => {});
        },
      }),
    );
    const signal = await asked.promise;
    await life.session.close();
    expect(signal.aborted).toBe(true);
    expect(await settled).toBe("SESSION_CLOSED");
    expect((await life.store.read(life.session.id)).calls).toMatchObject([{ state: "outcome-unknown" }]);
  });

  test("a probe that closes the session and throws at once: nothing is left that nobody handles", async () => {
    const life = await cutOff({ a: {} });
    const unhandled: unknown[] = [];
    const listen = (error: unknown): unknown => unhandled.push(error);
    process.on("unhandledRejection", listen);
    try {
      const charge = (): never => {
        void life.session.close();
        throw new Error("offline");
      };
      expect(await codeOf(life.session.settleCalls({ charge }))).toBe("SESSION_CLOSED");
      await new Promise(setImmediate);
    } finally {
      process.off("unhandledRejection", listen);
    }
    expect(unhandled).toEqual([]);
  });

  test("a warning is one line, whatever names the model and the service make up", async () => {
    const id = `a\n\u001b[2J${"x".repeat(100_000)}`;
    const life = await cutOff({ [id]: {} });
    const charge = (): never => expect.fail(`offline\n\u001b[31m${"y".repeat(100_000)}`);
    const [words = "", ...others] = await warnings(() => life.session.settleCalls({ charge }));
    expect(others).toEqual([]);
    expect(words).toMatch(/^The probe of charge could not tell .* offline y/);
    expect(words.length).toBeLessThan(1000);
    expect(words).not.toMatch(/\p{Cc}/u);
  });

  test("one answer that cannot be recorded does not leave the others behind", async () => {
    const life = await cutOff({ a: {}, b: {} });
    const late = Promise.withResolvers<ProbeAnswer>();
    const settled = life.session.settleCalls({
      charge: ({ id }) => {
        if (id === "b") return late.promise;
        const bad: object = { value: "x".repeat(20 * 1024 * 1024) };
        setImmediate(() => late.resolve({ value: "paid" }));
        return bad as ProbeAnswer;
      },
    });
    await settled;
    expect(life.session.calls).toEqual([]);
    const told = JSON.stringify(life.session.messages.at(-1));
    expect(told).toContain(SETTLED);
  });

  test("nothing to ask: no turn, a turn that completed, a turn that is running", async () => {
    const { session } = await begin();
    await session.settleCalls({ charge: never });
    const turn = await session.startTurn(user("pay"));
    expect(await codeOf(session.settleCalls({ charge: never }))).toBe("TURN_OPEN");
    await turn.append(says("done"), { end: true });
    await session.settleCalls({ charge: never });
  });

  test("calls that the provider runs, and calls that wait for approval, are not asked about", async () => {
    const life = await begin();
    const turn = await life.session.startTurn(user("pay"));
    await turn.append({
      role: "assistant",
      content: [{ type: "server_tool_use", id: "s", name: "charge", input: {} }] as never,
    });
    const again = await reopen(life);
    await again.session.settleCalls({ charge: never });
    expect(again.session.calls).toMatchObject([{ state: "provider" }]);
  });
});

describe("what is recorded with a start", () => {
  const before = { head: "abc" };

  test("S16: key, probe, note and what was settled survive compaction, also twice", async () => {
    const life = await cutOff({ a: { probe: () => "unknown", before }, b: {}, c: {} });
    const keys = life.session.calls.map(({ key }) => key);
    await life.session.settleCalls({
      charge: ({ id }) => (id === "b" ? "did-not-happen" : id === "c" ? { value: 1 } : "unknown"),
    });
    for (let i = 0; i < 2; i++) await life.session.replace([...life.session.entries], { reason: "compaction" });
    const again = await reopen(life);
    const [a, b] = again.session.calls;
    expect(a).toMatchObject({ state: "outcome-unknown", key: keys[0], probe: true, before });
    expect(b).toMatchObject({ state: "never-started", key: keys[1], unstarted: "probe" });
    expect(again.session.interruption!.settled.map(({ id }) => id)).toEqual(["c", "b"]);
  });

  test("P5: what did not happen may have run again, if the record of that is lost: nobody is told that it never started", async () => {
    const life = await cutOff({ a: { probe: () => "unknown" } });
    const turn = await life.session.resumeTurn({ calls: "rerun" });
    const ran = Promise.withResolvers<string>();
    const run = (_: AbortSignal, { key }: { key: string }): Promise<never> => {
      ran.resolve(key);
      return new Promise(() => {});
    };
    turn.tool("a", run, { probe: () => "did-not-happen" }).catch(() => {});
    const key = await ran.promise;
    await life.session.note("after", 1);
    await life.store.close();
    const folder = join(life.path, "sessions", life.session.id);
    let starts = 0;
    for (const name of readdirSync(folder).filter((file) => file.endsWith(".jsonl"))) {
      const lines = readFileSync(join(folder, name), "utf8").split("\n");
      const isLost = (line: string): boolean => line.includes('"tool.started"') && ++starts === 2;
      writeFileSync(
        join(folder, name),
        lines.map((line) => (isLost(line) ? line.replace("charge", "") : line)).join("\n"),
      );
    }
    expect(starts).toBe(2);
    for (const how of ["as it is", "after an epoch"]) {
      const next = await reopen(life);
      if (how === "after an epoch") await next.session.replace([...next.session.entries], { reason: "compaction" });
      const { calls: open, settled } = next.session.interruption!;
      expect(open, how).toMatchObject([{ id: "a", state: "outcome-unknown", key }]);
      expect(open[0], how).not.toHaveProperty("unstarted");
      expect(settled, how).toEqual([]);
      if (how === "after an epoch") await next.session.resumeTurn();
      if (how === "after an epoch")
        expect(shownTo(next)).toContain("it may have taken effect. Check before repeating it.");
      await next.store.close();
    }
  });

  test("a version that knows no keys runs the call in between: it keeps its key", async () => {
    const life = await cutOff({ a: { replay: "safe" } });
    const [start] = await records(life, "tool.started");
    const { turn, call, message, index, name, replay, idempotencyKey } = start!;
    await life.store.close();
    const file = join(life.path, "sessions", life.session.id, "000001.jsonl");
    const { seq } = JSON.parse(readFileSync(file, "utf8").trim().split("\n").at(-1)!);
    const body = JSON.stringify({ kind: "tool.started", turn, call, message, index, name, replay });
    appendFileSync(file, `${rawLine(seq + 1, body.slice(1, -1))}\n`);
    const again = await reopen(life);
    expect(again.session.calls).toMatchObject([{ id: "a", key: idempotencyKey }]);
    await again.store.close();
  });

  test("undo brings back the starts, with their keys", async () => {
    const life = await cutOff({ a: { before } });
    const { key } = life.session.calls[0]!;
    await life.session.replace([], { reason: "rewind" });
    expect(life.session.calls).toEqual([]);
    await life.session.undo();
    expect(life.session.calls).toMatchObject([{ state: "outcome-unknown", key, before }]);
  });

  test("an edit moves what did not happen with its call", async () => {
    const life = await cutOff({ a: {} });
    const { key } = life.session.calls[0]!;
    await life.session.settleCalls({ charge: () => "did-not-happen" });
    await life.session.edit([life.session.entries[1]!.id], [calls("a")], { reason: "shorter", now: true });
    expect(life.session.calls).toMatchObject([{ state: "never-started", key, unstarted: "probe" }]);
  });

  test("a fork knows no key: its calls are closed, and a call that is made again is another one", async () => {
    const life = await cutOff({ a: { before } });
    const { key } = life.session.calls[0]!;
    const fork = await life.store.fork<M>(life.session.id);
    expect(JSON.stringify((await Array.fromAsync(life.store.history(fork.id))).map((record) => record))).not.toContain(
      key,
    );
    const turn = await fork.startTurn(user("pay"));
    await turn.append(calls("a"));
    expect((await turn.toolStarted("a")).key).not.toBe(key);
  });

  test("every call has a key of its own; running again has the same", async () => {
    const life = await begin();
    const turn: Turn<M> = await life.session.startTurn(user("pay"));
    const keys: string[] = [];
    for (let step = 0; step < 3; step++) {
      await turn.append(calls("a", "a", "b"));
      for (const id of ["a", "a", "b"]) keys.push((await turn.toolStarted(id, { replay: "safe" })).key);
      for (const id of ["a", "a", "b"]) await turn.toolEnded(id, { value: 1 });
    }
    await turn.append(calls("a", "a", "b"));
    for (const id of ["a", "b"]) keys.push((await turn.toolStarted(id, { replay: "safe" })).key);
    expect(new Set(keys).size).toBe(keys.length);
    const again = await reopen(life);
    const resumed = await again.session.resumeTurn({ calls: "rerun" });
    expect((await resumed.toolStarted("b", { replay: "safe" })).key).toBe(keys.at(-1));
  });

  test("a function or a policy that says that a call never began: it runs with the key that it had", async () => {
    for (const way of [() => "did-not-happen" as const, { runs: true, facts: { a: { neverBegan: true } } }]) {
      const life = await cutOff({ a: {} });
      const { key } = life.session.calls[0]!;
      const turn = await life.session.resumeTurn({ calls: way });
      expect(turn.open).toMatchObject([{ state: "never-started", unstarted: "application" }]);
      expect((await turn.toolStarted("a")).key).toBe(key);
      await life.store.close();
    }
  });

  test("what a probe found, and the note, are redacted like everything else", async () => {
    const redact = (text: string): string => text.replaceAll("hunter2", "***");
    const life = await begin({ redact });
    const turn = await life.session.startTurn(user("pay"));
    await turn.append(calls("a", "b"));
    await turn.toolStarted("a", { before: { note: "hunter2" } });
    await turn.toolStarted("b");
    await life.store.close();
    const store = await openStore(life.path, { recordsToolStarts: true, redact });
    const session = await store.resume<M>(life.session.id);
    expect(session.calls[0]!.before).toEqual({ note: "***" });
    await session.settleCalls({ charge: ({ id }) => (id === "a" ? { value: "is hunter2" } : { error: "no hunter2" }) });
    const all = JSON.stringify(await Array.fromAsync(store.history(session.id)));
    expect(all).toContain("is ***");
    expect(all).toContain("no ***");
    expect(all).not.toContain("hunter2");
  });

  test("a tool knows its call wherever it asks", async () => {
    const { toolCall } = await import("holdfast");
    const { session } = await begin();
    const turn = await session.startTurn(user("pay"));
    await turn.append(calls("a", "b"));
    const seen = async (_signal: AbortSignal, call: unknown): Promise<void> => {
      await new Promise(setImmediate);
      expect(toolCall()).toBe(call);
    };
    const [a, b] = await Promise.all([turn.tool("a", seen), turn.tool("b", seen)]);
    expect([a, b]).toEqual([{ value: undefined }, { value: undefined }]);
    expect(toolCall()).toBe(null);
  });
});

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type AnthropicMessage,
  isHoldfastError,
  type OpenCall,
  openStore,
  type Session,
  type Store,
  type ToolCall,
  type ToolOptions,
  type Turn,
} from "holdfast";
import { afterEach, describe, expect, test } from "vitest";
import { place } from "../../../place.ts";

/** Steps inside a tool: each start and each outcome is in the journal, and a tool that runs again continues there. */

type M = AnthropicMessage;
type Run = (signal: AbortSignal, call: ToolCall) => Promise<unknown>;

const user = (text: string): M => ({ role: "user", content: text });
const calls = (...ids: string[]): M => ({
  role: "assistant",
  content: ids.map((id) => ({ type: "tool_use", id, name: "work", input: {} })) as never,
});
const SAFE = { replay: "safe" } as const;

const opened: Disposable[] = [];
const warnings: string[] = [];
const warned = (warning: Error & { code?: string }): void => {
  if (warning.code?.startsWith("HOLDFAST_")) warnings.push(warning.message);
};
process.on("warning", warned);
afterEach(() => {
  warnings.length = 0;
  for (const one of opened.splice(0)) one[Symbol.dispose]();
});

interface Stage {
  readonly path: string;
  store: Store;
  session: Session<M>;
  turn: Turn<M>;
}

async function begin(options: Parameters<typeof openStore>[1] = {}): Promise<Stage> {
  const here = place();
  opened.push(here);
  const store = await openStore(here.path, { recordsToolStarts: true, ...options });
  const session = await store.create<M>({ dialect: "anthropic" });
  const turn = await session.startTurn(user("go"));
  await turn.append(calls("a"));
  return { path: here.path, store, session, turn };
}

/** The process dies while the tool runs; the next one resumes the turn. */
async function dies(at: Stage, options: Parameters<typeof openStore>[1] = {}): Promise<void> {
  await at.session.flush();
  // Nothing that the tool still records counts any more.
  await at.store.close();
  at.store = await openStore(at.path, { recordsToolStarts: true, ...options });
  at.session = await at.store.resume<M>(at.session.id, {});
  at.turn = await at.session.resumeTurn({ calls: "rerun" });
}

const never = new Promise<never>(() => {});

/** Runs the tool until `run` hangs. */
async function until(at: Stage, reached: Promise<void>, run: Run, options: ToolOptions = SAFE): Promise<void> {
  const ran = at.turn.tool("a", run, options);
  ran.catch(() => {});
  await reached;
}

const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "nothing",
    (error) => (isHoldfastError(error) ? error.code : String(error)),
  );

function recordsOf({ path, session }: Pick<Stage, "path" | "session">, kind: string): Record<string, unknown>[] {
  const folder = join(path, "sessions", session.id);
  const files = readdirSync(folder).filter((name) => name.endsWith(".jsonl"));
  const lines = files.sort().flatMap((name) => readFileSync(join(folder, name), "utf8").trim().split("\n"));
  return lines.map((line) => JSON.parse(line)).filter((record) => record.kind === kind);
}

/** A tool of three steps; the second hangs as often as `hangs` says. Counts its effects. */
function shop(hangs: { step: string; once: boolean }, options: { [step: string]: object } = {}) {
  const reached = Promise.withResolvers<void>();
  const effects: string[] = [];
  let isHung = false;
  const run: Run = async (_, { step }) => {
    const results: unknown[] = [];
    for (const name of ["reserve", "charge", "ship"]) {
      const one = step(
        name,
        async (_signal, { key }) => {
          effects.push(name);
          if (name === hangs.step && !isHung) {
            isHung = hangs.once;
            reached.resolve();
            await never;
          }
          return { name, key };
        },
        options[name],
      );
      results.push(await one);
    }
    return results;
  };
  return { run, effects, reached: reached.promise };
}

test("a finished step returns what it returned, without running, and the key of each is the same", async () => {
  const at = await begin();
  const tool = shop({ step: "ship", once: true }, { ship: SAFE });
  await until(at, tool.reached, tool.run);
  await dies(at);
  const { value, error } = await at.turn.tool("a", tool.run, SAFE);
  expect(error).toBe(undefined);
  expect(tool.effects).toEqual(["reserve", "charge", "ship", "ship"]);
  const [{ idempotencyKey }] = recordsOf(at, "tool.started") as [{ idempotencyKey: string }];
  expect(value).toEqual(["reserve", "charge", "ship"].map((name) => ({ name, key: `${idempotencyKey}/${name}` })));
  expect(warnings).toEqual([]);
  await at.store.close();
});

test("a step that had started and has no probe is in doubt: it does not run, and the model is told", async () => {
  const at = await begin();
  const tool = shop({ step: "charge", once: true });
  await until(at, tool.reached, tool.run);
  await dies(at);
  expect(at.turn.open).toMatchObject([
    {
      id: "a",
      steps: [
        { name: "reserve", state: "finished" },
        { name: "charge", state: "unknown" },
      ],
    },
  ]);
  const { error } = await at.turn.tool("a", tool.run, SAFE);
  expect(isHoldfastError(error, "STEP_IN_DOUBT")).toBe(true);
  expect(tool.effects).toEqual(["reserve", "charge"]);
  expect(JSON.stringify(at.turn.request().messages)).toContain("outcome is unknown");
  // The journal still says that the step is open, and the turn goes on.
  await at.turn.append({ role: "assistant", content: "I will check." }, { end: true });
  await at.store.close();
});

test("a tool may catch STEP_IN_DOUBT, and go on with other steps", async () => {
  const at = await begin();
  const tool = shop({ step: "charge", once: true });
  await until(at, tool.reached, tool.run);
  await dies(at);
  const { value } = await at.turn.tool(
    "a",
    async (_, { step }) => {
      const codes = [await step("reserve", () => "again"), await codeOf(step("charge", () => "twice"))];
      return [...codes, await codeOf(step("charge", () => "twice")), await step("refund", () => "done")];
    },
    SAFE,
  );
  expect(value).toMatchObject([{ name: "reserve" }, "STEP_IN_DOUBT", "STEP_TAKEN", "done"]);
  await at.store.close();
});

describe("the probe of a step that had started", () => {
  const run = async (answer: unknown) => {
    const at = await begin();
    const asked: unknown[] = [];
    const probe = ({ signal: _, ...rest }: { signal: AbortSignal }): unknown => {
      asked.push(rest);
      if (answer instanceof Error) throw answer;
      return answer;
    };
    const tool = shop({ step: "charge", once: true }, { charge: { probe } });
    await until(at, tool.reached, tool.run);
    await dies(at);
    const outcome = await at.turn.tool("a", tool.run, SAFE);
    const ends = recordsOf(at, "step.ended");
    const [{ idempotencyKey }] = recordsOf(at, "tool.started") as [{ idempotencyKey: string }];
    expect(asked).toMatchObject([
      {
        name: "charge",
        key: `${idempotencyKey}/charge`,
        call: { id: "a", name: "work" },
        startedAt: expect.any(String),
      },
    ]);
    await at.store.close();
    return { outcome, effects: tool.effects, ends };
  };

  test("a value is recorded as what the probe found, and returned", async () => {
    const { outcome, effects, ends } = await run({ value: "charged" });
    expect(outcome.value).toMatchObject([{ name: "reserve" }, "charged", { name: "ship" }]);
    expect(effects).toEqual(["reserve", "charge", "ship"]);
    expect(ends).toMatchObject([
      { step: "reserve" },
      { step: "charge", value: "charged", source: "probe" },
      { step: "ship" },
    ]);
    expect(ends[1]).not.toHaveProperty("ms");
  });

  test("an error is recorded, and thrown", async () => {
    const { outcome, effects, ends } = await run({ error: "declined" });
    expect(outcome.error).toBe("declined");
    expect(effects).toEqual(["reserve", "charge"]);
    expect(ends[1]).toMatchObject({ step: "charge", error: "declined", source: "probe" });
  });

  test("a step that did not happen runs", async () => {
    const { outcome, effects } = await run("did-not-happen");
    expect(outcome.error).toBe(undefined);
    expect(effects).toEqual(["reserve", "charge", "charge", "ship"]);
  });

  test.each([
    ["says that it does not know", "unknown"],
    ["throws", new Error("no network")],
    ["answers nonsense", 5],
  ])("a probe that %s leaves it in doubt", async (_, answer) => {
    const { outcome, effects } = await run(answer);
    expect(isHoldfastError(outcome.error, "STEP_IN_DOUBT")).toBe(true);
    expect(effects).toEqual(["reserve", "charge"]);
  });

  test("a probe that hangs leaves it in doubt after its time", async () => {
    const at = await begin();
    const tool = shop({ step: "charge", once: true }, { charge: { probe: () => never, probeMs: 1 } });
    await until(at, tool.reached, tool.run);
    await dies(at);
    const { error } = await at.turn.tool("a", tool.run, SAFE);
    expect(isHoldfastError(error, "STEP_IN_DOUBT")).toBe(true);
    await at.store.close();
  });
});

test.each([
  ["then, and now", SAFE, SAFE, true],
  ["then", SAFE, {}, false],
  ["now", {}, SAFE, false],
])("a step that was safe %s", async (_, then, now, runs) => {
  const at = await begin();
  const first = shop({ step: "charge", once: true }, { charge: then });
  await until(at, first.reached, first.run);
  await dies(at);
  const again = shop({ step: "", once: true }, { charge: now });
  const { error } = await at.turn.tool("a", again.run, SAFE);
  expect(again.effects).toEqual(runs ? ["charge", "ship"] : []);
  expect(isHoldfastError(error, "STEP_IN_DOUBT")).toBe(!runs);
  await at.store.close();
});

test("a step that failed fails again with the same words, so that its tool goes the same way again", async () => {
  const at = await begin();
  const reached = Promise.withResolvers<void>();
  const effects: string[] = [];
  const run: Run = async (_, { step }) => {
    const declined = await step("visa", () => {
      effects.push("visa");
      throw new Error("declined");
    }).catch((error: Error) => error.message);
    return step(
      "bank",
      async () => {
        effects.push("bank");
        if (effects.length === 2) {
          reached.resolve();
          await never;
        }
        return declined;
      },
      SAFE,
    );
  };
  await until(at, reached.promise, run);
  await dies(at);
  expect(at.turn.open[0]!.steps).toEqual([
    { name: "visa", state: "failed" },
    { name: "bank", state: "unknown" },
  ]);
  expect(await at.turn.tool("a", run, SAFE)).toEqual({ value: "declined" });
  expect(effects).toEqual(["visa", "bank", "bank"]);
  await at.store.close();
});

describe("a value that cannot be recorded as it is", () => {
  class Order {
    id = 7;
  }
  test.each([
    ["a Date", () => new Date(0)],
    ["an instance of a class", () => new Order()],
    ["bytes", () => new Uint8Array(3)],
    ["a BigInt", () => 5n],
    ["a function", () => () => 5],
    ["a value with a cycle", () => ((cycle) => Object.assign(cycle, { cycle }))({})],
    ["a value that is too large", () => "x".repeat(1024 * 1024)],
  ])("%s: this run gets it, and a run after a crash is refused instead of given something else", async (_, make) => {
    const at = await begin();
    const made = make();
    const reached = Promise.withResolvers<void>();
    const run: Run = async (_signal, { step }) => {
      expect(await step("make", () => made)).toBe(made);
      reached.resolve();
      await never;
    };
    await until(at, reached.promise, run);
    expect(recordsOf(at, "step.ended")).toMatchObject([{ step: "make", lost: true, value: expect.any(String) }]);
    await dies(at);
    const { error } = await at.turn.tool("a", run, SAFE);
    expect(isHoldfastError(error, "STEP_VALUE_LOST")).toBe(true);
    await at.store.close();
  });

  test("a secret is redacted, and not returned in its redacted form", async () => {
    const redact = (text: string): string => text.replaceAll("hunter2", "***");
    const at = await begin({ redact });
    const reached = Promise.withResolvers<void>();
    const run: Run = async (_signal, { step }) => {
      expect(await step("log in", () => ({ token: "hunter2" }))).toEqual({ token: "hunter2" });
      reached.resolve();
      await never;
    };
    await until(at, reached.promise, run);
    expect(recordsOf(at, "step.ended")).toMatchObject([{ value: { token: "***" }, redacted: true }]);
    await dies(at, { redact });
    const { error } = await at.turn.tool("a", run, SAFE);
    expect(isHoldfastError(error, "STEP_VALUE_LOST")).toBe(true);
    await at.store.close();
  });
});

test("a recorded value is the tool's own: it can change it", async () => {
  const at = await begin();
  const reached = Promise.withResolvers<void>();
  let runs = 0;
  const run: Run = async (_signal, { step }) => {
    const list = await step("list", () => ({ items: [1] }));
    list.items.push(2);
    if (++runs === 1) {
      reached.resolve();
      await never;
    }
    return list;
  };
  await until(at, reached.promise, run);
  await dies(at);
  expect(await at.turn.tool("a", run, SAFE)).toEqual({ value: { items: [1, 2] } });
  await at.store.close();
});

test("nothing comes back as nothing, and null as null", async () => {
  const at = await begin();
  const reached = Promise.withResolvers<void>();
  let runs = 0;
  const run: Run = async (_signal, { step }) => {
    const got = [await step("nothing", () => undefined), await step("null", () => null)];
    if (++runs > 1) return got.map(String);
    reached.resolve();
    return never;
  };
  await until(at, reached.promise, run);
  await dies(at);
  expect(await at.turn.tool("a", run, SAFE)).toEqual({ value: ["undefined", "null"] });
  await at.store.close();
});

test("steps run in parallel, and one name twice in a run is refused", async () => {
  const at = await begin();
  const both = Promise.withResolvers<void>();
  let running = 0;
  const outcome = at.turn.tool("a", async (_, { step }) => {
    const one = async (): Promise<void> => {
      if (++running === 2) both.resolve();
      await both.promise;
    };
    await Promise.all([step("x", one), step("y", one)]);
    return step("x", one);
  });
  expect(await codeOf(outcome)).toBe("STEP_TAKEN");
  expect(running).toBe(2);
  await at.store.close();
});

test("wrong arguments, a tool that has ended, and an aborted turn", async () => {
  const at = await begin();
  let kept: ToolCall | null = null;
  await at.turn.tool("a", async (_, call) => {
    kept = call;
    for (const name of ["", "x".repeat(201), 5 as never, null as never])
      expect(await codeOf(call.step(name, () => 1))).toBe("RECORD_INVALID");
    expect(await codeOf(call.step("fine", () => Promise.reject("no")))).toBe("no");
    expect(await codeOf(call.step("empty", () => Promise.reject()))).toContain("without an error");
  });
  expect(await codeOf(kept!.step("late", () => 1))).toBe("CALL_TAKEN");
  await at.turn.append(calls("b"));
  const effects: string[] = [];
  await at.turn.tool("b", async (_, { step }) => {
    await step("one", () => at.turn.abort({ by: "user" }));
    await step("two", () => effects.push("two"));
  });
  expect(effects).toEqual([]);
  await at.store.close();
});

test("a call has at most 1000 steps, and no more than 8 MiB of values", async () => {
  const at = await begin({ durability: "process" });
  const { value } = await at.turn.tool("a", async (_, { step }) => {
    for (let n = 0; n < 1000; n++) await step(`s${n}`, () => n);
    return codeOf(step("one more", () => 1));
  });
  expect(value).toBe("STEP_LIMIT");
  await at.turn.append(calls("b"));
  const large = "x".repeat(1024 * 1024 - 10);
  const b = await at.turn.tool("b", async (_, { step }) => {
    const codes: unknown[] = [];
    for (let n = 0; n < 10; n++) codes.push(await codeOf(step(`s${n}`, () => large)));
    return codes;
  });
  expect((b.value as string[]).filter((code) => code === "nothing").length).toBe(9);
  expect((b.value as string[]).at(-1)).toBe("STEP_LIMIT");
  await at.turn.append(calls("c"));
  const fails = (): never => expect.fail(large);
  const c = await at.turn.tool("c", async (_, { step }) => {
    const failed = await Promise.all(Array.from({ length: 20 }, (_step, n) => codeOf(step(`s${n}`, fails))));
    return [failed.length, await codeOf(step("one more", () => 1))];
  });
  expect(c.value).toEqual([20, "STEP_LIMIT"]);
  const errors = recordsOf(at, "step.ended").flatMap(({ error }) => (typeof error === "string" ? [error.length] : []));
  expect(errors).toHaveLength(20);
  expect(errors.reduce((sum, length) => sum + length)).toBeLessThan(10 * 1024 * 1024);
  await at.store.close();
}, 60_000);

test("R9: a step that outlives its tool does not count for a later call with the same id", async () => {
  const at = await begin();
  const { draft } = at.turn.request();
  draft.push({ text: "…" });
  const [started, late] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
  let old: Promise<unknown> = never;
  const ran = at.turn.tool(
    "b",
    async (_, { step }) => {
      old = step("charge", () => {
        started.resolve();
        return late.promise;
      });
      await started.promise;
    },
    { name: "work", input: {} },
  );
  await started.promise;
  await draft.commit(calls("b"));
  await ran;
  await at.turn.append(calls("b"));
  await at.turn.toolStarted("b", SAFE);
  late.resolve("the older call's");
  expect(await old).toBe("the older call's");
  await dies(at);
  const charged = await at.turn.tool("b", (_, { step }) => step("charge", () => "its own"), SAFE);
  expect(charged).toEqual({ value: "its own" });
  await at.store.close();
});

test("a step whose name has changed is said: in a warning, and in the journal", async () => {
  const at = await begin();
  const tool = shop({ step: "ship", once: true }, { ship: SAFE });
  await until(at, tool.reached, tool.run);
  await dies(at);
  await at.turn.tool("a", async (_, { step }) => [await step("charge", () => 1), await step("send", () => 2)], SAFE);
  await new Promise(setImmediate);
  expect(warnings.join()).toContain("did not ask for steps that an earlier run had recorded: reserve, ship");
  expect(recordsOf(at, "tool.ended")).toMatchObject([{ unusedSteps: ["reserve", "ship"] }]);
  await at.store.close();
});

test("a run that fails does not count as one that left steps out", async () => {
  const at = await begin();
  const tool = shop({ step: "ship", once: true });
  await until(at, tool.reached, tool.run);
  await dies(at);
  await at.turn.tool("a", () => Promise.reject(new Error("early")), SAFE);
  expect(recordsOf(at, "tool.ended")[0]).not.toHaveProperty("unusedSteps");
  await at.store.close();
});

test("a probe of the call that says that it did not happen: finished steps stay finished", async () => {
  const at = await begin();
  const tool = shop({ step: "ship", once: true }, { ship: { probe: () => "did-not-happen" as const } });
  await until(at, tool.reached, tool.run, {});
  await at.store.close();
  at.store = await openStore(at.path, { recordsToolStarts: true });
  at.session = await at.store.resume<M>(at.session.id);
  at.turn = await at.session.resumeTurn({ calls: () => "did-not-happen" });
  expect(at.turn.open).toMatchObject([{ state: "never-started", steps: [{}, {}, { name: "ship", state: "unknown" }] }]);
  const { error } = await at.turn.tool("a", tool.run);
  expect(error).toBe(undefined);
  expect(tool.effects).toEqual(["reserve", "charge", "ship", "ship"]);
  await at.store.close();
});

test("records of steps that are lost to damage: what may have started does not run, what had finished returns", async () => {
  const at = await begin();
  const reached = Promise.withResolvers<void>();
  const effects: string[] = [];
  let isAgain = false;
  const run: Run = async (_, { step }) => {
    const of = (name: string) => step(name, () => effects.push(name));
    const found = [await of("one"), await codeOf(of("two")), await codeOf(of("three"))];
    if (isAgain) return found;
    isAgain = true;
    reached.resolve();
    return never;
  };
  await until(at, reached.promise, run);
  await at.store.close();
  const folder = join(at.path, "sessions", at.session.id);
  for (const name of readdirSync(folder).filter((file) => file.endsWith(".jsonl"))) {
    const lines = readFileSync(join(folder, name), "utf8").split("\n");
    const damaged = lines.map((line) => (line.includes('"step":"two"') ? line.replace('"two"', '"tow"') : line));
    writeFileSync(join(folder, name), damaged.join("\n"));
  }
  at.store = await openStore(at.path, { recordsToolStarts: true });
  at.session = await at.store.resume<M>(at.session.id);
  at.turn = await at.session.resumeTurn({ calls: "rerun" });
  // An epoch says it too.
  await at.session.replace([...at.session.entries], { reason: "compaction" });
  await dies(at);
  expect(await at.turn.tool("a", run, SAFE)).toEqual({ value: [1, "STEP_IN_DOUBT", "nothing"] });
  expect(effects).toEqual(["one", "two", "three"]);
  await at.store.close();
});

test("a tool that is another process records its steps one by one", async () => {
  const at = await begin();
  const { key } = await at.turn.toolStarted("a", SAFE);
  expect(await at.turn.stepStarted("a", "one")).toEqual({ state: "run", key: `${key}/one` });
  expect(await codeOf(at.turn.stepStarted("a", "one"))).toBe("STEP_TAKEN");
  await at.turn.stepEnded("a", "one", { value: 1 });
  expect(await codeOf(at.turn.stepEnded("a", "one", { value: 1 }))).toBe("RECORD_INVALID");
  expect(await codeOf(at.turn.stepEnded("a", "other", { value: 1 }))).toBe("RECORD_INVALID");
  expect(await codeOf(at.turn.stepStarted("b", "one"))).toBe("CALL_UNKNOWN");
  await at.turn.stepStarted("a", "no");
  await at.turn.stepEnded("a", "no", { error: "failed" });
  await at.turn.stepStarted("a", "two");
  await at.turn.stepStarted("a", "three");
  await dies(at);
  expect((await at.turn.toolStarted("a", SAFE)).key).toBe(key);
  for (let n = 0; n < 2; n++) {
    expect(await at.turn.stepStarted("a", "one")).toEqual({ state: "finished", key: `${key}/one`, value: 1 });
    expect(await at.turn.stepStarted("a", "no")).toEqual({ state: "failed", key: `${key}/no`, error: "failed" });
  }
  expect(await at.turn.stepStarted("a", "two")).toEqual({ state: "unknown", key: `${key}/two` });
  expect(await codeOf(at.turn.stepEnded("a", "two", { value: 2 }))).toBe("RECORD_INVALID");
  await at.turn.stepEnded("a", "two", { value: 2 }, "the shop");
  expect(await at.turn.stepStarted("a", "three")).toMatchObject({ state: "unknown" });
  expect(await at.turn.stepStarted("a", "three", { didNotHappen: true })).toMatchObject({ state: "run" });
  await at.turn.stepEnded("a", "three", { error: "no" });
  await at.turn.toolEnded("a", { value: "done" });
  expect(recordsOf(at, "step.ended")).toMatchObject([
    { step: "one" },
    { step: "no" },
    { step: "two", value: 2, source: "the shop" },
    { step: "three", error: "no" },
  ]);
  await at.store.close();
});

test("the words for people and for the model say how far each step got", async () => {
  const at = await begin();
  const tool = shop({ step: "ship", once: true });
  await until(at, tool.reached, tool.run, {});
  await at.store.close();
  at.store = await openStore(at.path, { recordsToolStarts: true });
  const reading = await at.store.read<M>(at.session.id);
  const { accountOf } = await import("holdfast");
  const words = "2 of 3 started steps finished (reserve, charge); outcome unknown: ship";
  expect(accountOf(reading as never).calls[0]!.words).toBe(`started, outcome unknown; ${words}`);
  at.session = await at.store.resume<M>(at.session.id);
  at.turn = await at.session.resumeTurn();
  expect(JSON.stringify(at.turn.request().messages)).toContain(` ${words}.`);
  await at.store.close();
});

describe("a new epoch while a call is open", () => {
  test.each(["compaction", "undo", "edit"] as const)("%s: its steps go along", async (how) => {
    const at = await begin();
    const reached = Promise.withResolvers<void>();
    const go = Promise.withResolvers<void>();
    const effects: string[] = [];
    let isFirst = true;
    const run: Run = async (_, { step }) => {
      const list = await step("list", () => {
        effects.push("list");
        return ["x"];
      });
      await step("fails", () => {
        effects.push("fails");
        throw new Error("declined");
      }).catch(() => {});
      await step(
        "send",
        async () => {
          effects.push("send");
          if (isFirst) {
            isFirst = false;
            reached.resolve();
            await go.promise;
            await never;
          }
        },
        { probe: () => "did-not-happen" },
      );
      return list;
    };
    await until(at, reached.promise, run);
    const keep = at.session.entries;
    if (how === "edit") await at.session.edit([keep[0]!.id], [user("went")], { reason: "typo" });
    else await at.session.replace([...keep], { reason: "compaction" });
    if (how === "undo") await at.session.undo();
    go.resolve();
    await dies(at);
    expect(at.turn.open as OpenCall[]).toMatchObject([
      {
        steps: [
          { name: "list", state: "finished" },
          { name: "fails", state: "failed" },
          { name: "send", state: "unknown" },
        ],
      },
    ]);
    expect(await at.turn.tool("a", run, SAFE)).toEqual({ value: ["x"] });
    expect(effects).toEqual(["list", "fails", "send", "send"]);
    await at.store.close();
  });

  test("a large value does not make the checkpoint too large, and a fork takes no steps", async () => {
    const at = await begin();
    const reached = Promise.withResolvers<void>();
    const large = "x".repeat(1024 * 1024 - 10);
    await until(at, reached.promise, async (_, { step }) => {
      for (const name of "abcdefgh") await step(name, () => large);
      reached.resolve();
      await never;
    });
    await at.session.replace([...at.session.entries], { reason: "compaction" });
    const [epoch] = recordsOf(at, "epoch");
    expect(JSON.stringify(epoch).length).toBeLessThan(100_000);
    const fork = await at.store.fork<M>(at.session.id);
    expect(recordsOf({ ...at, session: fork }, "step.ended")).toEqual([]);
    await dies(at);
    const { value } = await at.turn.tool("a", async (_, { step }) => step("h", () => "again"), SAFE);
    expect(value).toBe(large);
    await at.store.close();
  });
});

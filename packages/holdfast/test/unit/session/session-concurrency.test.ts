import { setTimeout as sleep, setImmediate as tick } from "node:timers/promises";
import { validateAnthropic } from "@holdfast/testkit";
import { type AiSdkMessage, type GeminiContent, isHoldfastError, openStore, type Session, type Store } from "holdfast";
import { Memory, openMemoryStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { afterEach, describe, expect, test } from "vitest";
import { place } from "../../place.ts";
import { calls, type M, user } from "./session-failures-life.ts";

const opened: Disposable[] = [];
const unhandled: unknown[] = [];
process.on("unhandledRejection", (error) => unhandled.push(error));
afterEach(async () => {
  await tick();
  for (const one of opened.splice(0)) one[Symbol.dispose]();
  expect(unhandled.splice(0)).toEqual([]);
});

async function begin(): Promise<{ store: Store; session: Session<M> }> {
  const here = place();
  opened.push(here);
  const store = await openStore(here.path, { recordsToolStarts: true });
  return { store, session: await store.create<M>({ dialect: "anthropic", draftMs: 1 }) };
}

const code = (error: unknown): unknown => (isHoldfastError(error) ? error.code : error);
const codeOf = (promise: Promise<unknown>): Promise<unknown> => promise.then(() => "nothing", code);

async function expectAsRecorded(store: Store, session: Session<M>): Promise<void> {
  const read = await store.read<M>(session.id);
  for (const member of ["entries", "messages", "queue", "usage", "attributes"] as const) {
    expect(session[member], member).toEqual(read[member]);
  }
}

async function records(session: Session<unknown>, store: Store): Promise<Record<string, unknown>[]> {
  await session.flush();
  return Array.fromAsync(store.history(session.id));
}

describe("all at once", () => {
  test("messages, tools, drafts, patches, prompts, notes and a replacement, and nothing is lost", async () => {
    const { store, session } = await begin();
    const turn = await session.startTurn(user("go"), { id: "p" });
    await turn.append(calls("a", "b", "c"), { id: "m" });
    const { draft } = turn.request();
    const all: Promise<unknown>[] = [];
    for (const id of ["a", "b", "c"]) all.push(turn.tool(id, () => sleep(1, id)));
    for (let n = 0; n < 10; n++) {
      draft.push({ text: `${n}` });
      all.push(
        session.note(`n${n}`, n),
        session.enqueue(user(`q${n}`), { id: `q${n}` }),
        session.patch("m", { [`x${n}`]: n }),
      );
      all.push(turn.usage({ inputTokens: 1 }));
    }
    all.push(session.replace([user("so far"), ...session.entries], { reason: "compaction" }));
    all.push(turn.append(user("steer"), { id: "s" }));
    await Promise.all(all);
    expect(session.usage).toEqual({ inputTokens: 10 });
    expect(session.queue).toHaveLength(10);
    expect(Object.keys(session.attributes.notes)).toHaveLength(10);
    expect(Object.keys(session.entries.find(({ id }) => id === "m")!.metadata)).toHaveLength(10);
    expect(session.entries.some(({ id }) => id === "s")).toBe(true);
    for (const id of ["a", "b", "c"]) expect(JSON.stringify(session.messages)).toContain(`"content":"${id}"`);
    expect(validateAnthropic(session.messages as never)).toEqual([]);
    await session.flush();
    await expectAsRecorded(store, session);
    await store.close();
  });

  test("R19: a prompt is taken inside the call, also while something else is under way", async () => {
    const { store, session } = await begin();
    const first = { role: "user" as const, content: "as it was" };
    const starting = session.startTurn(first);
    first.content = "changed";
    const turn = await starting;
    await turn.end();
    const second = { role: "user" as const, content: "as it was, too" };
    const both = [session.replace([...session.entries], { reason: "compaction" }), session.startTurn(second)];
    second.content = "changed";
    await Promise.all(both);
    expect(session.entries.map(({ message }) => message.content)).toEqual(["as it was", "as it was, too"]);
    await store.close();
  });

  test("a prompt that is delivered while it is still being recorded is answered all the same", async () => {
    const { store, session } = await begin();
    await session.note("first", 1);
    const queueing = session.enqueue(user("q"), { id: "q" });
    const turn = await session.startTurn(session.queue[0]!);
    expect(await queueing).toMatchObject({ id: "q", prompt: user("q") });
    expect(turn.prompt.id).toBe("q");
    await expect(turn.append(user("another"), { id: "q" })).rejects.toMatchObject({ code: "MESSAGE_ID_TAKEN" });
    await session.enqueue(user("z"), { id: "z" });
    await expect(turn.append(user("z"), { id: "z" })).rejects.toMatchObject({ code: "MESSAGE_ID_TAKEN" });
    expect(session.queue).toHaveLength(1);
    await store.close();
  });
});

test("what is handed out cannot be changed by whoever looks at it", async () => {
  const { store, session } = await begin();
  const turn = await session.startTurn(user("x"), { usage: { inputTokens: 1, cost: { amount: 1, currency: "EUR" } } });
  await session.note("n", { deep: [1] });
  await turn.abort({ by: "user" });
  const { usage, usageByTurn, attributes, interruption, queue, entries } = session;
  const handedOut: unknown[] = [
    usage,
    usage.cost,
    usageByTurn.get(1),
    attributes,
    attributes.labels,
    attributes.notes["n"],
  ];
  handedOut.push(
    interruption,
    interruption?.how,
    interruption?.calls,
    queue,
    entries,
    entries[0],
    entries[0]?.metadata,
  );
  for (const [index, one] of handedOut.entries()) {
    expect(one, `${index}`).toBeTypeOf("object");
    expect(Object.isFrozen(one), `${index}`).toBe(true);
  }
  (usageByTurn as Map<number, unknown>).clear();
  await turn.usage({ inputTokens: 1 });
  expect(session.usageByTurn.get(1)).toMatchObject({ inputTokens: 2 });
  await expectAsRecorded(store, session);
  await store.close();
});

describe("tools", () => {
  test("whatever a tool returns or throws, that it ran is recorded", async () => {
    const { store, session } = await begin();
    const cyclic: Record<string, unknown> = {};
    cyclic["self"] = cyclic;
    let deep: unknown = "deep";
    for (let n = 0; n < 3000; n++) deep = [deep];
    const runs: [id: string, run: () => unknown, shown: string | RegExp][] = [
      ["undefined", () => undefined, ""],
      ["null", () => null, "null"],
      ["bytes", () => new Uint8Array(7), "(7 bytes)"],
      ["cyclic", () => cyclic, "[object Object]"],
      ["bigint", () => 10n, "10"],
      ["function", () => () => 1, "() => 1"],
      ["symbol", () => Symbol("s"), "Symbol(s)"],
      ["deep", () => deep, /could not be recorded/],
      ["large", () => "x".repeat(70 * 1024 * 1024), /too large to be recorded: \d+ bytes/],
      ["sync throw", () => fail(new Error("thrown")), "thrown"],
      ["throws undefined", () => fail(undefined), "without an error"],
      ["throws a text", () => fail("words"), "words"],
      ["throws an object", () => fail({ reason: 7 }), '{\\"reason\\":7}'],
      [
        "throws a strange error",
        () => fail(Object.assign(new Error("x"), { message: { odd: true } })),
        "[object Object]",
      ],
    ];
    const turn = await session.startTurn(user("go"));
    await turn.append(calls(...runs.map(([id]) => id)));
    const outcomes = await Promise.all(runs.map(([id, run]) => turn.tool(id, run as () => unknown)));
    expect(outcomes.map((outcome) => "error" in outcome)).toEqual(runs.map(([, run]) => String(run).includes("fail(")));
    expect(outcomes[3]).toEqual({ value: cyclic });
    for (const [id, , shown] of runs) {
      const entry = session.entries.find(({ message }) => JSON.stringify(message).includes(`"tool_use_id":"${id}"`));
      if (shown instanceof RegExp) expect(JSON.stringify(entry?.message)).toMatch(shown);
      else expect(JSON.stringify(entry?.message), id).toContain(shown);
    }
    expect(session.interruption).toBeNull();
    expect(turn.open).toEqual([]);
    expect(validateAnthropic(session.messages as never)).toEqual([]);
    await expectAsRecorded(store, session);
    await store.close();
  });

  test("stopped while its start is being written, a tool does not run, and that is recorded", async () => {
    const { store, session } = await begin();
    const turn = await session.startTurn(user("go"));
    await turn.append(calls("a"));
    let ran = false;
    const outcome = turn.tool("a", () => {
      ran = true;
    });
    await turn.abort({ by: "user" });
    expect(await outcome).toMatchObject({ error: { name: "AbortError" } });
    expect(ran).toBe(false);
    expect(JSON.stringify(session.messages)).toContain("It did not run: stopped by user.");
    await store.close();
  });

  test("R6: when the store has failed, tools reject and do not run; the signal has fired", async () => {
    const memory = new Memory();
    const store = await openStoreWith((options) => openMemoryStore({ ...options, memory }), {
      recordsToolStarts: true,
    });
    const session = await store.create<M>({ dialect: "anthropic" });
    const turn = await session.startTurn(user("go"));
    await turn.append(calls("a", "b", "c"));
    const hangs = Promise.withResolvers<string>();
    const running = turn.tool("a", () => hangs.promise);
    await tick();
    const ran: string[] = [];
    const starting = codeOf(turn.tool("b", () => ran.push("b")));
    memory.crash(session.id);
    expect(turn.signal.aborted).toBe(true);
    expect(turn.signal.reason).toMatchObject({ code: "LEASE_LOST" });
    expect(await codeOf(turn.tool("c", () => ran.push("c")))).toBe("LEASE_LOST");
    expect(await starting).toBe("LEASE_LOST");
    hangs.resolve("done");
    expect(await codeOf(running)).toBe("LEASE_LOST");
    expect(ran).toEqual([]);
    expect(await codeOf(session.close())).toBe("LEASE_LOST");
    expect(await codeOf(turn.tool("c", () => ran.push("c")))).toBe("SESSION_CLOSED");
    await turn[Symbol.asyncDispose]();
    expect(store.live(session.id)).toBeNull();
  });

  test("P6: a session that lost its lease is closed after it was opened again: the new one stays open, until the store closes", async () => {
    const memory = new Memory();
    const store = await openStoreWith((options) => openMemoryStore({ ...options, memory }));
    const lost = await store.create<M>({ dialect: "anthropic" });
    memory.crash(lost.id);
    const session = await store.resume<M>(lost.id);
    expect(await codeOf(lost.close())).toBe("LEASE_LOST");
    expect(store.live(lost.id)).toBe(session);
    await store.close();
    expect(await codeOf(session.startTurn(user("go")))).toBe("SESSION_CLOSED");
  });

  test("R9: the same id twice in one message means two calls, also when both run at once", async () => {
    const { store, session } = await begin();
    const turn = await session.startTurn(user("go"));
    await turn.append(calls("call_0", "call_0"), { id: "m" });
    const gates = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
    const running = gates.map(({ promise }) => turn.tool("call_0", () => promise));
    expect(await codeOf(turn.tool("call_0", () => 3))).toBe("CALL_TAKEN");
    gates[1]!.resolve("second");
    await running[1];
    gates[0]!.resolve("first");
    await Promise.all(running);
    const results = session.entries.flatMap(({ call, message }) =>
      call ? [[call.index, JSON.stringify(message)]] : [],
    );
    expect(results).toMatchObject([
      [1, expect.stringContaining("second")],
      [0, expect.stringContaining("first")],
    ]);
    expect(validateAnthropic(session.messages as never)).toEqual([]);
    await expectAsRecorded(store, session);
    await store.close();
  });

  test("R9: ids that are missing have stand-ins", async () => {
    const store = await openStore("memory:", { recordsToolStarts: true });
    const session = await store.create<GeminiContent>({ dialect: "gemini" });
    const turn = await session.startTurn({ role: "user", parts: [{ text: "go" }] } as never);
    const call = (name: string): unknown => ({ functionCall: { name, args: {} } });
    await turn.append({ role: "model", parts: [call("one"), call("two"), call("one")] } as never);
    const ids = turn.open.map(({ id }) => id);
    expect(new Set(ids).size).toBe(3);
    await Promise.all(ids.map((id) => turn.tool(id, () => ({ was: id }))));
    expect(turn.open).toEqual([]);
    const last = session.messages.at(-1) as { parts: { functionResponse: { response: unknown } }[] };
    expect(last.parts.map(({ functionResponse }) => functionResponse.response)).toEqual(
      ids.map((was) => ({ output: { was } })),
    );
    await store.close();
  });

  test("R9: a tool that starts while its message is still streamed belongs to that message", async () => {
    const { store, session } = await begin();
    const turn = await session.startTurn(user("go"));
    await turn.append(calls("call_0"));
    await turn.tool("call_0", () => "of the first step");
    await turn.append({
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "call_0", content: "of the first step" }],
    } as never);
    expect(await codeOf(turn.tool("call_0", () => 1, { name: "work", input: {} })), "nothing is streamed").toBe(
      "CALL_TAKEN",
    );
    const { draft } = turn.request();
    draft.push({ part: 0, call: { id: "call_0", name: "work" }, input: "{}" });
    const gate = Promise.withResolvers<string>();
    const running = turn.tool("call_0", () => gate.promise, { name: "work", input: {}, replay: "safe", child: "kid" });
    expect(await codeOf(turn.tool("call_0", () => 1, { name: "work", input: {} }))).toBe("CALL_TAKEN");
    await draft.commit(calls("call_0"), { id: "m2" });
    expect(await codeOf(turn.tool("call_0", () => 1))).toBe("CALL_TAKEN");
    gate.resolve("of the second step");
    await running;
    expect(session.entries.at(-1)).toMatchObject({ call: { message: "m2", index: 0 } });
    expect(JSON.stringify(session.messages.at(-1))).toContain("of the second step");
    expect(validateAnthropic(session.messages as never)).toEqual([]);
    const started = (await records(session, store)).filter(({ kind }) => kind === "tool.started");
    expect(started.at(-1)).toMatchObject({ message: null, name: "work", replay: "safe", child: "kid" });
    await expectAsRecorded(store, session);
    await store.close();
  });

  test("toolEnded with `shown`: the model sees that; a `shown` that does not fit can be tried again", async () => {
    const { store, session } = await begin();
    const turn = await session.startTurn(user("go"));
    await turn.toolStarted("a", { name: "work", input: {} });
    expect(await codeOf(turn.toolEnded("a", { value: 1 }, { role: "user", content: 7 } as never))).toBe(
      "MESSAGE_UNFIT",
    );
    const shown = { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "in short" }] };
    await turn.toolEnded("a", { value: "at length" }, shown as never);
    await turn.append(calls("a"));
    expect(JSON.stringify(session.messages)).toContain("in short");
    expect(JSON.stringify(session.messages)).not.toContain("at length");
    await store.close();
  });

  test("R7, C37: a call that a person denied does not run", async () => {
    const store = await openStore("memory:", { recordsToolStarts: true });
    const session = await store.create<AiSdkMessage>({ dialect: "ai-sdk" });
    const turn = await session.startTurn({ role: "user", content: "delete it" });
    const call = (id: string): unknown[] => [
      { type: "tool-call", toolCallId: id, toolName: "work", input: {} },
      { type: "tool-approval-request", approvalId: `of ${id}`, toolCallId: id },
    ];
    await turn.append({ role: "assistant", content: [...call("a"), ...call("b")] } as never);
    const decided = (id: string, approved: boolean): unknown => ({
      ...{ type: "tool-approval-response", approvalId: `of ${id}`, approved },
    });
    await turn.append({ role: "tool", content: [decided("a", false), decided("b", true)] } as never);
    const ran: string[] = [];
    expect(await codeOf(turn.tool("a", () => ran.push("a")))).toBe("CALL_TAKEN");
    await turn.tool("b", () => ran.push("b"));
    expect(ran).toEqual(["b"]);
    expect(turn.open[0]).toMatchObject({ id: "a", approved: false });
    await store.close();
  });

  test("a tool that never settles keeps nobody from closing", async () => {
    const { store, session } = await begin();
    const turn = await session.startTurn(user("go"));
    await turn.append(calls("a"));
    const gate = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const tool = turn.tool("a", () => {
      started.resolve();
      return gate.promise;
    });
    const running = codeOf(tool);
    await started.promise;
    await store.close();
    gate.resolve();
    expect(await running).toBe("SESSION_CLOSED");
  });
});

function fail(error: unknown): never {
  throw error;
}

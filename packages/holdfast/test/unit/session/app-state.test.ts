import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type AnthropicMessage, type Entry, openStore, type Session, type StandardSchema, typedState } from "holdfast";
import { afterAll, expect, test } from "vitest";

type Message = AnthropicMessage;
const folder = mkdtempSync(join(tmpdir(), "holdfast-app-state-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const user = (content: string): Message => ({ role: "user", content });
const call = (id: string): Message => ({
  role: "assistant",
  content: [{ type: "tool_use", id, name: "buy", input: {} }],
});

/** Four turns, each with a prompt, a call, its outcome and an answer, and another state after each. */
async function talk(session: Session<Message>): Promise<Map<string, number>> {
  const states = new Map<string, number>();
  const note = (): void => void states.set(session.entries.at(-1)!.id, session.appState["n"] as number);
  for (let turn = 0; turn < 4; turn++) {
    const n = turn * 10;
    const started = await session.startTurn(user(`prompt ${turn}`), { appState: { n, [`turn ${turn}`]: true } });
    note();
    await started.append(call(`c${turn}`), { appState: { n: n + 1 } });
    note();
    await started.tool(`c${turn}`, () => "bought", {
      appState: (outcome) => ({ n: n + 2, outcome: outcome as never }),
    });
    note();
    const { draft } = started.request();
    await draft.commit({ role: "assistant", content: "done" }, { end: true, appState: { n: n + 3 } });
    note();
  }
  return states;
}

const upTo = (session: Session<Message>, at: string): Entry<Message>[] =>
  session.entries.slice(0, session.entries.findIndex(({ id }) => id === at) + 1);

test.each(["memory:", `${folder}/store`, `sqlite:${folder}/store.db`])(
  "each part of a conversation has its own state, over restarts, rewinds, undo and forks: %s",
  async (url) => {
    await using store = await openStore(url, { durability: "process" });
    let session = await store.create({ dialect: "anthropic" });
    const { id } = session;
    const states = await talk(session);
    const now = session.appState;
    expect(now).toEqual({
      ...{ n: 33, outcome: { value: "bought" } },
      ...{ "turn 0": true, "turn 1": true, "turn 2": true, "turn 3": true },
    });
    await session.close();
    expect((await store.read(id)).appState).toEqual(now);
    session = await store.resume(id, { dialect: "anthropic" });
    expect(session.appState).toEqual(now);
    for (const [index, [at, n]] of [...states].entries()) {
      if (index % 4 === 1) continue; // A call without its result cannot be the last that is kept.
      const turns = Object.keys(now).filter((name) => name.startsWith("turn ") && Number(name.slice(5)) * 10 <= n);
      const forked = await store.fork(id, { at, dialect: "anthropic" });
      expect(forked.appState["n"], at).toBe(n);
      expect(Object.keys(forked.appState).filter((name) => name.startsWith("turn "))).toEqual(turns);
      await forked.close();
      expect((await store.read(forked.id)).appState["n"]).toBe(n);
      await session.replace(upTo(session, at), { reason: "rewind" });
      expect(session.appState["n"], at).toBe(n);
      expect(session.appState["outcome"] === undefined).toBe(n < 2);
      await session.undo();
      expect(session.appState).toEqual(now);
    }
    await session.replace([], { reason: "clear" });
    expect(session.appState).toEqual({});
    await session.undo();
    expect(session.appState).toEqual(now);
    await session.close();
  },
);

test("a summary keeps the state; taking back what follows it gives the state from before", async () => {
  await using store = await openStore("memory:");
  let session = await store.create({ dialect: "anthropic" });
  const states = await talk(session);
  const [, , , last0, , , , last1] = [...states.keys()];
  await session.replace([user("a summary"), ...session.entries.slice(4)], { reason: "compaction" });
  expect(session.appState["n"]).toBe(33);
  const { id } = session;
  await session.close();
  session = await store.resume(id, { dialect: "anthropic" });
  await session.replace(upTo(session, last1!), { reason: "rewind" });
  expect(session.appState["n"]).toBe(13);
  await session.replace(session.entries.slice(0, 1), { reason: "rewind" });
  expect(session.appState["n"], "the summary stands for what was before").toBe(states.get(last0!));
  await session.undo();
  expect(session.appState["n"]).toBe(13);
  const next = await session.startTurn(user("again"), { appState: { n: 99, "turn 0": null } });
  await next.end();
  expect(session.appState).not.toHaveProperty("turn 0");
  const forked = await store.fork(id, { dialect: "anthropic" });
  await forked.replace(forked.entries.slice(0, 2), { reason: "rewind" });
  expect(forked.appState["n"], "of what a fork brought along no other state is known").toBe(99);
  await forked.close();
  await session.replace(session.entries.slice(0, -1), { reason: "rewind" });
  expect(session.appState).toMatchObject({ n: 13, "turn 0": true });
  await session.close();
});

test("state that was taken away comes back with the part that had it, also behind an epoch", async () => {
  await using store = await openStore("memory:");
  await using session = await store.create({ dialect: "anthropic" });
  const say = async (text: string, appState?: Record<string, null | number>): Promise<void> => {
    const turn = await session.startTurn(user(text), appState ? { appState } : {});
    await turn.append({ role: "assistant", content: text }, { end: true });
  };
  await say("one", { a: 1 });
  await say("two", { a: null });
  expect(session.appState).toEqual({});
  await session.replace(session.entries.slice(), { reason: "compaction" });
  await session.replace(session.entries.slice(0, 2), { reason: "rewind" });
  expect(session.appState).toEqual({ a: 1 });
  await say("three", { a: 3 });
  await say("four");
  // The past of another session does not count, nor does a message whose unit was refused.
  await expect(session.startTurn(user("bad"), { appState: { a: undefined as never } })).rejects.toMatchObject({
    code: "RECORD_INVALID",
  });
  expect(session.appState).toEqual({ a: 3 });
  await session.replace(session.entries.slice(0, -2), { reason: "rewind" });
  expect(session.appState, "what is dropped had none of its own").toEqual({ a: 3 });
});

test("state and message are in one unit, and a repeated message changes nothing", async () => {
  await using store = await openStore("memory:", { redact: "credentials" });
  await using session = await store.create({ dialect: "anthropic" });
  const key = `sk-ant-api03-${"a".repeat(90)}AA`;
  const turn = await session.startTurn(user("go"), { id: "p", key: "k", appState: { n: 1, secret: key } });
  const { seq } = await turn.append({ role: "assistant", content: "a" }, { id: "m", appState: { n: 2 } });
  await turn.append({ role: "assistant", content: "a" }, { id: "m", appState: { n: 3 } });
  await session.startTurn(user("go"), { key: "k", appState: { n: 4 } });
  expect(session.appState["n"]).toBe(2);
  expect(session.appState["secret"]).not.toContain("sk-ant");
  expect(session.entries.at(-1)!.seq).toBe(seq);
  const records = await Array.fromAsync(store.history(session.id));
  expect(records.filter(({ kind }) => kind === "state")).toHaveLength(3);
  for (const record of records.filter(({ unit }) => unit !== undefined)) {
    const unit = records.slice(record.seq - 1, record.seq - 1 + record.unit!).map(({ kind }) => kind);
    expect(unit.indexOf("state")).toBe(unit.indexOf("message") + 1);
  }
  const { seq: usedAt } = await turn.append(user("x"), { usage: { inputTokens: 1 }, appState: { n: 5, m: 6 } });
  expect(session.entries.at(-1)!.seq).toBe(usedAt);
});

test("a tool's outcome is recorded whatever becomes of its state", async () => {
  await using store = await openStore("memory:");
  await using session = await store.create({ dialect: "anthropic" });
  const turn = await session.startTurn(user("go"));
  await turn.append(call("c1"));
  const broken = new Error("no state");
  const tool = turn.tool("c1", () => 1, {
    appState: () => {
      throw broken;
    },
  });
  await expect(tool).rejects.toBe(broken);
  expect(turn.open).toEqual([]);
  expect(session.appState).toEqual({});
  await turn.append(call("c2"));
  await turn.toolStarted("c2");
  const bad = turn.toolEnded("c2", { value: 1 }, undefined, { appState: [] as never });
  await expect(bad).rejects.toMatchObject({ code: "RECORD_INVALID" });
  await turn.toolEnded("c2", { value: 2n ** 64n }, undefined, { appState: { ok: true } });
  expect(session.appState).toEqual({ ok: true });
  await turn.append(call("c3"));
  await turn.tool("c3", () => Promise.reject(new Error("failed")), {
    appState: ({ error }) => ({ failed: String(error) }),
  });
  expect(session.appState).toEqual({ ok: true, failed: "Error: failed" });
});

test("names and values are checked, and copied at the call", async () => {
  await using store = await openStore("memory:");
  await using session = await store.create({ dialect: "anthropic" });
  const refused: readonly (readonly [appState: unknown, code: string])[] = [
    [[], "RECORD_INVALID"],
    ["x", "RECORD_INVALID"],
    [{ "": 1 }, "RECORD_INVALID"],
    [{ ["x".repeat(257)]: 1 }, "RECORD_INVALID"],
    [{ a: undefined }, "RECORD_INVALID"],
    [{ a: new Date() }, "RECORD_NOT_JSON"],
    [{ a: 1n }, "RECORD_NOT_JSON"],
    [{ a: "x".repeat(63 * 1024 * 1024) }, "RECORD_TOO_LARGE"],
  ];
  for (const [appState, code] of refused)
    await expect(session.startTurn(user("go"), { appState: appState as never }), code).rejects.toMatchObject({
      code: expect.stringMatching(code === "RECORD_NOT_JSON" ? /NOT_JSON$/ : code),
    });
  await expect(session.enqueue(user("go"), { appState: { a: 1 } } as never)).rejects.toMatchObject({
    code: "RECORD_INVALID",
  });
  expect(session.entries).toEqual([]);
  const cart = { items: ["a"] };
  const started = session.startTurn(user("go"), { appState: { cart, ["__proto__"]: 1 } });
  cart.items.push("b");
  await started;
  expect(session.appState["cart"]).toEqual({ items: ["a"] });
  expect(Object.entries(session.appState)).toContainEqual(["__proto__", 1]);
  expect(() => (session.appState["cart"] as { items: string[] }).items.push("c")).toThrow(TypeError);
});

test("a typed state is checked when it is written and when it is read", async () => {
  interface Cart {
    readonly items: readonly string[];
  }
  const schema: StandardSchema<Cart> = {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: (value) => {
        const { items } = (value ?? {}) as Partial<Cart>;
        return Array.isArray(items) ? { value: { items } } : { issues: [{ message: "items must be a list" }] };
      },
    },
  };
  const cart = typedState("cart.v2", schema);
  await using store = await openStore("memory:");
  await using session = await store.create({ dialect: "anthropic" });
  expect(cart.of(session)).toBe(undefined);
  const turn = await session.startTurn(user("go"), { appState: cart.set({ items: ["a"] }) });
  const found: Cart | undefined = cart.of(session);
  expect(found).toEqual({ items: ["a"] });
  expect(() => cart.set({ items: 7 } as never)).toThrow(/items must be a list/);
  await turn.append({ role: "assistant", content: "x" }, { appState: { "cart.v2": "junk" } });
  expect(() => cart.of(session)).toThrow(expect.objectContaining({ code: "RECORD_INVALID" }));
  await turn.append({ role: "assistant", content: "y" }, { appState: cart.remove() });
  expect(cart.of(await store.read(session.id))).toBe(undefined);
  const late = typedState("late", {
    "~standard": { version: 1, vendor: "test", validate: async () => ({ value: 1 }) },
  });
  expect(() => late.set(1)).toThrow(/asynchronous/);
});

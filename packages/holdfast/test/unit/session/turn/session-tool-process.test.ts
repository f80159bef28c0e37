import { type AnthropicMessage, isHoldfastError, type OpenCall, openStore, type Session, type Store } from "holdfast";
import { afterEach, expect, test } from "vitest";
import { place } from "../../../place.ts";

/** R7b: the process that a tool runs in is recorded, and comes back with the call whose agent died. */

type M = AnthropicMessage;

const user = (text: string): M => ({ role: "user", content: text });
const calls = (...ids: string[]): M => ({
  role: "assistant",
  content: ids.map((id) => ({ type: "tool_use", id, name: "work", input: {} })) as never,
});
const GROUP = { pid: 4711, started: "boot/17", group: true } as const;

const opened: Disposable[] = [];
afterEach(() => {
  for (const one of opened.splice(0)) one[Symbol.dispose]();
});

async function begin(): Promise<{ store: Store; session: Session<M>; path: string }> {
  const here = place();
  opened.push(here);
  const store = await openStore(here.path, { recordsToolStarts: true });
  return { store, session: await store.create<M>({ dialect: "anthropic" }), path: here.path };
}

async function left(store: Store, path: string, id: string): Promise<readonly OpenCall[]> {
  await store.close();
  await using again = await openStore(path, { recordsToolStarts: true });
  return (await again.read<M>(id)).interruption!.calls;
}

const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "nothing",
    (error) => (isHoldfastError(error) ? error.code : error),
  );

test("R7b: the call of a tool whose agent is gone says in which process it ran; one without has none", async () => {
  const { store, session, path } = await begin();
  const turn = await session.startTurn(user("go"));
  await turn.append(calls("a", "b"));
  await turn.toolStarted("a");
  await turn.toolStarted("b");
  await turn.toolProcess("a", { pid: 1, started: "first" });
  await turn.toolProcess("a", GROUP);
  const found = await left(store, path, session.id);
  expect(found).toMatchObject([
    { id: "a", state: "outcome-unknown", process: GROUP },
    { id: "b", state: "outcome-unknown" },
  ]);
  expect(found[1]).not.toHaveProperty("process");
});

test("R7b: it is said also while turn.tool runs it, and after the turn was stopped", async () => {
  const { store, session, path } = await begin();
  const turn = await session.startTurn(user("go"));
  await turn.append(calls("a"));
  const working = Promise.withResolvers<string>();
  const said = Promise.withResolvers<void>();
  const ran = turn.tool("a", async () => {
    await turn.toolProcess("a", { pid: 5, started: "x" });
    said.resolve();
    return working.promise;
  });
  await said.promise;
  await turn.abort({ by: "user" });
  await turn.toolProcess("a", GROUP);
  expect(await left(store, path, session.id)).toMatchObject([{ id: "a", process: GROUP }]);
  working.resolve("too late");
  expect(await codeOf(ran)).toBe("SESSION_CLOSED");
});

test("R7b, R9: a tool that starts while the model still speaks keeps its process when its call is recorded", async () => {
  for (const isRecorded of [false, true]) {
    const { store, session, path } = await begin();
    const turn = await session.startTurn(user("go"));
    const { draft } = turn.request();
    draft.push({ call: { id: "a", name: "work" } });
    await turn.toolStarted("a", { name: "work", input: {} });
    await turn.toolProcess("a", GROUP);
    if (isRecorded) await draft.commit(calls("a"));
    expect(await left(store, path, session.id)).toMatchObject([{ id: "a", process: GROUP }]);
  }
});

test("R7b, R9: said when the call of an early tool has been recorded meanwhile, it is that call's", async () => {
  const { store, session, path } = await begin();
  const turn = await session.startTurn(user("go"));
  const { draft } = turn.request();
  await turn.toolStarted("a", { name: "work", input: {} });
  await draft.commit(calls("a"));
  await turn.toolProcess("a", GROUP);
  expect(await left(store, path, session.id)).toMatchObject([{ id: "a", message: draft.id, process: GROUP }]);
});

test("R9: two calls of one id, each with its own process", async () => {
  const { store, session, path } = await begin();
  const turn = await session.startTurn(user("go"));
  await turn.append(calls("call_0", "call_0"));
  await turn.toolStarted("call_0");
  await turn.toolStarted("call_0");
  await turn.toolProcess("call_0", { pid: 10, started: "x" });
  await turn.toolProcess("call_0", { pid: 11, started: "y" });
  const found = await left(store, path, session.id);
  expect(found.map(({ process }) => process?.pid)).toEqual([10, 11]);
});

test("S16: it lives on over a new epoch, and over the one after it", async () => {
  const { store, session, path } = await begin();
  const turn = await session.startTurn(user("go"));
  await turn.append(calls("a"));
  await turn.toolStarted("a");
  await turn.toolProcess("a", GROUP);
  await session.replace([user("summary"), ...session.entries.slice(-1)], { reason: "compaction" });
  await session.replace([...session.entries], { reason: "compaction" });
  expect(await left(store, path, session.id)).toMatchObject([{ id: "a", process: GROUP }]);
});

test("a turn that is resumed knows it while the call stays open; a new start has none", async () => {
  const { store, session, path } = await begin();
  const turn = await session.startTurn(user("go"));
  await turn.append(calls("a"));
  await turn.toolStarted("a", { replay: "safe" });
  await turn.toolProcess("a", GROUP);
  await store.close();
  const again = await openStore(path, { recordsToolStarts: true });
  const resumed = await again.resume<M>(session.id);
  const asked: unknown[] = [];
  const next = await resumed.resumeTurn({
    calls: (call) => {
      asked.push(call.process);
      return "keep";
    },
  });
  expect(asked).toEqual([GROUP]);
  expect(next.open).toMatchObject([{ id: "a", process: GROUP }]);
  await next.toolStarted("a", { replay: "safe" });
  const [call] = await left(again, path, session.id);
  expect(call).toMatchObject({ id: "a", state: "outcome-unknown" });
  expect(call).not.toHaveProperty("process");
});

test("CALL_UNKNOWN for a call whose tool was not started, or has ended: then nothing is recorded", async () => {
  const { store, session } = await begin();
  const turn = await session.startTurn(user("go"));
  await turn.append(calls("a", "b"));
  expect(await codeOf(turn.toolProcess("a", GROUP))).toBe("CALL_UNKNOWN");
  await turn.tool("a", () => "done");
  expect(await codeOf(turn.toolProcess("a", GROUP))).toBe("CALL_UNKNOWN");
  await store.close();
  expect(await codeOf(turn.toolProcess("b", GROUP))).toBe("SESSION_CLOSED");
});

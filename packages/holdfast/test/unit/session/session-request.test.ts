import { validateAnthropic } from "@holdfast/testkit";
import {
  type AiSdkMessage,
  type AnthropicMessage,
  type Draft,
  openStore,
  type Session,
  type Store,
  type Turn,
} from "holdfast";
import { describe, expect, test } from "vitest";
import { calls, says, user } from "./anthropic-messages.ts";

type M = AnthropicMessage;

async function begin(): Promise<{ store: Store; session: Session<M>; turn: Turn<M> }> {
  const store = await openStore("memory:", { recordsToolStarts: true });
  const session = await store.create<M>({ dialect: "anthropic", draftMs: 1 });
  return { store, session, turn: await session.startTurn(user("go")) };
}

async function records(store: Store, id: string, kind: string): Promise<Record<string, unknown>[]> {
  const all = await Array.fromAsync(store.history(id));
  return all.filter((record) => record.kind === kind);
}

describe("the answer to a request", () => {
  type Answer = (turn: Turn<M>, draft: Draft<M>) => Promise<unknown>;
  const ways: [how: string, answer: Answer][] = [
    ["committed", (_turn, draft) => draft.commit(says("I think"))],
    ["appended", (turn) => turn.append(says("I think"))],
    ["appended under its own id", (turn) => turn.append(says("I think"), { id: "mine" })],
  ];
  const streamed = ways.map(([how, answer]): (typeof ways)[number] => [
    `streamed and ${how}`,
    (turn, draft) => {
      draft.push({ text: "I" });
      return answer(turn, draft);
    },
  ]);
  ways.push(...streamed);

  test.each(ways)("R1: stands where it was requested, before what was said since: %s", async (_how, answer) => {
    const { store, session, turn } = await begin();
    await turn.append(calls("a", "b"));
    await turn.tool("a", () => "result of a");
    await turn.toolStarted("b");
    const { messages, draft } = turn.request();
    const sent = structuredClone(messages);
    await turn.append(user("hurry up"));
    await turn.toolEnded("b", { value: "result of b" });
    await answer(turn, draft);
    expect(session.messages.slice(0, sent.length)).toEqual(sent);
    expect(JSON.stringify(session.messages.slice(sent.length))).toMatch(/I think.*hurry up/);
    expect(validateAnthropic(session.messages as never)).toEqual([]);
    expect((await store.read<M>(session.id)).messages).toEqual(session.messages);
    await store.close();
  });

  test.each(ways)("is recorded once, and no draft is left: %s", async (_how, answer) => {
    const { store, session, turn } = await begin();
    const { draft } = turn.request();
    await answer(turn, draft);
    draft.push({ text: "too late" });
    await turn.abort({ by: "user" });
    expect(session.interruption).toMatchObject({ draft: null, answered: true });
    expect(session.messages).toHaveLength(2);
    await store.close();
  });

  test("R1: after a restart it stands where it was first requested, and nothing of the first stream is left", async () => {
    const { store, session, turn } = await begin();
    const { draft } = turn.request();
    draft.push({ text: "I wr" });
    await session.flush();
    await turn.append(user("hurry up"));
    const again = draft.restart();
    expect(again.id).not.toBe(draft.id);
    again.push({ text: "I think" });
    await again.commit(says("I think"));
    expect(JSON.stringify(session.messages)).toMatch(/go.*I think.*hurry up/);
    expect(JSON.stringify(session.messages)).not.toContain("I wr");
    expect(() => draft.restart()).toThrow(expect.objectContaining({ code: "DRAFT_DISCARDED" }));
    expect(() => again.restart()).toThrow(expect.objectContaining({ code: "DRAFT_DISCARDED" }));
    const { draft: last } = turn.request();
    await turn.end();
    expect(() => last.restart()).toThrow(expect.objectContaining({ code: "DRAFT_DISCARDED" }));
    expect((await store.read<M>(session.id)).messages).toEqual(session.messages);
    await store.close();
  });

  test("R1: with the steps and results that follow it in one append, all of it stands before what was said since", async () => {
    const { store, session, turn } = await begin();
    const { messages, draft } = turn.request();
    await turn.append(user("hurry up"));
    const result = { type: "tool_result", tool_use_id: "a", content: "result of a" };
    const steps: M[] = [calls("a"), { role: "user", content: [result as never] }, says("I think")];
    expect((await turn.append(steps)).id).toBe(draft.id);
    expect(session.messages).toEqual([...messages, ...steps, user("hurry up")]);
    expect((await store.read<M>(session.id)).messages).toEqual(session.messages);
    await turn.append(user("and now?"));
    expect(JSON.stringify(session.messages)).toMatch(/I think.*hurry up.*and now/);
    await store.close();
  });

  test("R1: appended together with words before it, it has seen them: all of it stands where it is appended", async () => {
    const { store, session, turn } = await begin();
    const { draft } = turn.request();
    draft.push({ text: "I wr" });
    await session.flush();
    await turn.append(user("hurry up"));
    const { ids } = await turn.append([user("this first"), says("I think")]);
    expect(ids).not.toContain(draft.id);
    expect(JSON.stringify(session.messages)).toMatch(/go.*hurry up.*this first.*I think/);
    await expect(draft.commit(says("late"))).rejects.toMatchObject({ code: "DRAFT_DISCARDED" });
    await turn.abort({ by: "user" });
    expect(session.interruption?.draft).toBeNull();
    expect((await store.read<M>(session.id)).messages).toEqual(session.messages);
    await store.close();
  });

  test("has the draft's id when it is appended; a commit of the same answer then finds it recorded", async () => {
    const { store, session, turn } = await begin();
    const { draft } = turn.request();
    expect(await turn.append(says("whole"))).toMatchObject({ id: draft.id });
    expect(await draft.commit(says("whole"))).toMatchObject({ id: draft.id });
    await expect(draft.commit(says("other"))).rejects.toMatchObject({ code: "MESSAGE_ID_TAKEN" });
    expect(session.entries).toHaveLength(2);
    await store.close();
  });

  test("may be appended item by item, without waiting: each item has its own id, and they stay one response", async () => {
    const { store, session, turn } = await begin();
    const { draft } = turn.request();
    const appended = await Promise.all([turn.append(says("first")), turn.append(calls("a")), turn.append(calls("b"))]);
    expect(new Set(appended.map(({ id }) => id)).size).toBe(3);
    expect(appended[0]?.id).toBe(draft.id);
    await turn.tool("a", () => "A");
    await turn.tool("b", () => "B");
    expect(JSON.stringify(session.messages)).toMatch(/first.*"a".*"b".*"A".*"B"/);
    expect(validateAnthropic(session.messages as never)).toEqual([]);
    await store.close();
  });

  test("is not what a person says meanwhile: that leaves the draft open", async () => {
    const { store, session, turn } = await begin();
    const { draft } = turn.request();
    const { id } = await turn.append(user("hurry up"));
    expect(id).not.toBe(draft.id);
    await draft.commit(says("yes"));
    expect(JSON.stringify(session.messages)).toMatch(/go.*yes.*hurry up/);
    await store.close();
  });
});

test("R1: an answer appended after a request closes the calls that were running, in the words the model saw", async () => {
  const { store, session, turn } = await begin();
  await turn.append(calls("a"));
  await turn.toolStarted("a");
  const { messages } = turn.request();
  await turn.append(says("while it runs"));
  await turn.toolEnded("a", { value: "A" });
  expect(session.messages.slice(0, messages.length)).toEqual(messages);
  expect(await records(store, session.id, "repair")).toHaveLength(1);
  await store.close();
});

test("reading the messages is not a request: items of one response stay one while its tools run", async () => {
  const { store, session, turn } = await begin();
  await turn.append(calls("a"));
  await turn.toolStarted("a");
  expect(session.messages).toHaveLength(3);
  await turn.append(calls("b"));
  await turn.toolEnded("a", { value: "A" });
  await turn.tool("b", () => "B");
  expect(await records(store, session.id, "repair")).toEqual([]);
  expect(JSON.stringify(session.messages)).toMatch(/"a".*"b".*"A".*"B"/);
  await store.close();
});

describe("a request that had nothing pushed writes no draft", () => {
  const ends: [how: string, end: (turn: Turn<M>, session: Session<M>) => unknown][] = [
    ["discarded", (turn) => turn.request().draft.discard()],
    ["requested again", (turn) => turn.request()],
    ["answered by commit", (turn) => turn.request().draft.commit(says("x"), { end: true })],
    ["answered by append", (turn) => turn.append(says("x"), { end: true })],
    ["ended", (turn) => turn.end()],
    ["aborted", (turn) => turn.abort({ by: "user" })],
    ["pushed nothing", (turn) => turn.request().draft.push({ text: "" })],
    ["flushed", (_turn, session) => session.flush()],
    ["closed", (_turn, session) => session.close()],
  ];
  test.each(ends)("%s", async (_how, end) => {
    const { store, session, turn } = await begin();
    turn.request();
    await end(turn, session);
    await session.close();
    expect(await records(store, session.id, "draft")).toEqual([]);
    await store.close();
  });
});

describe("request.messages", () => {
  test("is a mutable array of the SDK's own messages", async () => {
    const { store, turn } = await begin();
    const params: { model: string; messages: M[] } = { model: "x", ...turn.request() };
    params.messages.push(user("only for this request"));
    expect(params.messages).toHaveLength(2);
    await store.close();
  });

  test("is the caller's: what is done to it changes nothing that is recorded or shown", async () => {
    const { store, session, turn } = await begin();
    await turn.append(calls("a"));
    await turn.tool("a", () => "A");
    const shown = structuredClone(session.messages);
    for (const spoil of [
      (messages: M[]) => messages.reverse(),
      (messages: M[]) => messages.splice(0, 2, says("never said")),
      (messages: M[]) => messages.push(user("never said")),
      (messages: M[]) => Object.assign(messages, { 0: says("never said"), length: 1 }),
      (messages: M[]) => expect(() => Object.assign(messages[0]!, { content: "never said" })).toThrow(TypeError),
      (messages: M[]) => expect(() => (messages[1]!.content as unknown[]).pop()).toThrow(TypeError),
    ]) {
      const { messages } = turn.request();
      expect(messages).toEqual(shown);
      spoil(messages);
      expect(session.messages).toEqual(shown);
      expect(turn.request().messages).toEqual(shown);
    }
    await turn.request().draft.commit(says("done"), { end: true });
    expect((await store.read<M>(session.id)).messages).toEqual([...shown, says("done")]);
    await session.replace([...session.entries], { reason: "compaction" });
    expect(JSON.stringify(await Array.fromAsync(store.history(session.id)))).not.toContain("never said");
    await store.close();
  });

  test("holds copies of bytes, which cannot be frozen", async () => {
    await using store = await openStore("memory:", { recordsToolStarts: true });
    const session = await store.create<AiSdkMessage>({ dialect: "ai-sdk" });
    const image = { type: "image", image: Uint8Array.of(1, 2, 3), mediaType: "image/png" };
    const turn = await session.startTurn({ role: "user", content: [image] } as never);
    const bytesIn = (messages: readonly AiSdkMessage[]) =>
      (messages[0]!.content as unknown as [{ image: Uint8Array }])[0].image;
    bytesIn(turn.request().messages).fill(9);
    expect(bytesIn(turn.request().messages)).toEqual(Uint8Array.of(1, 2, 3));
    expect(bytesIn(session.messages)).toEqual(Uint8Array.of(1, 2, 3));
  });

  test("can be the beginning of an array for sync, which knows its messages", async () => {
    const { store, session, turn } = await begin();
    const { messages } = turn.request();
    messages.push(says("hello"));
    expect(await session.sync(messages)).toMatchObject({ appended: [expect.any(String)], epoch: false });
    expect(session.entries).toHaveLength(2);
    await store.close();
  });
});

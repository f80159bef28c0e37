import { cpSync } from "node:fs";
import { join } from "node:path";
import { validateAnthropic } from "@holdfast/testkit";
import { type AnthropicMessage, openStore, type ResumeOptions, type Session, type Store } from "holdfast";
import { afterEach, describe, expect, test } from "vitest";
import { place } from "../../../place.ts";

type M = AnthropicMessage;
const user = (text: string): M => ({ role: "user", content: text });
const says = (text: string): M => ({ role: "assistant", content: text });
const calls = (id: string): M => ({
  role: "assistant",
  content: [{ type: "tool_use", id, name: "look", input: {} }] as never,
});
const HANDLE = { provider: "openai", id: "resp_1" };

const opened: { [Symbol.asyncDispose](): PromiseLike<void> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

async function begin(options: Parameters<typeof openStore>[1] = {}): Promise<{ session: Session<M>; path: string }> {
  const here = place();
  opened.push({ [Symbol.asyncDispose]: async () => here[Symbol.dispose]() });
  const store = await openStore(here.path, options);
  opened.push(store);
  return { session: await store.create<M>({ dialect: "anthropic" }), path: here.path };
}

/** The session in another process, if this one were killed now (S13). */
async function killed({ path, session }: { path: string; session: Session<M> }): Promise<{
  store: Store;
  session: Session<M>;
  path: string;
}> {
  const copy = place();
  opened.push({ [Symbol.asyncDispose]: async () => copy[Symbol.dispose]() });
  cpSync(join(path, "sessions"), join(copy.path, "sessions"), { recursive: true });
  const store = await openStore(copy.path);
  opened.push(store);
  return { store, session: await store.resume<M>(session.id), path: copy.path };
}

const texts = ({ messages }: Session<M>): string[] => messages.map(({ content }) => JSON.stringify(content));

describe("a request that the provider has accepted", () => {
  test("its answer is fetched after a crash, and takes the place and id of the draft", async () => {
    const first = await begin();
    const turn = await first.session.startTurn(user("x"));
    const request = turn.request();
    expect(request.accepted).toBeNull();
    await request.draft.accepted(HANDLE);
    request.draft.push({ text: "half" });
    await first.session.flush();

    const second = await killed(first);
    const { session } = second;
    expect(session.interruption).toMatchObject({ accepted: { handle: HANDLE }, draft: { text: "half" } });
    const resumed = await session.resumeTurn();
    const again = resumed.request();
    expect(again.messages).toEqual(request.messages);
    expect(again.draft.id).toBe(request.draft.id);
    expect(again.accepted).toEqual({ handle: HANDLE, acceptedAt: expect.any(String), saidSince: false });
    // Its text is sent again from the start, as pieces of the same draft.
    again.draft.push({ text: "whole" });
    await session.flush();
    expect((await killed(second)).session.interruption).toMatchObject({
      draft: { text: "whole", gap: false },
      accepted: { handle: HANDLE },
    });
    const { id } = await again.draft.commit(says("whole"), { end: true });
    expect(id).toBe(request.draft.id);
    expect(texts(session)).toEqual(['"x"', '"whole"']);
    expect(session.interruption).toBeNull();
  });

  test("a crash while the answer is fetched leaves the handle for the next process", async () => {
    let life: { session: Session<M>; path: string } = await begin();
    const { draft } = (await life.session.startTurn(user("x"))).request();
    await draft.accepted(HANDLE);
    for (let n = 0; n < 3; n++) {
      life = await killed(life);
      expect(life.session.interruption?.accepted?.handle).toEqual(HANDLE);
      const again = (await life.session.resumeTurn()).request();
      expect(again.accepted?.handle).toEqual(HANDLE);
      again.draft.push({ text: `life ${n}` });
      await life.session.flush();
    }
    expect((await killed(life)).session.interruption?.draft).toMatchObject({ id: draft.id, text: "life 2" });
  });

  test("R1: the answer is placed where it was requested, before what was said since", async () => {
    const first = await begin();
    const turn = await first.session.startTurn(user("x"));
    await turn.request().draft.accepted(HANDLE);
    await turn.append(user("also y"));
    const { session } = await killed(first);
    const resumed = await session.resumeTurn();
    await resumed.append(user("and z"));
    const { accepted, draft } = resumed.request();
    expect(accepted).toMatchObject({ handle: HANDLE, saidSince: true });
    await draft.commit(says("about x"));
    expect(session.entries.map(({ message }) => message.content)).toEqual(["x", "about x", "also y", "and z"]);
    expect(resumed.request().accepted).toBeNull();
  });

  test("the second request is another one, and its crash finds no handle", async () => {
    const first = await begin();
    await (await first.session.startTurn(user("x"))).request().draft.accepted(HANDLE);
    const second = await killed(first);
    const turn = await second.session.resumeTurn();
    const gone = turn.request();
    const fresh = turn.request();
    expect(fresh.accepted).toBeNull();
    expect(fresh.draft.id).not.toBe(gone.draft.id);
    await expect(gone.draft.accepted("late")).rejects.toMatchObject({ code: "DRAFT_DISCARDED" });
    await second.session.flush();
    expect((await killed(second)).session.interruption?.accepted).toBeNull();
    await fresh.draft.accepted("batch_2");
    expect((await killed(second)).session.interruption?.accepted?.handle).toBe("batch_2");
  });

  test("a later handle replaces an earlier one", async () => {
    const first = await begin();
    const { draft } = (await first.session.startTurn(user("x"))).request();
    await draft.accepted("batch_1");
    await draft.accepted("resp_1");
    expect((await killed(first)).session.interruption?.accepted?.handle).toBe("resp_1");
  });

  test("an abort keeps it: the turn can be resumed, in this process too", async () => {
    const { session } = await begin();
    const turn = await session.startTurn(user("x"));
    const { draft } = turn.request();
    draft.push({ text: "half" });
    await draft.accepted(HANDLE);
    await turn.abort({ by: "user" });
    expect(session.interruption?.accepted?.handle).toEqual(HANDLE);
    const again = (await session.resumeTurn()).request();
    expect(again.accepted?.handle).toEqual(HANDLE);
    await again.draft.commit(says("whole"));
    expect(texts(session)).toEqual(['"x"', '"whole"']);
  });

  test("asked again after an answer, the turn is not answered, and nothing is said to the model", async () => {
    const first = await begin();
    const turn = await first.session.startTurn(user("x"));
    await turn.request().draft.commit(says("one"));
    const asked = turn.request();
    await asked.draft.accepted(HANDLE);
    const { session } = await killed(first);
    expect(session.interruption?.answered).toBe(false);
    const again = (await session.resumeTurn()).request();
    expect(again.accepted?.handle).toEqual(HANDLE);
    expect(again.messages).toEqual(asked.messages);
  });
});

describe("the handle no longer counts", () => {
  const ends: Record<string, (session: Session<M>) => Promise<unknown>> = {
    "the draft is discarded": ({ turn }) => turn!.request().draft.discard("another model is asked"),
    "an answer is appended": ({ turn }) => turn!.append(says("another")),
    "the turn is completed": ({ turn }) => turn!.end(),
  };
  test.each(Object.keys(ends))("%s", async (name) => {
    const first = await begin();
    await (await first.session.startTurn(user("x"))).request().draft.accepted(HANDLE);
    const second = await killed(first);
    await second.session.resumeTurn();
    await ends[name]!(second.session);
    const { session } = await killed(second);
    expect(session.interruption?.accepted ?? null).toBeNull();
  });

  test("a new prompt", async () => {
    const first = await begin();
    await (await first.session.startTurn(user("x"))).request().draft.accepted(HANDLE);
    const second = await killed(first);
    const turn = await second.session.startTurn(user("y"));
    expect(turn.request().accepted).toBeNull();
    await turn.abort({ by: "user" });
    expect(second.session.interruption?.accepted).toBeNull();
  });

  test("a replaced conversation", async () => {
    const first = await begin();
    await (await first.session.startTurn(user("x"))).request().draft.accepted(HANDLE);
    const { session } = await killed(first);
    await session.replace([user("summary")], { reason: "compaction" });
    expect(session.interruption?.accepted).toBeNull();
    expect((await session.resumeTurn()).request().accepted).toBeNull();
  });

  test("the text is kept as an incomplete message, with words about the interruption", async () => {
    const first = await begin();
    const { draft } = (await first.session.startTurn(user("x"))).request();
    await draft.accepted(HANDLE);
    draft.push({ text: "half" });
    await first.session.flush();
    const second = await killed(first);
    const turn = await second.session.resumeTurn({ draft: "keep" });
    expect(turn.request().accepted).toBeNull();
    expect(validateAnthropic(second.session.messages)).toEqual([]);
  });

  test("a tool had started before its call was recorded: the model is told", async () => {
    const first = await begin({ recordsToolStarts: true });
    const turn = await first.session.startTurn(user("x"));
    await turn.request().draft.accepted(HANDLE);
    await turn.toolStarted("c1", { name: "look", input: {} });
    const { session } = await killed(first);
    expect(session.interruption?.accepted?.handle).toEqual(HANDLE);
    const again = (await session.resumeTurn()).request();
    expect(again.accepted).toBeNull();
    expect(JSON.stringify(again.messages)).toContain("look");
  });

  test.each<ResumeOptions["calls"]>(["close", "rerun"])(
    "the model was told of calls that still ran (calls: %s)",
    async (how) => {
      const first = await begin({ recordsToolStarts: true });
      const turn = await first.session.startTurn(user("x"));
      await turn.request().draft.commit(calls("c1"));
      await turn.toolStarted("c1", { replay: "safe" });
      await turn.request().draft.accepted(HANDLE);
      const { session } = await killed(first);
      expect(session.interruption?.accepted?.handle).toEqual(HANDLE);
      expect((await session.resumeTurn({ calls: how! })).request().accepted).toBeNull();
    },
  );
});

describe("what is refused", () => {
  test.each([
    [null, "RECORD_INVALID"],
    [undefined, "RECORD_INVALID"],
    [() => 1, "RECORD_NOT_JSON"],
    ["x".repeat(20_000), "RECORD_TOO_LARGE"],
  ])("%o: %s, and the draft goes on", async (handle, code) => {
    const { session } = await begin();
    const { draft } = (await session.startTurn(user("x"))).request();
    await expect(draft.accepted(handle)).rejects.toMatchObject({ code });
    await draft.commit(says("y"));
    expect(texts(session)).toEqual(['"x"', '"y"']);
  });

  test("a handle that redaction would change: nothing could be fetched by it", async () => {
    const { session } = await begin({ redact: "credentials" });
    const { draft } = (await session.startTurn(user("x"))).request();
    await expect(draft.accepted({ key: `sk-ant-api03-${"a1B2".repeat(24)}` })).rejects.toMatchObject({
      code: "RECORD_INVALID",
    });
    await draft.accepted(HANDLE);
  });

  test("after the answer, and after the turn", async () => {
    const { session } = await begin();
    const turn = await session.startTurn(user("x"));
    const { draft } = turn.request();
    await draft.commit(says("y"));
    await expect(draft.accepted(HANDLE)).rejects.toMatchObject({ code: "DRAFT_DISCARDED" });
    const open = turn.request().draft;
    await turn.end();
    await expect(open.accepted(HANDLE)).rejects.toMatchObject({ code: "DRAFT_DISCARDED" });
  });

  test("what the application changes later changes nothing recorded", async () => {
    const first = await begin();
    const handle = { id: "resp_1" };
    const recorded = (await first.session.startTurn(user("x"))).request().draft.accepted(handle);
    handle.id = "resp_2";
    await recorded;
    expect((await killed(first)).session.interruption?.accepted?.handle).toEqual({ id: "resp_1" });
  });
});

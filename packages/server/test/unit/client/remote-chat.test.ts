import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { applyState, applyText, isSameSeries, itemEvents } from "../../../src/client/chat-mirror.ts";
import { ServerError } from "../../../src/client/client.ts";
import { RemoteChat } from "../../../src/client/remote-chat.ts";
import { RemoteHost } from "../../../src/client/remote-host.ts";
import type { ChatEvent, ChatState } from "../../../src/contract/host.ts";
import type { Item } from "../../../src/contract/item.ts";
import { POSITION } from "../../../src/schemas/events.ts";

// The test's clock does not reach this module by itself.
vi.mock("node:timers/promises", () => ({
  setTimeout: (ms: number, value: unknown, { signal }: { signal: AbortSignal }) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => resolve(value), ms);
      signal.addEventListener("abort", () => {
        clearTimeout(timer);
        reject(signal.reason);
      });
    }),
}));

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

const flush = async () => {
  for (let turn = 0; turn < 5; turn++) await vi.advanceTimersByTimeAsync(0);
};

const item = (id: string, text = id): Item => ({ kind: "answer", id, at: "", turn: 1, text });
const ask = (call: string, digest = call) => ({ call, digest });
const STATE = {
  id: "s",
  title: "t",
  status: "idle",
  isBusy: false,
  asks: [],
  queue: [],
  outputs: {},
  items: [],
  live: null,
};

interface Called {
  readonly operation: string;
  readonly input: object;
}

/** A server whose answers and events the test gives. */
function server() {
  const called: Called[] = [];
  const answers: Record<string, unknown> = { getTranscript: { version: "v.1", count: 1, items: [item("a")] } };
  const headers: Record<string, string> = {};
  const followed: { after: string | undefined; isBrief: boolean | undefined }[] = [];
  let connection = channel();
  const client = {
    url: "http://x",
    call: async (operation: string, input: object = {}, onAnswer?: (headers: object) => void) => {
      called.push({ operation, input });
      const { [operation]: given } = answers;
      const answer = typeof given === "function" ? await given(input) : given;
      onAnswer?.(headers);
      if (answer instanceof Error) throw answer;
      return answer;
    },
    events: (_id: string, options: { after?: string; isBrief?: boolean; signal: AbortSignal }) => {
      followed.push({ after: options.after, isBrief: options.isBrief });
      connection = channel();
      options.signal.addEventListener("abort", () => connection.end());
      return connection.read();
    },
  };
  let ids = 0;
  const say = async (name: string, data: object, lastId = `id-${++ids}`) => {
    connection.push({ name, data: JSON.stringify(data), lastId });
    await flush();
  };
  const state = (own: object, chat: object = {}) =>
    say("state", { whole: false, version: "v.1", position: "p.1", state: chat, ...own });
  return {
    ...{ client: client as never, called, answers, headers, followed, say, state },
    whole: (chat: object = {}, own: object = {}) => state({ whole: true, ...own }, chat),
    cut: async (error?: Error) => {
      connection.end(error);
      await flush();
    },
  };
}

/** What is pushed into it is read in order. */
function channel() {
  const waiting: (object | null)[] = [];
  let failure: Error | undefined;
  let wake = Promise.withResolvers<void>();
  const push = (one: object | null): void => {
    waiting.push(one);
    wake.resolve();
  };
  return {
    push,
    end: (error?: Error) => {
      failure = error;
      push(null);
    },
    async *read() {
      for (;;) {
        while (waiting.length === 0) {
          await wake.promise;
          wake = Promise.withResolvers<void>();
        }
        const one = waiting.shift();
        if (one === null) {
          if (failure) throw failure;
          return;
        }
        yield one as never;
      }
    },
  };
}

/** A chat of the server that is attached, and what its listener hears. */
async function attached(first: object = {}) {
  const there = server();
  let closings = 0;
  const attaching = RemoteChat.attach(there.client, { ...STATE, ...first, count: 9 } as never, () => closings++);
  await flush();
  await there.whole(first);
  const chat = await attaching;
  const heard: ChatEvent[] = [];
  chat.subscribe((event) => heard.push(event));
  return { ...there, chat, heard, closings: () => closings };
}

const refusal = (code: string, status: number) => new ServerError({ code, status, detail: code });

test("a chat is there when all of it is, and is followed from the end, in brief", async () => {
  const there = server();
  let isThere = false;
  const attaching = RemoteChat.attach(there.client, { ...STATE, count: 9 } as never, () => {});
  void attaching.then(() => (isThere = true));
  await flush();
  expect([isThere, there.followed]).toEqual([false, [{ after: "end", isBrief: true }]]);
  await there.whole({ title: "now" });
  const chat = await attaching;
  expect(chat.state).toEqual({ ...STATE, title: "now", items: [item("a")] });
  expect(there.called).toEqual([
    { operation: "getTranscript", input: { params: { id: "s" }, query: { from: 0, limit: 2000 } } },
  ]);
  await chat.close();
});

test("items are read page by page, from the beginning again if they change meanwhile", async () => {
  const there = server();
  const pages = [
    { version: "v.1", count: 2, items: [item("a")] },
    { version: "v.2", count: 2, items: [item("c")] },
    { version: "v.2", count: 2, items: [item("b")] },
    { version: "v.2", count: 2, items: [item("c")] },
  ];
  there.answers["getTranscript"] = () => pages.shift();
  const attaching = RemoteChat.attach(there.client, STATE as never, () => {});
  await flush();
  await there.whole();
  const chat = await attaching;
  expect(chat.state.items.map(({ id }) => id)).toEqual(["b", "c"]);
  expect(there.called.map(({ input }) => (input as { query: { from: number } }).query.from)).toEqual([0, 1, 0, 1]);
  await chat.close();
});

test("a session that cannot be followed is not attached", async () => {
  const there = server();
  const attaching = RemoteChat.attach(there.client, STATE as never, () => {});
  attaching.catch(() => {});
  await flush();
  await there.cut(refusal("SESSION_NOT_FOUND", 404));
  await expect(attaching).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
});

test("words, changes and items are shown, and told", async () => {
  const { chat, heard, say, state } = await attached();
  await say("text", { answer: "x", at: 0, channel: "text", text: "He" });
  await say("text", { answer: "x", at: 2, channel: "text", text: "llo" });
  expect(chat.state.live).toMatchObject({ text: "Hello" });
  await say("text", { answer: "y", at: 0, channel: "text", text: "New" });
  expect(chat.state.live).toMatchObject({ text: "New" });
  await state({ version: "v.2", items: { at: 1, remove: 0, insert: [item("b")] } }, { live: null, count: 2 });
  expect([chat.state.live, chat.state.items.map(({ id }) => id)]).toEqual([null, ["a", "b"]]);
  // Known already.
  await state({ version: "v.2", items: { at: 1, remove: 0, insert: [item("b")] } }, { title: "n" });
  expect([chat.state.title, chat.state.items.length]).toEqual(["n", 2]);
  expect(heard.map(({ type }) => type)).toEqual(["text", "text", "text", "item", "changed"]);
  // Of another series: the whole follows.
  await state({ version: "w.5", items: { at: 0, remove: 2, insert: [] } }, { title: "no" });
  expect([chat.state.title, chat.state.items.length]).toEqual(["n", 2]);
  await chat.close();
});

test("the whole state after a reconnect tells what was missed: items, questions, the connection", async () => {
  const there = await attached({ asks: [ask("known")] });
  const { chat, heard, cut, whole, followed, answers, called } = there;
  await there.say("record", { kind: "other" }, "7-ab");
  await cut();
  expect(heard).toMatchObject([{ type: "notice", level: "warning" }]);
  await vi.advanceTimersByTimeAsync(250);
  await flush();
  expect(called.at(-1)).toEqual({ operation: "openSession", input: { params: { id: "s" } } });
  expect(followed.at(-1)).toEqual({ after: "7-ab", isBrief: true });
  answers["getTranscript"] = { version: "v.3", count: 2, items: [item("a"), item("b")] };
  await whole({ asks: [ask("known"), ask("new")] }, { version: "v.3" });
  expect(heard.slice(1)).toMatchObject([
    { type: "item", item: { id: "b" } },
    { type: "changed" },
    { type: "permission.asked", ask: { call: "new" } },
    { type: "notice", level: "info" },
  ]);
  expect(chat.state.items).toHaveLength(2);
  // The same version: nothing is read again.
  const reads = called.length;
  await whole({}, { version: "v.3" });
  expect([called.length, heard.slice(5).map(({ type }) => type)]).toEqual([reads, ["changed"]]);
  await chat.close();
});

test("a lost connection is told once, and tried again less and less often", async () => {
  const { chat, heard, cut, followed, answers } = await attached();
  answers["openSession"] = refusal("SERVER_UNREACHABLE", 0);
  await cut(new Error("reset"));
  for (const waitMs of [250, 500, 1000, 2000, 4000, 5000, 5000]) {
    const before = followed.length;
    await vi.advanceTimersByTimeAsync(waitMs - 1);
    expect(followed).toHaveLength(before);
    await vi.advanceTimersByTimeAsync(1);
    await flush();
    expect(followed).toHaveLength(before + 1);
    await cut(refusal("SERVER_UNPROVEN", 401));
  }
  expect(heard.map((event) => event.type === "notice" && event.text)).toEqual([
    "The connection to the server was lost (reset). A running turn goes on there. Connecting again…",
  ]);
  await chat.close();
});

test("an event without an id is followed from the start; after a start-over all is read again", async () => {
  const { chat, say, cut, whole, followed, called } = await attached();
  await say("start-over", {}, "");
  await whole();
  expect(called.filter(({ operation }) => operation === "getTranscript")).toHaveLength(2);
  await say("start-over", {}, "");
  await cut();
  await vi.advanceTimersByTimeAsync(250);
  await flush();
  expect(followed.at(-1)?.after).toBe("start");
  await chat.close();
});

test.each([
  ["the session was deleted", (there: Awaited<ReturnType<typeof attached>>) => there.say("deleted", {})],
  ["the server refuses", (there: Awaited<ReturnType<typeof attached>>) => there.cut(refusal("SESSION_NOT_FOUND", 404))],
])("%s: the chat fails, says so, and can be opened again", async (_why, happen) => {
  const there = await attached({ isBusy: true, status: "running", asks: [] });
  const { chat, heard, closings } = there;
  let isSettled = false;
  const settled = chat.settled().then(() => (isSettled = true));
  await flush();
  expect(isSettled).toBe(false);
  await happen(there);
  await settled;
  expect(chat.state).toMatchObject({
    status: "idle",
    isBusy: false,
    live: null,
    failure: { code: "SESSION_NOT_FOUND" },
  });
  expect([heard, closings()]).toEqual([[{ type: "changed" }], 1]);
  await expect(chat.stop()).rejects.toMatchObject({ code: "SESSION_CLOSED" });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(there.followed).toHaveLength(1);
});

test("settled waits for the end, or for a question", async () => {
  const { chat, state, say } = await attached({ isBusy: true });
  const waiting = () => {
    const one = { isDone: false };
    void chat.settled().then(() => (one.isDone = true));
    return one;
  };
  const first = waiting();
  await state({ position: "p.2" }, { title: "still" });
  expect(first.isDone).toBe(false);
  await state({ position: "p.3" }, { asks: [ask("q")] });
  expect(first.isDone).toBe(true);
  await state({ position: "p.4" }, { asks: [] });
  const second = waiting();
  await say("record", { kind: "x" });
  expect(second.isDone).toBe(false);
  await state({ position: "p.5" }, { isBusy: false });
  expect(second.isDone).toBe(true);
  const third = waiting();
  await flush();
  expect(third.isDone).toBe(true);
  await chat.close();
});

test("a call is answered when what it did is shown here, also a refusal", async () => {
  const { chat, state, headers, answers, whole } = await attached();
  const calling = (work: Promise<unknown>) => {
    const one = { isDone: false };
    work.then(
      () => (one.isDone = true),
      () => (one.isDone = true),
    );
    return one;
  };
  headers[POSITION] = "p.3";
  const renamed = calling(chat.rename("n"));
  await flush();
  await state({ position: "p.2" });
  expect(renamed.isDone).toBe(false);
  await state({ position: "p.3" });
  expect(renamed.isDone).toBe(true);
  headers[POSITION] = "p.4";
  answers["clear"] = refusal("TURN_OPEN", 409);
  const refused = calling(chat.clear());
  await flush();
  expect(refused.isDone).toBe(false);
  await state({ position: "p.4" });
  expect(refused.isDone).toBe(true);
  // The server was restarted: the whole state shows it, whatever it is called.
  headers[POSITION] = "p.9";
  const lost = calling(chat.rename("m"));
  await flush();
  await state({ position: "q.1" });
  expect(lost.isDone).toBe(false);
  await whole({}, { position: "q.2" });
  expect(lost.isDone).toBe(true);
  // A server that names no position has the session not open.
  delete headers[POSITION];
  await chat.rename("o");
  headers[POSITION] = "q.99";
  const closed = calling(chat.rename("p"));
  await flush();
  await chat.close();
  await flush();
  expect(closed.isDone).toBe(true);
});

test("each method asks the server for its operation, with what it was given", async () => {
  const { chat, called, answers } = await attached({ asks: [ask("c", "digest")] });
  Object.assign(answers, { startTurn: { outcome: "queued" }, rewind: { prompt: "p" } });
  const image = { name: "n", mediaType: "image/png", data: "" };
  expect(await chat.prompt("t", [image])).toBe("queued");
  await chat.prompt("u");
  await chat.withdraw("i");
  await chat.finish();
  await chat.finish({ processes: "stop" });
  await chat.stop();
  await chat.resumeQueue();
  await chat.answer("c", "deny", "why");
  await chat.answer("gone", "allow");
  await chat.setModel("m");
  await chat.compact();
  await chat.clear();
  await chat.undo();
  expect(await chat.rewind("m")).toBe("p");
  await chat.rename("n");
  chat.leave();
  chat.setMode("plan");
  await flush();
  const params = { id: "s" };
  expect(called.slice(1).map(({ operation, input }) => [operation, input])).toEqual([
    ["startTurn", { params, body: { text: "t", images: [image] } }],
    ["startTurn", { params, body: { text: "u", images: [] } }],
    ["withdrawPrompt", { params: { id: "s", item: "i" } }],
    ["finishTurn", { params, body: { processes: "wait" } }],
    ["finishTurn", { params, body: { processes: "stop" } }],
    ["stopTurn", { params }],
    ["resumeQueue", { params }],
    ["answerPermission", { params, body: { call: "c", answer: "deny", reason: "why", digest: "digest" } }],
    ["answerPermission", { params, body: { call: "gone", answer: "allow" } }],
    ["changeSession", { params, body: { model: "m" } }],
    ["compact", { params }],
    ["clear", { params }],
    ["undo", { params }],
    ["rewind", { params, body: { message: "m" } }],
    ["changeSession", { params, body: { title: "n" } }],
    ["leaveTurn", { params }],
    ["changeSession", { params, body: { mode: "plan" } }],
  ]);
  await chat.close();
});

test("calls come after those that nobody waited for, whose failure is told", async () => {
  const { chat, called, answers, heard } = await attached();
  const { promise, resolve } = Promise.withResolvers<Error>();
  answers["leaveTurn"] = () => promise;
  chat.leave();
  const renamed = chat.rename("n");
  await flush();
  expect(called.at(-1)?.operation).toBe("leaveTurn");
  resolve(refusal("TURN_OPEN", 409));
  await renamed;
  expect(called.at(-1)?.operation).toBe("changeSession");
  expect(heard).toEqual([{ type: "notice", level: "warning", text: "TURN_OPEN" }]);
  await chat.close();
});

test("the end of a turn that no event told is known from its record, once", async () => {
  const { chat, heard, say, state } = await attached();
  const record = (turn: unknown, own: object = {}) => say("record", { kind: "turn.ended", turn, ...own });
  const after = async (ms: number) => {
    await vi.advanceTimersByTimeAsync(ms);
    return heard.splice(0);
  };
  await record(1, { outcome: "aborted", by: "user" });
  expect(await after(499)).toEqual([]);
  expect(await after(1)).toEqual([{ type: "turn.ended", outcome: "aborted", denied: 0, by: "user" }]);
  await record(1);
  await say("record", { kind: "turn.started", turn: 2 });
  await record("2");
  expect(await after(600)).toEqual([]);
  await record(2, { outcome: "left" });
  expect(await after(600)).toEqual([{ type: "turn.ended", outcome: "completed", denied: 0 }]);
  await record(3, { outcome: "failed" });
  expect(await after(600)).toEqual([{ type: "turn.ended", outcome: "failed", denied: 0 }]);
  // The event came as well: with the record, or before it.
  await record(4);
  await state({ event: { type: "turn.ended", outcome: "completed", denied: 0 }, turn: 4 });
  await record(4);
  expect(await after(600)).toHaveLength(1);
  // After a turn without a number, those that are known stay known.
  await state({ event: { type: "changed" } });
  await record(4);
  expect((await after(600)).map(({ type }) => type)).toEqual(["changed"]);
  await record(5);
  await chat.close();
  expect(await after(600)).toEqual([]);
});

test("who leaves hears nothing more, and a listener that fails disturbs nobody", async () => {
  const { chat, heard, state, followed, closings } = await attached();
  const warnings: unknown[] = [];
  const warned = vi.spyOn(process, "emitWarning").mockImplementation((warning) => void warnings.push(warning));
  const stop = chat.subscribe(() => {
    throw new Error("broken");
  });
  const others: ChatEvent[] = [];
  chat.subscribe((event) => others.push(event));
  await state({ position: "p.2" }, { title: "a" });
  expect([heard.length, others.length, warnings.length]).toEqual([1, 1, 1]);
  stop();
  await state({ position: "p.3" }, { title: "b" });
  expect([heard.length, warnings.length]).toEqual([2, 1]);
  warned.mockRestore();
  await chat.close();
  expect(closings()).toBe(1);
  await state({ position: "p.4" }, { title: "c" });
  await vi.advanceTimersByTimeAsync(60_000);
  expect([chat.state.title, heard.length, followed.length]).toEqual(["b", 2, 1]);
});

test("the mirror adds words by channel and call, and outputs up to their limit", () => {
  const state = { ...STATE } as unknown as ChatState;
  const text = (channel: string, said: string, id?: string) =>
    ({
      answer: "x",
      at: 0,
      channel,
      text: said,
      ...(id === undefined ? {} : { call: { id, name: `n${id}` } }),
    }) as never;
  let now = applyText(state, text("input", "{", "1"), null);
  now = applyText(now.state, text("input", "[", "2"), "x");
  now = applyText(now.state, text("input", "}", "1"), "x");
  now = applyText(now.state, text("input", "?"), "x");
  expect(now.state.live?.calls).toEqual([
    { id: "1", name: "n1", input: "{}" },
    { id: "2", name: "n2", input: "[" },
    { id: "", name: "", input: "?" },
  ]);
  expect(now.events).toEqual([]);
  now = applyText(now.state, text("reasoning", "hm"), "x");
  expect([now.state.live?.reasoning, now.state.live?.calls.length, now.events]).toEqual([
    ...["hm", 3, [{ type: "reasoning", text: "hm" }]],
  ]);
  expect(applyText(now.state, text("text", "a"), "other").state.live).toEqual({ text: "a", reasoning: "", calls: [] });

  const output = (before: ChatState, said: string) =>
    applyState(before, { state: {}, event: { type: "tool.output", call: "c", text: said } } as never);
  const long = output(output(state, "one ").state, "two");
  expect([long.state.outputs, long.events.length]).toEqual([{ c: "one two" }, 1]);
  expect(output(long.state, "x".repeat(16_384)).state.outputs["c"]).toBe("x".repeat(16_384));
  expect(output(state, `😀${"y".repeat(16_383)}`).state.outputs["c"]).toBe("y".repeat(16_383));
});

test("a change is told by its event, else by its items, else as a change", () => {
  const state = { ...STATE, items: [item("a")] } as unknown as ChatState;
  const events = (own: object) => applyState(state, { state: {}, ...own } as never).events.map(({ type }) => type);
  const items = { at: 1, remove: 0, insert: [item("b")] };
  expect(events({})).toEqual([]);
  expect(events({ state: { count: 1 } })).toEqual([]);
  expect(events({ state: { title: "x" } })).toEqual(["changed"]);
  expect(events({ state: { title: "x" }, items })).toEqual(["item"]);
  expect(events({ whole: true, items })).toEqual(["item", "changed"]);
  expect(events({ event: { type: "notice" }, items, whole: true })).toEqual(["item", "notice"]);
  expect(applyState(state, { state: { count: 2, title: "x" }, items } as never).state).toEqual({
    ...{ ...state, title: "x" },
    items: [item("a"), item("b")],
  });
  expect(itemEvents([item("a"), item("b")], [item("a"), item("b", "other"), item("c")])).toMatchObject([
    { item: { id: "b" } },
    { item: { id: "c" } },
  ]);
  expect([isSameSeries("a.1", "a.2"), isSameSeries("a.1", "b.1"), isSameSeries("a.1", null)]).toEqual([
    true,
    false,
    false,
  ]);
});

test("a host in a server asks for what it is asked, and leaves out what nobody said", async () => {
  const { client, called, answers, state, whole } = server();
  const session = { id: "s", state: STATE };
  Object.assign(answers, {
    ...{ getServer: { store: null, warnings: ["w"] }, listSessions: { sessions: [] }, searchSessions: { hits: [1] } },
    ...{ getPrompts: { prompts: ["p"] }, createSession: session, openSession: session, forkSession: session },
    ...{ openLatest: { session: null }, getUnfinished: { session: null } },
  });
  const host = await RemoteHost.connect(client);
  expect([host.store, host.warnings]).toEqual(["http://x", ["w"]]);
  const last = () => called.filter(({ operation }) => operation !== "getTranscript").at(-1)?.input;
  await host.list();
  expect(last()).toEqual({ query: {} });
  await host.list({ limit: 5, empty: true, parent: undefined, labels: { a: "b" } } as never);
  expect(last()).toEqual({ query: { limit: "5", empty: "true", parent: undefined, label: ["a=b"] } });
  expect(await Array.fromAsync(host.search(" "))).toEqual([]);
  expect(last()).toEqual({ query: { limit: "5", empty: "true", parent: undefined, label: ["a=b"] } });
  expect(await Array.fromAsync(host.search("x"))).toEqual([1]);
  expect(last()).toEqual({ query: { q: "x", limit: 1000 } });
  expect(await host.peek("s")).toEqual([item("a")]);
  expect(called.at(-1)?.input).toEqual({ params: { id: "s" }, query: { last: 40 } });
  expect([await host.prompts("/w", "e"), await host.unfinished("/w"), await host.latest("/w")]).toEqual([
    ["p"],
    null,
    null,
  ]);
  expect(last()).toEqual({ body: { cwd: "/w" } });
  await host.latest("/w", { model: "m" });
  expect(last()).toEqual({ body: { cwd: "/w", model: "m" } });
  const made = host.create({ cwd: "/w" });
  await flush();
  expect(last()).toEqual({ body: { cwd: "/w", keep: false } });
  await whole();
  const chat = await made;
  // It is the same one while it is open.
  const forked = host.fork("s");
  await flush();
  expect([await forked, await host.open("s")]).toEqual([chat, chat]);
  expect(last()).toEqual({ params: { id: "s" }, body: {} });
  const all = { cwd: "/w", model: "m", title: "t", labels: { a: "b" }, keep: true, finishAfterRestart: true } as const;
  expect(await host.create(all)).toBe(chat);
  expect(last()).toEqual({ body: all });
  await state({ position: "p.2" }, { title: "seen" });
  await host.close();
  await expect(chat.stop()).rejects.toMatchObject({ code: "SESSION_CLOSED" });
  const again = host.open("s", { model: "m" });
  await flush();
  expect(last()).toEqual({ params: { id: "s" }, body: { model: "m" } });
  await whole();
  expect(await again).not.toBe(chat);
  await host.close();
});

import { expect, test } from "vitest";
import { serverHandlers } from "../../../src/handlers/server.ts";
import { sessionHandlers } from "../../../src/handlers/sessions.ts";
import { Streams } from "../../../src/handlers/streams.ts";
import { turnHandlers } from "../../../src/handlers/turns.ts";

/** Work that ends when the test says so, and what was asked of it. */
function worker(names: readonly string[], answers: Readonly<Record<string, unknown>> = {}) {
  const [calls, gates]: [unknown[][], (() => void)[]] = [[], []];
  const work = Object.fromEntries(
    names.map((name) => [
      name,
      (...given: unknown[]) => {
        calls.push([name, ...given]);
        return new Promise((resolve) => gates.push(() => resolve(answers[name])));
      },
    ]),
  );
  const open = (): void => {
    for (const gate of gates.splice(0)) gate();
  };
  return { work, calls, open };
}

const flush = () => new Promise((resolve) => setImmediate(resolve));

/** True if the answer waits for all the work that it starts. */
async function waits(answer: Promise<unknown>, open: () => void, steps = 1): Promise<boolean> {
  let isAnswered = false;
  void answer.then(() => (isAnswered = true));
  for (let step = 0; step < steps; step++) {
    await flush();
    if (isAnswered) return false;
    open();
  }
  await flush();
  return isAnswered;
}

const params = { id: "s", item: "i" };
const TURNS: [
  operation: keyof typeof turnHandlers,
  input: object,
  call: unknown[],
  answer: { status: number; body?: unknown },
  returns?: unknown,
][] = [
  [
    "startTurn",
    { body: { text: "t", images: [1] } },
    ["prompt", "t", [1], undefined],
    { status: 202, body: { outcome: "q" } },
    "q",
  ],
  ["stopTurn", {}, ["stop"], { status: 204 }],
  [
    "finishTurn",
    { body: { processes: "stop" } },
    ["finish", { processes: "stop" }],
    { status: 202, body: { outcome: "started" } },
  ],
  ["withdrawPrompt", {}, ["withdraw", "i"], { status: 204 }],
  ["resumeQueue", {}, ["resumeQueue"], { status: 204 }],
  ["compact", {}, ["compact"], { status: 204 }],
  ["clear", {}, ["clear"], { status: 204 }],
  ["undo", {}, ["undo"], { status: 204 }],
  ["rewind", { body: { message: "m" } }, ["rewind", "m"], { status: 200, body: { prompt: "p" } }, "p"],
  [
    "answerPermission",
    { body: { call: "c", answer: "allow", reason: "r" } },
    ["answer", "c", "allow", "r"],
    { status: 204 },
  ],
];

const NAMES = ["prompt", "stop", "finish", "withdraw", "resumeQueue", "compact", "clear", "undo", "rewind", "answer"];

test.each(TURNS)("%s is answered when the chat has done it", async (operation, input, call, answer, returns) => {
  const { work, calls, open } = worker(NAMES, returns === undefined ? {} : { [String(call[0])]: returns });
  const run = (_id: string, act: (chat: object) => unknown) => Promise.resolve(act({ ...work, state: { asks: [] } }));
  const hosting = { feed: () => ({}), use: run, start: run };
  const handle = turnHandlers[operation] as unknown as (input: object, context: object) => Promise<unknown>;
  const answered = handle({ params, ...input }, { hosting });
  expect(await waits(answered, open)).toBe(true);
  expect([calls, await answered]).toEqual([[call], answer]);
});

test("an answer to another question than was shown is refused, one to the same is given", async () => {
  const { work, calls, open } = worker(["answer"]);
  const asks = [
    { call: "other", digest: "x" },
    { call: "c", digest: "now" },
  ];
  const hosting = { use: async (_id: string, act: (chat: object) => unknown) => act({ ...work, state: { asks } }) };
  const answer = (own: object) =>
    turnHandlers.answerPermission(
      { params, body: { call: "c", answer: "allow", ...own } } as never,
      { hosting } as never,
    );
  await expect(answer({ digest: "before" })).rejects.toMatchObject({
    code: "ALREADY_ANSWERED",
    facts: { digest: "now" },
  });
  expect(calls).toEqual([]);
  for (const own of [{ digest: "now" }, {}, { call: "gone", digest: "x" }]) {
    const answered = answer(own);
    expect(await waits(answered as Promise<unknown>, open)).toBe(true);
  }
  expect(calls).toHaveLength(3);
});

test("of a session that is not open here, nothing is stopped, and the queue and the questions are read", async () => {
  const used: string[] = [];
  const context = (own: object) => ({
    hosting: {
      feed: () => null,
      host: { sessions: { read: async () => own }, queue: () => ["q"], account: (can: object) => ({ can }) },
      use: async (_id: string, act: (chat: object) => unknown) => {
        used.push("use");
        return act({ state: { asks: ["a"] } });
      },
    },
  });
  const call = (operation: "stopTurn" | "getQueue" | "getPermissions", own: object = {}) =>
    turnHandlers[operation]({ params } as never, context(own) as never);
  expect(await call("stopTurn")).toEqual({ status: 204 });
  expect(await call("getQueue")).toEqual({ status: 200, body: { queue: ["q"] } });
  expect(await call("getPermissions")).toEqual({ status: 200, body: { asks: [] } });
  expect(await call("getPermissions", { finish: { no: "held-by" } })).toEqual({ status: 200, body: { asks: [] } });
  expect(used).toEqual([]);
  expect(await call("getPermissions", { finish: true })).toEqual({ status: 200, body: { asks: ["a"] } });
  const open = { hosting: { feed: () => ({ chat: { state: { queue: ["here"] } } }) } };
  expect(await turnHandlers.getQueue({ params } as never, open as never)).toEqual({
    status: 200,
    body: { queue: ["here"] },
  });
});

const reading = { id: "s", attributes: { title: "t", labels: {} }, interruption: null, running: null };

/** As much of a server as the handlers of sessions need; its work ends when the test says so. */
function sessions(own: { feed?: object | null; has?: boolean } = {}) {
  const names = [
    "create",
    "latest",
    "fork",
    "delete",
    "restore",
    "heal",
    "close",
    "setModel",
    "rename",
    "reading",
    "read",
  ];
  const made = worker(names, {
    ...{ create: { id: "s" }, latest: { id: "s" }, fork: { id: "s" }, heal: "healed" },
    reading: { reading, cursor: null },
  });
  const { work, calls } = made;
  const note =
    (name: string) =>
    (...given: unknown[]) =>
      void calls.push([name, ...given]);
  const hosting = {
    ...{ reading: work["reading"], close: (id: string) => work["close"]!(id), keep: note("keep") },
    feed: () => own.feed ?? null,
    assertAccepting: note("assertAccepting"),
    use: async (_id: string, act: (chat: object) => unknown) => act({ ...work, setMode: note("setMode") }),
    host: {
      ...{ create: work["create"], latest: work["latest"], fork: work["fork"] },
      ...{ items: () => [], queue: () => [], interruption: () => null, account: () => ({}), damageWords: () => [] },
      finishesAfterRestart: () => false,
      setFinishesAfterRestart: note("setFinishes"),
      sessions: { ...work, has: async () => own.has ?? true },
    },
  };
  const handle = (operation: keyof typeof sessionHandlers, input: object) =>
    (sessionHandlers[operation] as unknown as (input: object, context: object) => Promise<{ status: number }>)(
      { params, ...input },
      { hosting },
    );
  return { ...made, handle, hosting };
}

const SESSIONS: [operation: keyof typeof sessionHandlers, input: object, calls: unknown[][], status: number][] = [
  [
    "createSession",
    { body: { cwd: "/w" } },
    [["assertAccepting"], ["create", { cwd: "/w" }], ["keep", { id: "s" }], ["reading", "s"]],
    201,
  ],
  [
    "createSession",
    { body: { cwd: "/w", model: "m", title: "t", labels: { a: "b" }, keep: true, finishAfterRestart: true } },
    [
      ["assertAccepting"],
      ["create", { cwd: "/w", model: "m", title: "t", labels: { a: "b" }, keep: true }],
      ["setFinishes", "s", true],
      ["keep", { id: "s" }],
      ["reading", "s"],
    ],
    201,
  ],
  [
    "openLatest",
    { body: { cwd: "/w", model: "m" } },
    [["assertAccepting"], ["latest", "/w", { model: "m" }], ["keep", { id: "s" }], ["reading", "s"]],
    200,
  ],
  [
    "forkSession",
    { body: { at: "m", cwd: "/w" } },
    [["assertAccepting"], ["fork", "s", { at: "m", cwd: "/w" }], ["keep", { id: "s" }], ["reading", "s"]],
    201,
  ],
  ["forkSession", { body: {} }, [["assertAccepting"], ["fork", "s", {}], ["keep", { id: "s" }], ["reading", "s"]], 201],
  [
    "changeSession",
    { body: { title: "t", model: "m", mode: "plan", finishAfterRestart: false } },
    [
      ["setModel", "m"],
      ["rename", "t"],
      ["setMode", "plan"],
      ["setFinishes", "s", false],
      ["reading", "s"],
    ],
    200,
  ],
  ["changeSession", { body: {} }, [["reading", "s"]], 200],
  ["getSession", {}, [["reading", "s"]], 200],
  [
    "deleteSession",
    {},
    [
      ["close", "s"],
      ["delete", "s"],
    ],
    204,
  ],
  ["restoreSession", {}, [["restore", "s"]], 204],
  ["closeSession", {}, [["close", "s"]], 204],
  [
    "healSession",
    {},
    [
      ["close", "s"],
      ["heal", "s"],
    ],
    200,
  ],
];

test.each(SESSIONS)("%s is answered when all is done, in order", async (operation, input, expected, status) => {
  const { handle, calls, open } = sessions();
  const answered = handle(operation, input);
  let isAnswered = false;
  void answered.then(() => (isAnswered = true));
  const seen: number[] = [];
  for (let step = 0; step < 9 && !isAnswered; step++) {
    await flush();
    seen.push(calls.length);
    open();
    await flush();
  }
  expect([calls, (await answered).status]).toEqual([expected, status]);
  // Each step waited for the one before it: no two that take time were under way at once.
  const slow = expected.filter(
    ([name]) => !["keep", "assertAccepting", "setFinishes", "setMode"].includes(String(name)),
  );
  expect(seen).toHaveLength(slow.length);
});

test("a session that is neither open nor there is not closed without a word", async () => {
  const gone = sessions({ has: false });
  void gone.handle("closeSession", {});
  await flush();
  expect(gone.calls).toEqual([["read", "s"]]);
  const open = sessions({ has: false, feed: {} });
  void open.handle("closeSession", {});
  await flush();
  expect(open.calls).toEqual([["close", "s"]]);
});

test("a list says which sessions are open here, and asks for labels as they are written", async () => {
  const asked: object[] = [];
  const feed = (id: string) => (id === "a" ? { chat: { state: { status: "running" } } } : null);
  const page = {
    sessions: [
      { id: "a", status: "idle" },
      { id: "b", status: "idle" },
    ],
    next: "n",
  };
  const list = async (query: object) => {
    asked.push(query);
    return asked.length === 1 ? page : { sessions: [] };
  };
  const handle = (query: object) =>
    sessionHandlers.listSessions({ query } as never, { hosting: { feed, host: { list } } } as never);
  expect(await handle({ limit: 5, label: ["a=b=c", "d="], unreadable: true })).toEqual({
    status: 200,
    body: {
      sessions: [
        { id: "a", status: "running", here: true },
        { id: "b", status: "idle", here: false },
      ],
      next: "n",
    },
  });
  expect(await handle({ unreadable: false })).toEqual({ status: 200, body: { sessions: [] } });
  expect(asked).toEqual([{ limit: 5, labels: { a: "b=c", d: "" }, unreadable: true }, {}]);
});

test("a search tells what it found, and where it could not look", async () => {
  const search = async function* (
    _q: string,
    _options: object,
    hear: { onIncomplete: (id: string, why: unknown) => void },
  ) {
    hear.onIncomplete("x", { message: "damaged" });
    hear.onIncomplete("y", null);
    yield { session: "a" };
  };
  const context = { hosting: { host: { sessions: { search } } } };
  expect(await sessionHandlers.searchSessions({ query: { q: "q", limit: 1 } } as never, context as never)).toEqual({
    status: 200,
    body: {
      hits: [{ session: "a" }],
      incomplete: [
        { session: "x", why: "damaged" },
        { session: "y", why: null },
      ],
    },
  });
});

test("a reader of one session learns nothing of the server but its version", () => {
  const hosting = { host: { store: "file:x", warnings: ["w"] }, isStopping: false };
  const ask = (caller: object | null) =>
    serverHandlers.getServer({} as never, { caller, hosting, version: "1", facts: { model: "m", cwd: "/w" } } as never);
  const common = { version: "1", stopping: false };
  expect(ask({ access: "owner" })).toMatchObject({
    body: {
      ...common,
      store: "file:x",
      warnings: ["w"],
      access: "owner",
      session: null,
      models: { default: "m" },
      cwd: "/w",
    },
  });
  const nothing = { store: null, warnings: [], models: null, cwd: null, access: "read" };
  expect(ask({ access: "read", session: "s" })).toMatchObject({ body: { ...common, ...nothing, session: "s" } });
  expect(ask(null)).toMatchObject({ body: { ...common, ...nothing, session: null } });
});

/** A stream that says how often it was ended. */
function stream(waitingBytes = 0) {
  const ending = new AbortController();
  const one = { signal: ending.signal, waitingBytes, ends: 0, end: () => {} };
  one.end = () => {
    one.ends++;
    ending.abort();
  };
  return one;
}

const owner = { access: "owner" } as never;
const reader = (share: string) => ({ access: "read", share, session: "s" }) as never;

test("there are so many event streams and no more; readers have half, and each link its share", () => {
  const streams = new Streams(6, 2);
  const code = (caller: never) => {
    try {
      return streams.reserve(caller);
    } catch (error) {
      return (error as { code: string }).code;
    }
  };
  const [first] = [streams.reserve(reader("a"))];
  streams.reserve(reader("a"));
  expect(code(reader("a"))).toBe("TOO_MANY_STREAMS");
  streams.reserve(reader("b"));
  expect(code(reader("b"))).toBe("TOO_MANY_STREAMS");
  first();
  expect(code(reader("b"))).toBeTypeOf("function");
  for (let n = 0; n < 3; n++) streams.reserve(owner);
  expect(code(owner)).toBe("TOO_MANY_STREAMS");
  expect(streams.count).toBe(0);
});

test("open streams are counted until they end, and all of them can be ended", () => {
  const streams = new Streams(2, 2);
  const [one, other] = [stream(3), stream(4)];
  streams.add(one as never, owner);
  streams.add(other as never, reader("a"));
  expect([streams.count, streams.waitingBytes]).toEqual([2, 7]);
  expect(() => streams.reserve(owner)).toThrow();
  one.end();
  expect([streams.count, streams.waitingBytes]).toEqual([1, 4]);
  streams.add(stream() as never, owner);
  streams.endInvalid({
    invalidAmong: (callers: readonly { access: string }[]) => callers.filter(({ access }) => access === "read"),
  } as never);
  expect([other.ends, streams.count]).toEqual([1, 1]);
  const last = stream();
  streams.add(last as never, owner);
  streams.end();
  expect([last.ends, other.ends, streams.count]).toEqual([1, 1, 0]);
});

import { expect, test, vi } from "vitest";
import { AT, FOLDER, type ScriptedChat, type Served, scriptedChat, served } from "../../served.ts";

// biome-ignore lint/suspicious/noExplicitAny: messages as they are on the wire.
type Any = any;

const sessionId = "s1";
const blocks = (...texts: string[]) => texts.map((text) => ({ type: "text", text }));
const chunk = (sessionUpdate: string, text: string) => ({ sessionUpdate, content: { type: "text", text } });
const said = (text: string) => expect.objectContaining(chunk("agent_message_chunk", text));
const thought = (text: string) => expect.objectContaining(chunk("agent_thought_chunk", text));
const content = (text: string) => ({ type: "content", content: { type: "text", text } });
const call = (id: string, state: string, more: object = {}) => ({
  ...{ kind: "call", id: `i-${id}`, at: AT, turn: 1, call: id, name: "shell", input: {}, state },
  ...more,
});
const update = (toolCallId: string, more: object) =>
  expect.objectContaining({ sessionUpdate: "tool_call_update", toolCallId, ...more });
const started = (toolCallId: string) => expect.objectContaining({ sessionUpdate: "tool_call", toolCallId });
const item = (kind: string, text: string) => ({ type: "item", item: { kind, id: `m-${text}`, at: AT, turn: 1, text } });
const choices = [
  { answer: "allow", label: "Allow" },
  { answer: "deny", label: "Deny" },
  { answer: "deny", label: "Deny, and say why", asksWhy: true },
];
const ask = (id: string) => ({
  ...{ call: id, name: "shell", input: { command: "make" }, choices },
  parts: [{ kind: "text", label: "command", text: "make" }],
});

/** A session that was just opened, and what the editor does. */
async function opened(
  change: Parameters<typeof scriptedChat>[1] = {},
  options: Parameters<typeof served>[1] = {},
): Promise<{ chat: ScriptedChat; editor: Served; emit: (...events: object[]) => Promise<Any[]> }> {
  const chat = scriptedChat(sessionId, change);
  const editor = await served({ create: async () => chat.chat, open: async () => chat.chat }, options);
  await editor.ask("session/load", { sessionId, ...FOLDER });
  await expect.poll(() => JSON.stringify(editor.sent)).toContain("usage_update");
  await editor.shown(chat);
  const emit = async (...events: object[]): Promise<Any[]> => {
    const all: Any[] = [];
    // One at a time: what waits is merged.
    for (const event of events) {
      chat.emit(event);
      all.push(...(await editor.shown(chat)));
    }
    return all;
  };
  return { chat, editor, emit };
}

test("a session that begins tells its commands, its usage with the cost, and what is wrong with it", async () => {
  const chat = scriptedChat(sessionId, {
    usage: { cost: { amount: 2, currency: "USD" } },
    damage: ["A line was skipped."],
  });
  const editor = await served({ create: async () => chat.chat });
  const answer = await editor.ask("session/new", FOLDER);
  expect(answer.result).toMatchObject({
    sessionId,
    modes: { currentModeId: "ask", availableModes: [{ id: "ask" }, { id: "accept edits" }, { id: "plan" }] },
    configOptions: [{ id: "model", currentValue: "offline/one", options: [{}, { value: "offline/two" }] }],
  });
  await expect.poll(() => JSON.stringify(editor.sent)).toContain("A line was skipped.");
  const [commands, usage, damage] = await editor.shown(chat);
  expect(commands.availableCommands.map(({ name }: Any) => name)).toContain("compact");
  expect(commands.availableCommands.find(({ name }: Any) => name === "rename").input).toEqual({ hint: "title" });
  expect(commands.availableCommands.find(({ name }: Any) => name === "undo")).not.toHaveProperty("input");
  expect(usage).toEqual({ sessionUpdate: "usage_update", used: 3, size: 9, cost: { amount: 2, currency: "USD" } });
  expect(damage).toEqual(thought("A line was skipped."));
});

const EVENTS: readonly (readonly [name: string, state: object, events: readonly object[], expected: readonly Any[]])[] =
  [
    [
      "what was streamed is not shown again when it is recorded, the rest of it is",
      {},
      [{ type: "text", text: "one " }, { type: "text", text: "two" }, item("answer", "one two three")],
      [said("one "), said("two"), said(" three")],
    ],
    ["an answer that was streamed whole", {}, [{ type: "text", text: "one" }, item("answer", "one")], [said("one")]],
    [
      "thoughts and answers are told apart",
      {},
      [
        { type: "reasoning", text: "why" },
        { type: "text", text: "so" },
        item("reasoning", "why not"),
        item("answer", "so it is"),
      ],
      [thought("why"), said("so"), thought(" not"), said(" it is")],
    ],
    [
      "an answer that differs from what was streamed adds nothing, the next one counts from its beginning",
      {},
      [{ type: "text", text: "abc" }, item("answer", "xyz"), item("answer", "next")],
      [said("abc"), said("next")],
    ],
    [
      "a retry discards what was streamed",
      {},
      [{ type: "text", text: "one" }, { type: "retry", reason: "busy" }, item("answer", "one again")],
      [
        said("one"),
        thought("The model did not answer (busy). Retrying: what it said so far does not count."),
        said("one again"),
      ],
    ],
    [
      "a prompt of another client, and a note",
      {},
      [item("prompt", "from a phone"), item("note", "compacted")],
      [expect.objectContaining(chunk("user_message_chunk", "from a phone")), thought("compacted")],
    ],
    [
      "a call that was recorded, started and ended is announced once",
      { items: [call("a", "running", { input: { path: "x.ts" } })] },
      [
        { type: "item", item: call("a", "open") },
        { type: "tool.started", call: "a", name: "shell", input: {} },
        { type: "tool.ended", call: "a", name: "shell", failed: false, output: "fine" },
      ],
      // Those of the history are known.
      [update("a", { status: "in_progress" }), update("a", { status: "completed", content: [content("fine")] })],
    ],
    [
      "a call that is new",
      {},
      [
        { type: "tool.started", call: "b", name: "shell", input: {} },
        { type: "tool.ended", call: "b", name: "shell", failed: true, output: "no" },
      ],
      [
        expect.objectContaining({
          sessionUpdate: "tool_call",
          toolCallId: "b",
          status: "pending",
          title: "does shell",
        }),
        update("b", { status: "in_progress" }),
        update("b", { status: "failed", content: [content("no")] }),
      ],
    ],
    [
      "a call of which only the end is known",
      {},
      [{ type: "tool.ended", call: "c", name: "shell", failed: false, output: "fine" }],
      [started("c"), update("c", { status: "completed" })],
    ],
    [
      "calls that never ran are ended with the turn, those that ended are not ended twice",
      {
        items: [call("old", "done"), call("denied", "denied"), call("open", "open"), { ...item("prompt", "p").item }],
      },
      [{ type: "turn.ended", outcome: "completed", denied: 0 }],
      [],
    ],
    ["usage", {}, [{ type: "usage", usage: {} }], [{ sessionUpdate: "usage_update", used: 3, size: 9 }]],
    ["a notice", {}, [{ type: "notice", level: "warning", text: "slow" }], [thought("slow")]],
    ["what an editor has no place for", {}, [{ type: "queued", id: "q", text: "later" }, { type: "compacting" }], []],
    ["a change of nothing that is shown", {}, [{ type: "changed" }], []],
    ["no plan to take away", {}, [{ type: "replaced", reason: "clear", items: 0 }], []],
  ];

test.for(EVENTS)("an editor is shown: %s", async ([, state, events, expected]) => {
  const { emit } = await opened(state);
  expect(await emit(...events)).toEqual(expected);
});

test("a message after a call, a retry or a turn is another message", async () => {
  const { emit } = await opened();
  const ids = (updates: Any[]) => updates.flatMap(({ messageId }) => messageId ?? []);
  const text = { type: "text", text: "x" };
  const one = ids(await emit(text, text));
  expect(new Set(one).size).toBe(1);
  const between: object[] = [
    { type: "tool.started", call: "a", name: "shell", input: {} },
    { type: "retry", reason: "busy" },
    { type: "replaced", reason: "clear", items: 0 },
    { type: "turn.ended", outcome: "completed", denied: 0 },
    item("answer", "x"),
  ];
  const seen = [one[0]];
  for (const event of between) seen.push(...ids((await emit(event, text)).filter((it) => it.content?.text === "x")));
  expect(new Set(seen).size).toBe(1 + between.length);
});

test("calls that never ran are ended when the turn ends: denied, or stopped before", async () => {
  const { chat, emit } = await opened();
  for (const id of ["a", "b", "c", "d"]) await emit({ type: "tool.started", call: id, name: "shell", input: {} });
  await emit({ type: "tool.ended", call: "a", name: "shell", failed: false, output: "" });
  chat.set({
    items: [call("a", "done"), call("b", "denied"), call("c", "not-run"), call("d", "running"), call("e", "done")],
  });
  expect(await emit({ type: "turn.ended", outcome: "completed", denied: 1 })).toEqual([
    update("b", { status: "failed", content: [content("Denied. It did not run.")] }),
    update("c", { status: "failed", content: [content("Interrupted. It did not run.")] }),
  ]);
  // Once.
  expect(await emit({ type: "turn.ended", outcome: "completed", denied: 1 })).toEqual([]);
});

test("a plan has its own place: it is sent when it is set, and taken away when it is gone", async () => {
  const plan = [{ content: "build", status: "pending", priority: "low" }];
  const sets = call("p", "done", { name: "plan", input: { plan } });
  const { chat, emit, editor } = await opened({ items: [call("x", "done"), sets] });
  const replayed = editor.sent.flatMap(({ params }) => (params?.update?.sessionUpdate === "plan" ? [params] : []));
  expect(replayed).toHaveLength(1);
  // The call that sets it is not shown as one.
  expect(
    await emit(
      { type: "tool.started", call: "q", name: "plan", input: { plan } },
      { type: "tool.ended", call: "p", name: "plan", failed: false, output: "" },
      { type: "item", item: call("x", "done") },
      { type: "item", item: { ...sets, state: "open" } },
      { type: "item", item: sets },
    ),
  ).toEqual([update("p", { status: "completed" }), { sessionUpdate: "plan", entries: plan }]);
  chat.set({ items: [] });
  expect(
    await emit({ type: "replaced", reason: "clear", items: 0 }, { type: "replaced", reason: "undo", items: 0 }),
  ).toEqual([{ sessionUpdate: "plan", entries: [] }]);
});

test("title, mode and model are sent when they change, and only then", async () => {
  const { chat, emit } = await opened();
  const changed = { type: "changed" };
  chat.set({ title: "new" });
  expect(await emit(changed, changed)).toEqual([{ sessionUpdate: "session_info_update", title: "new" }]);
  chat.set({ mode: "plan" });
  expect(await emit(changed, changed)).toEqual([{ sessionUpdate: "current_mode_update", currentModeId: "plan" }]);
  chat.set({ model: "offline/three" });
  expect(await emit(changed, changed)).toEqual([
    {
      sessionUpdate: "config_option_update",
      configOptions: [
        expect.objectContaining({
          currentValue: "offline/three",
          options: ["offline/three", "offline/one", "offline/two"].map((name) => ({ value: name, name })),
        }),
      ],
    },
  ]);
});

test("editors that have a place for notices get them there", async () => {
  const { editor, chat } = await opened({}, { capabilities: { session: { notices: {} } } });
  chat.emit({ type: "notice", level: "warning", text: "slow" });
  await expect
    .poll(() => editor.sent.flatMap(({ params }) => params?.update ?? []))
    .toContainEqual({ sessionUpdate: "notice", severity: "warning", title: "slow" });
});

test("the output of a running tool is sent as it is after a while, and not after its end", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    const chat = scriptedChat(sessionId);
    const editor = await served({ create: async () => chat.chat });
    await editor.ask("session/new", FOLDER);
    const outputs = () =>
      editor.sent.flatMap(({ params }) => {
        const { sessionUpdate, status, content: shown } = params?.update ?? {};
        return sessionUpdate === "tool_call_update" && status === undefined ? [shown[0].content.text] : [];
      });
    const sent = async (words: string): Promise<void> => {
      chat.emit({ type: "notice", level: "info", text: words });
      for (let turn = 0; turn < 1000 && !JSON.stringify(editor.sent).includes(words); turn++)
        await new Promise((resolve) => setImmediate(resolve));
    };
    for (const id of ["a", "b", "c"]) chat.emit({ type: "tool.started", call: id, name: "shell", input: {} });
    await sent("all started");
    const output = (id: string) => chat.emit({ type: "tool.output", call: id, text: "." });
    output("a");
    output("a");
    output("b");
    output("c");
    output("unknown");
    chat.set({ outputs: { a: "newest of a", b: "of b", unknown: "of a sub-agent" } });
    chat.emit({ type: "tool.ended", call: "b", name: "shell", failed: false, output: "of b" });
    vi.advanceTimersByTime(99);
    await sent("not yet");
    expect(outputs()).toEqual([]);
    vi.advanceTimersByTime(1);
    await sent("now");
    // One that has ended, one without any, and one that is not shown are left out.
    expect(outputs()).toEqual(["newest of a"]);
    output("a");
    chat.set({ outputs: { a: "more of a" } });
    vi.advanceTimersByTime(100);
    await sent("again");
    expect(outputs()).toEqual(["newest of a", "more of a"]);
    // A session that is closed sends nothing more.
    output("a");
    await editor.ask("session/close", { sessionId });
    expect(vi.getTimerCount()).toBe(0);
    expect(chat.listeners()).toBe(0);
    expect(chat.did).toEqual(["close"]);
  } finally {
    vi.useRealTimers();
  }
});

test.for([
  ["completed", { outcome: "completed" }, { result: { stopReason: "end_turn" } }],
  ["aborted", { outcome: "aborted" }, { result: { stopReason: "cancelled" } }],
  [
    "failed",
    { outcome: "failed", error: { code: "MODEL_DOWN", message: "It is down." } },
    { error: { code: -32603, message: "It is down.", data: { code: "MODEL_DOWN" } } },
  ],
  [
    "failed without a word",
    { outcome: "failed" },
    { error: { code: -32603, message: "The turn failed.", data: { code: "FAILED" } } },
  ],
] as const)("a prompt whose turn has %s is answered after its last update", async ([, ended, expected]) => {
  const { chat, editor } = await opened();
  chat.on["prompt"] = (text) => {
    chat.emit(item("prompt", text));
    chat.emit({ type: "text", text: "the answer" });
    chat.emit({ type: "turn.ended", denied: 0, ...ended });
  };
  const answer = await editor.ask("session/prompt", { sessionId, prompt: blocks("hello ", "there") });
  expect(answer).toMatchObject(expected);
  const at = editor.sent.indexOf(answer);
  expect(editor.sent.findIndex((one) => one.params?.update?.content?.text === "the answer")).toBeLessThan(at);
  expect(chat.did).toEqual(["prompt hello there []"]);
  // The editor shows its own prompt by itself, but not the same words of somebody else.
  expect(await editor.shown(chat)).toEqual([said("the answer")]);
  chat.emit(item("prompt", "hello there"));
  expect(await editor.shown(chat)).toEqual([expect.objectContaining(chunk("user_message_chunk", "hello there"))]);
  // How the turn before has ended does not count for the next one.
  chat.on["prompt"] = () => undefined;
  expect(await editor.ask("session/prompt", { sessionId, prompt: blocks("more") })).toMatchObject({
    result: { stopReason: "end_turn" },
  });
});

test("a prompt waits until its turn has settled, with the questions in it", async () => {
  const { chat, editor } = await opened();
  const settled = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let at = 0;
  chat.on["settled"] = () => settled[at++]!.promise;
  let isAnswered = false;
  const running = editor.ask("session/prompt", { sessionId, prompt: blocks("go") }).then((answer) => {
    isAnswered = true;
    return answer;
  });
  await expect.poll(() => at).toBe(1);
  await editor.shown(chat);
  expect(isAnswered).toBe(false);
  chat.set({ asks: [ask("a")] });
  settled[0]!.resolve();
  // One more that waits for the end of the questions.
  await expect.poll(() => chat.listeners()).toBe(2);
  chat.emit({ type: "usage", usage: {} });
  expect(chat.listeners()).toBe(2);
  chat.set({ asks: [] });
  chat.emit({ type: "usage", usage: {} });
  await expect.poll(() => at).toBe(2);
  expect(chat.listeners()).toBe(1);
  await editor.shown(chat);
  expect(isAnswered).toBe(false);
  settled[1]!.resolve();
  expect((await running).result).toEqual({ stopReason: "end_turn" });
});

test("a prompt is stopped by a cancel of its session or of its request", async () => {
  for (const how of ["session/cancel", "$/cancel_request"]) {
    const { chat, editor } = await opened();
    const turn = Promise.withResolvers<void>();
    chat.on["prompt"] = () => turn.promise;
    chat.on["stop"] = () => turn.resolve();
    const running = editor.ask("session/prompt", { sessionId, prompt: blocks("go") });
    await expect.poll(() => chat.did).toEqual(["prompt go []"]);
    editor.tell(how, how === "session/cancel" ? { sessionId } : { requestId: 3 });
    await expect.poll(() => chat.did).toEqual(["prompt go []", "stop user"]);
    await running;
  }
});

test("the images of a prompt go with it, and a command with an image is none", async () => {
  const { chat, editor } = await opened();
  const image = { type: "image", data: "AAAA", mimeType: "image/png" };
  await editor.ask("session/prompt", {
    sessionId,
    prompt: [...blocks("/undo"), image, { ...image, uri: "file:///a.png" }],
  });
  const images = ["image 1", "file:///a.png"].map((name) => ({ name, mediaType: "image/png", data: "AAAA" }));
  expect(chat.did).toEqual([`prompt /undo ${JSON.stringify(images)}`]);
});

test("what is attached to a prompt comes after its words, fenced", async () => {
  const { chat, editor } = await opened();
  await editor.ask("session/prompt", {
    sessionId,
    prompt: [
      ...blocks("see "),
      { type: "resource_link", name: "a", uri: "file:///work/a%20b.ts" },
      ...blocks(" and "),
      { type: "resource", resource: { uri: "https://x.test/c", text: "a ```` b" } },
      { type: "resource", resource: { uri: "file:///%E0%A4%A", text: "plain" } },
    ],
  });
  expect(chat.did[0]).toBe(
    "prompt see @/work/a b.ts and @https://x.test/c@file:///%E0%A4%A\n\nContent of https://x.test/c:\n`````\na ```` b\n`````\n\nContent of file:///%E0%A4%A:\n```\nplain\n``` []",
  );
  for (const [block, words] of [
    [{ type: "resource", resource: { uri: "u", blob: "AAAA" } }, "The attachment u is not text."],
    [{ type: "audio", data: "AAAA", mimeType: "audio/wav" }, 'content of the type "audio"'],
  ] as const)
    expect((await editor.ask("session/prompt", { sessionId, prompt: [block] })).error).toMatchObject({
      code: -32602,
      message: expect.stringContaining(words),
    });
});

test.for([
  ["/finish", {}, [], "Nothing to finish: the last turn completed."],
  ["/finish", { account: { can: { finish: true } } }, ["finish"], null],
  [
    "/finish",
    { account: { can: { finish: { no: "running", words: "A turn is running." } } } },
    [],
    "A turn is running.",
  ],
  ["/finish", { queue: [{ id: "q", text: "later" }] }, ["resumeQueue"], null],
  ["/compact", {}, ["compact"], "The conversation was compacted. /undo restores it."],
  ["/clear", {}, ["clear"], "The conversation was cleared. /undo restores it."],
  ["/undo", {}, [], "Nothing to undo."],
  ["/undo", { canUndo: true }, ["undo"], "The conversation was restored."],
  ["/rename", {}, [], "Give the new title after /rename."],
  [" /rename   a\nb  ", {}, ["rename a\nb"], null],
  ["/toString", {}, ["prompt /toString []"], null],
  ["/undo-all", {}, ["prompt /undo-all []"], null],
  ["say /undo", {}, ["prompt say /undo []"], null],
] as const)("the command %s with %j", async ([prompt, state, did, words]) => {
  const { chat, editor } = await opened(state);
  const answer = await editor.ask("session/prompt", { sessionId, prompt: blocks(prompt) });
  expect(answer.result).toEqual({ stopReason: "end_turn" });
  expect(chat.did).toEqual(did);
  expect(await editor.shown(chat)).toEqual(words === null ? [] : [said(words)]);
});

const selected = (optionId: string) => ({ outcome: { outcome: "selected", optionId } });

test.for([
  ["allows", selected("allow"), ["answer a allow"]],
  ["denies", selected("deny"), ["answer a deny"]],
  ["chooses what nobody offered", selected("always"), ["stop user"]],
  ["decides nothing", { outcome: { outcome: "cancelled" } }, ["stop user"]],
] as const)("the person %s", async ([, response, did]) => {
  const { chat, editor } = await opened({}, { answer: () => response });
  chat.set({ asks: [ask("a")] });
  chat.emit({ type: "permission.asked", ask: ask("a") });
  chat.emit({ type: "permission.asked", ask: ask("a") });
  await expect.poll(() => chat.did).toEqual(did);
  const asked = editor.sent.filter(({ method }) => method === "session/request_permission");
  expect(asked).toHaveLength(1);
  expect(asked[0].params).toMatchObject({
    sessionId,
    toolCall: { toolCallId: "a", content: [content("command: make")] },
    options: [
      { optionId: "allow", name: "Allow", kind: "allow_once" },
      { optionId: "deny", name: "Deny", kind: "reject_once" },
    ],
  });
  // The call is shown before the question about it, once.
  const shown = editor.sent.filter(({ params }) => params?.update?.sessionUpdate === "tool_call");
  expect(shown).toHaveLength(1);
  expect(editor.sent.indexOf(shown[0])).toBeLessThan(editor.sent.indexOf(asked[0]));
});

test("a call that is shown already is only asked about; a later question about it is asked again", async () => {
  const answers = [selected("allow"), selected("deny")];
  const { chat, editor, emit } = await opened({}, { answer: () => answers.shift() });
  await emit({ type: "tool.started", call: "a", name: "shell", input: {} });
  chat.set({ asks: [ask("a")] });
  chat.emit({ type: "permission.asked", ask: ask("a") });
  await expect.poll(() => chat.did).toEqual(["answer a allow"]);
  expect(await editor.shown(chat)).toEqual([]);
  chat.emit({ type: "permission.asked", ask: ask("a") });
  await expect.poll(() => chat.did).toEqual(["answer a allow", "answer a deny"]);
});

test("an answer to a question that is open no more decides nothing", async () => {
  const answer = Promise.withResolvers<unknown>();
  const { chat, editor } = await opened({ asks: [ask("a")] }, { answer: () => answer.promise });
  await expect.poll(() => editor.sent.some(({ method }) => method === "session/request_permission")).toBe(true);
  chat.set({ asks: [ask("b")] });
  answer.resolve(selected("allow"));
  expect(await editor.shown(chat)).toEqual([]);
  expect(chat.did).toEqual([]);
});

test("an answer that cannot be recorded is told", async () => {
  const { chat, editor } = await opened({ asks: [ask("a")] }, { answer: () => selected("allow") });
  // The question was asked when the session began.
  await expect.poll(() => chat.did).toEqual(["answer a allow"]);
  chat.on["answer"] = () => {
    throw new Error("the disk is full");
  };
  chat.emit({ type: "permission.asked", ask: ask("a") });
  await expect.poll(() => JSON.stringify(editor.sent)).toContain("The approval was not recorded: the disk is full");
});

test.for([
  ["it is answered elsewhere", (chat: ScriptedChat) => chat.emit({ type: "permission.answered", call: "a" })],
  [
    "it was answered while the connection was lost",
    (chat: ScriptedChat) => {
      chat.set({ asks: [ask("b")] });
      chat.emit({ type: "changed" });
    },
  ],
  ["the session is cancelled", (_: ScriptedChat, editor: Served): void => editor.tell("session/cancel", { sessionId })],
  ["the session is closed", (_: ScriptedChat, editor: Served): void => void editor.ask("session/close", { sessionId })],
] as const)("a question is withdrawn when %s, and others stay", async ([name, happens]) => {
  const { chat, editor } = await opened({ asks: [ask("a"), ask("b")] });
  const asked = (): Any[] => editor.sent.filter(({ method }) => method === "session/request_permission");
  await expect.poll(() => asked().length).toBe(2);
  happens(chat, editor);
  const withdrawn = () => editor.sent.flatMap(({ method, params }) => (method === "$/cancel_request" ? [params] : []));
  const of = (id: string) => ({ requestId: asked().find(({ params }) => params.toolCall.toolCallId === id).id });
  const both = name.includes("session");
  await expect.poll(withdrawn).toEqual(both ? [of("a"), of("b")] : [of("a")]);
  expect(JSON.stringify(editor.sent)).not.toContain("was not recorded");
  // A change of something else withdraws nothing.
  if (!both) {
    chat.emit({ type: "changed" });
    await editor.shown(chat);
    expect(withdrawn()).toEqual([of("a")]);
  }
});

test("a replay shows the conversation before the answer, and its calls are known after it", async () => {
  const items = [{ ...item("prompt", "hello").item }, call("a", "done", { output: "fine" }), call("b", "running")];
  const { chat, editor, emit } = await opened({ items });
  const kinds = editor.sent.map(({ id, params }) => params?.update?.sessionUpdate ?? id);
  expect(kinds.slice(0, 5)).toEqual([1, "user_message_chunk", "tool_call", "tool_call", 2]);
  expect(await emit({ type: "item", item: call("a", "done") }, { type: "item", item: call("b", "running") })).toEqual(
    [],
  );
  // The end of one was shown.
  chat.set({ items: [call("a", "done"), call("b", "not-run")] });
  expect(await emit({ type: "turn.ended", outcome: "aborted", denied: 0 })).toEqual([
    update("b", { status: "failed" }),
  ]);
});

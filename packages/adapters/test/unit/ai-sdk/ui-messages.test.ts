import {
  isStepCount,
  type ModelMessage,
  readUIMessageStream,
  streamText,
  type ToolSet,
  tool,
  toUIMessageStream,
  type UIMessage,
  type UIMessageChunk,
  validateUIMessages,
} from "ai";
import { openStore, type Session } from "holdfast";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { durable, uiChunks, uiMessages } from "../../../src/ai-sdk/index.ts";
import { add, fails, say, scenarios } from "../../scenarios.ts";
import { call, scripted, text } from "../../scripted-model.ts";

/** What a page is given after a reload is what it had before: as the SDK's own stream would have made it. */

const PROMPT: UIMessage = { id: "p1", role: "user", parts: [{ type: "text", text: "Go." }] };

async function begin(prompt: ModelMessage = { role: "user", content: "Go." }): Promise<Session<ModelMessage>> {
  const store = await openStore("memory:", { recordsToolStarts: true });
  const session = await store.create<ModelMessage>({ dialect: "ai-sdk", draftMs: 0 });
  await session.startTurn(prompt, { id: "p1" });
  return session;
}

/** The message that a browser makes of a stream, as JSON brings it there. */
async function shownOf(stream: ReadableStream<UIMessageChunk>, message?: UIMessage): Promise<UIMessage> {
  let last: UIMessage | undefined;
  const wired = stream.pipeThrough(
    new TransformStream<UIMessageChunk, UIMessageChunk>({
      transform: (chunk, controller) => controller.enqueue(JSON.parse(JSON.stringify(chunk))),
    }),
  );
  for await (const now of readUIMessageStream({ stream: wired, ...(message ? { message } : {}) })) last = now;
  return plain(last!);
}

/**
 * Without members that are undefined, and without what the journal does not hold: ids of reasoning, sources, texts with
 * nothing in them.
 */
function plain(message: UIMessage): UIMessage {
  const { parts, ...rest } = JSON.parse(JSON.stringify(message)) as UIMessage;
  const kept = parts.filter((part) => !part.type.startsWith("source-") && !(part.type === "text" && part.text === ""));
  return {
    ...rest,
    parts: kept.map((part) => {
      if (part.type !== "reasoning") return part;
      const { id: _id, ...reasoning } = part;
      return reasoning;
    }),
  };
}

interface Shown {
  readonly live: UIMessage;
  readonly reloaded: UIMessage;
  readonly session: Session<ModelMessage>;
}

const SETTINGS = { stopWhen: isStepCount(8), maxRetries: 0, onError: () => {} };

/** RunRegistry it, and shows it twice: as it is streamed, and as the session has it. */
async function shown(
  session: Session<ModelMessage>,
  settings: Record<string, unknown>,
  tools: ToolSet,
): Promise<Shown> {
  const agent = durable(session);
  const before = uiMessages(session, { tools });
  const id = `${session.id}.${session.turn!.number}`;
  const run = streamText(agent.wrap({ ...SETTINGS, ...settings, tools } as never) as never);
  const finished = agent.finish(run);
  const stream = toUIMessageStream({
    stream: run.stream,
    tools,
    originalMessages: before,
    generateMessageId: () => id,
  }) as ReadableStream<UIMessageChunk>;
  const last = before.at(-1);
  const live = await shownOf(stream, last?.role === "assistant" ? last : undefined);
  await finished;
  return { live, reloaded: uiMessages(session, { tools }).at(-1)!, session };
}

/** What the adapter records besides. */
const withoutMetadata = ({ metadata: _, ...message }: UIMessage): UIMessage => message;

/** What such a tool returned is recorded as the model was shown it. */
const SHOWN_OTHERWISE =
  "a tool of the provider's own that is shown in words of the application's, which know its input";

describe("as the SDK shows it", () => {
  test.each(Object.entries(scenarios).filter(([name]) => name !== SHOWN_OTHERWISE))(
    "%s",
    async (name, { steps, tools = () => ({ add, say, fails }), settings }) => {
      const session = await begin();
      const { live, reloaded } = await shown(session, { model: scripted(...steps()), ...settings?.() }, tools());
      const expected = name.startsWith("input that does not fit") ? withRecordedInputs(live) : live;
      expect(withoutMetadata(plain(reloaded))).toEqual(withoutMetadata(expected));
      expect(reloaded.metadata).toEqual({ provider: "scripted.test", model: "scripted-1" });
      expect(uiMessages(session)[0]).toEqual(PROMPT);
      const stream = new ReadableStream<UIMessageChunk>({
        start(controller) {
          for (const chunk of uiChunks(reloaded)) controller.enqueue(chunk);
          controller.close();
        },
      });
      expect(await shownOf(stream), "and as it is replayed").toEqual(plain(reloaded));
    },
  );

  /**
   * Of calls that are no calls the journal holds what can be sent: an object. And the SDK takes what objects inherit
   * for a tool.
   */
  function withRecordedInputs(message: UIMessage): UIMessage {
    const parts = message.parts.map((part) => {
      if (!("toolCallId" in part)) return part;
      const input = typeof part.input === "object" ? part.input : {};
      const name = part.type === "tool-constructor" ? { type: "dynamic-tool", toolName: "constructor" } : {};
      return { ...part, ...name, input };
    });
    return { ...message, parts: parts as UIMessage["parts"] };
  }
});

const asks = tool({
  inputSchema: z.object({ at: z.string().transform((at) => at.length) }),
  execute: async () => ({ sent: true }),
  toModelOutput: () => ({ type: "text" as const, value: "Sent." }),
  needsApproval: true,
});
const tools = { asks, add } as unknown as ToolSet;
const ASK = [call("a", "asks", { at: "now" }), call("b", "add", { n: 1 })];

function toolParts(message: UIMessage): Record<string, unknown>[] {
  return message.parts.filter(({ type }) => type.startsWith("tool-")) as never;
}

async function isValid(messages: UIMessage[]): Promise<void> {
  await validateUIMessages({ messages: JSON.parse(JSON.stringify(messages)) as UIMessage[], tools: tools as never });
}

describe("approvals", () => {
  test.each([
    [true, "output-available"],
    [false, "output-denied"],
  ])("asked, answered (%s) and run, across a restart, in one message with one id", async (approved, state) => {
    const session = await begin();
    const secret = { experimental_toolApprovalSecret: "a secret of thirty-two characters" };
    const first = await shown(session, { model: scripted(ASK), ...secret }, tools);
    expect(withoutMetadata(plain(first.reloaded))).toEqual(withoutMetadata(first.live));
    const [asked] = toolParts(first.reloaded) as [{ state: string; approval: { id: string; signature: string } }];
    expect(asked).toMatchObject({ state: "approval-requested", approval: { inputSchemaInput: { at: "now" } } });
    await isValid(uiMessages(session));

    const turn = await session.resumeTurn({ calls: () => "keep" });
    const response = { type: "tool-approval-response" as const, approvalId: asked.approval.id, approved, reason: "so" };
    await turn.append({ role: "tool", content: [response] });
    const answered = uiMessages(session).at(-1)!;
    expect(toolParts(answered)[0]).toMatchObject({ state: "approval-responded", approval: { approved, reason: "so" } });
    await isValid(uiMessages(session));

    const second = await shown(session, { model: scripted([text("Done.")]), ...secret }, tools);
    expect(second.reloaded.id).toBe(first.reloaded.id);
    expect(toolParts(second.reloaded)[0]).toMatchObject({
      state,
      approval: { id: asked.approval.id, approved, reason: "so" },
      ...(approved ? { output: { sent: true } } : {}),
    });
    expect(withoutMetadata(plain(second.reloaded))).toEqual(withoutMetadata(second.live));
    await isValid(uiMessages(session));
  });

  test("that nobody answered are denied by the next prompt", async () => {
    const session = await begin();
    await shown(session, { model: scripted(ASK) }, tools);
    await session.startTurn({ role: "user", content: "Never mind." }, { id: "p2" });
    const messages = uiMessages(session);
    expect(messages.map(({ id, role }) => [id, role])).toEqual([
      ["p1", "user"],
      [`${session.id}.1`, "assistant"],
      ["p2", "user"],
    ]);
    expect(toolParts(messages[1]!)[0]).toMatchObject({ state: "output-denied", approval: { approved: false } });
    await isValid(messages);
  });
});

test("what a person says is shown as it was given: texts, files, images, and the metadata of the message", async () => {
  const store = await openStore("memory:", { recordsToolStarts: true });
  const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
  const content: ModelMessage["content"] = [
    { type: "text", text: "Look.", providerOptions: { p: { cache: true } } },
    { type: "file", mediaType: "image/png", filename: "a.png", data: new Uint8Array([1, 2, 3]) },
    { type: "file", mediaType: "image/png", data: new URL("https://example.org/b.png") },
    { type: "image", image: "AQID", mediaType: "image/jpeg" },
  ];
  const metadata = { at: "noon", hiddenFromModel: false };
  await session.startTurn(
    [
      { role: "system", content: "Secret." },
      { role: "user", content },
    ],
    { id: "x", metadata },
  );
  expect(uiMessages(session)).toEqual([
    {
      id: "x.1",
      role: "user",
      metadata: { at: "noon" },
      parts: [
        { type: "text", text: "Look.", providerMetadata: { p: { cache: true } } },
        { type: "file", mediaType: "image/png", filename: "a.png", url: "data:image/png;base64,AQID" },
        { type: "file", mediaType: "image/png", url: "https://example.org/b.png" },
        { type: "file", mediaType: "image/jpeg", url: "data:image/jpeg;base64,AQID" },
      ],
    },
  ]);
});

test("what is said while the turn is at work stands in the answer, where the model heard it", async () => {
  const session = await begin();
  const steers = tool({
    inputSchema: z.object({}),
    execute: async () => {
      await session.turn!.append({ role: "user", content: "Faster." }, { id: "s1" });
      return "done";
    },
  });
  const agent = durable(session);
  const model = scripted([call("a", "steers")], [text("Done.")]);
  const prepareStep = () => ({ messages: agent.messages() });
  const settings = { ...SETTINGS, model, tools: { steers } as ToolSet, prepareStep };
  await agent.finish(streamText(agent.wrap(settings)));
  const messages = uiMessages(session);
  expect(messages).toHaveLength(2);
  expect(messages[1]!.parts.map(({ type }) => type)).toEqual([
    ...["step-start", "tool-steers"],
    "steering-message",
    ...["step-start", "text"],
  ]);
  expect(messages[1]!.parts[2]).toEqual({
    type: "steering-message",
    id: "s1",
    parts: [{ type: "text", text: "Faster." }],
  });
});

describe("what a page does not show", () => {
  test("what Holdfast made up for the model, and what is hidden from the user; what the model is shown instead, it does", async () => {
    const session = await begin();
    const turn = session.turn!;
    const part = { type: "tool-call" as const, toolCallId: "a", toolName: "add", input: { n: 1 } };
    await turn.append({ role: "assistant", content: [{ type: "text", text: "The whole of it." }] }, { id: "m1" });
    await turn.append({ role: "user", content: "Go on." }, { metadata: { hiddenFromUser: true } });
    await turn.append({ role: "assistant", content: [part] });
    await turn.toolStarted("a");
    await turn.abort({ by: "user" });
    await session.resumeTurn();
    await session.edit(["m1"], [{ role: "assistant", content: [{ type: "text", text: "In short." }] }], {
      reason: "long",
      now: true,
    });
    const told = JSON.stringify(session.messages);
    expect(told).toContain("In short.");
    const shown = uiMessages(session, { onError: String });
    expect(shown.map(({ role }) => role)).toEqual(["user", "assistant"]);
    const [, answer] = shown;
    expect(answer!.parts.map(({ type }) => type)).toEqual(["step-start", "text", "step-start", "tool-add"]);
    expect(JSON.stringify(answer)).toContain("The whole of it.");
    expect(JSON.stringify(answer)).not.toContain("In short.");
    expect(answer!.parts[3]).toMatchObject({
      state: "output-error",
      errorText: expect.stringContaining("Was running when"),
    });
  });

  test("reasoning, if the application wants it so; and errors in words of its own", async () => {
    const session = await begin();
    const reasoning = { type: "reasoning" as const, text: "Hm." };
    const file = { type: "reasoning-file" as const, mediaType: "image/png", data: "AQID" };
    const model = scripted([{ ...reasoning }, call("a", "fails")], [text("Done.")]);
    await shown(session, { model }, { fails });
    expect(uiMessages(session).at(-1)!.parts).toMatchObject([
      { type: "step-start" },
      { type: "reasoning", text: "Hm.", state: "done" },
      { type: "tool-fails", state: "output-error", errorText: "An error occurred." },
      { type: "step-start" },
      { type: "text" },
    ]);
    const kept = uiMessages(session, { sendReasoning: false, onError: (error) => `failed: ${error}` }).at(-1)!;
    expect(kept.parts.map(({ type }) => type)).toEqual(["step-start", "tool-fails", "step-start", "text"]);
    expect(kept.parts[1]).toMatchObject({ errorText: "failed: TypeError: no such thing" });
    await session.startTurn({ role: "user", content: "Draw." });
    await session.turn!.append({ role: "assistant", content: [file as never, { type: "text", text: "So." }] });
    expect(uiMessages(session).at(-1)!.parts).toEqual([
      { type: "step-start" },
      { type: "reasoning-file", mediaType: "image/png", url: "data:image/png;base64,AQID" },
      { type: "text", text: "So.", state: "done" },
    ]);
    expect(
      uiMessages(session, { sendReasoning: false })
        .at(-1)!
        .parts.map(({ type }) => type),
    ).toEqual(["step-start", "text"]);
  });
});

test("a turn that was cut off: its calls are open, and the words that were streamed come back until it is resumed", async () => {
  const store = await openStore("memory:", { recordsToolStarts: true });
  const before = await store.create<ModelMessage>({ dialect: "ai-sdk", draftMs: 0 });
  const turn = await before.startTurn({ role: "user", content: "Go." });
  const part = { type: "tool-call" as const, toolCallId: "a", toolName: "add", input: { n: 1 } };
  await turn.append({ role: "assistant", content: "Let me see." });
  await turn.append({ role: "assistant", content: [part] });
  turn.request().draft.push({ text: "Half an answ" });
  await before.flush();
  await before.close();
  const reading = await store.read<ModelMessage>(before.id);
  const [, answer] = uiMessages(reading);
  expect(answer).toMatchObject({ id: `${before.id}.1` });
  expect(answer!.parts).toEqual([
    { type: "step-start" },
    { type: "text", text: "Let me see.", state: "done" },
    { type: "step-start" },
    { type: "tool-add", toolCallId: "a", state: "input-available", input: { n: 1 } },
    { type: "step-start" },
    { type: "text", text: "Half an answ" },
  ]);
  const session = await store.resume<ModelMessage>(before.id);
  await session.resumeTurn({ calls: "rerun" });
  expect(JSON.stringify(uiMessages(session))).not.toContain("Half an answ");
  expect(uiMessages(session)[1]!.id).toBe(answer!.id);
});

test("R9: calls with the same id keep their own results, those that came late, too", async () => {
  const session = await begin();
  const turn = session.turn!;
  const part = { type: "tool-call" as const, toolCallId: "call_0", toolName: "add", input: {} };
  await turn.append({ role: "assistant", content: [part] });
  await turn.toolStarted("call_0");
  await turn.append({ role: "assistant", content: [part] });
  await turn.tool("call_0", () => "second");
  await turn.abort({ by: "user" });
  await session.startTurn({ role: "user", content: "And now?" });
  await turn.toolEnded("call_0", { value: "first, late" });
  const states = uiMessages(session)
    .flatMap(({ parts }) => parts)
    .filter(({ type }) => type === "tool-add") as unknown as { output: unknown }[];
  expect(states.map(({ output }) => output)).toEqual(["first, late", "second"]);
});

test("what an array brought along has no turns: each prompt is a message, and each answer", async () => {
  const store = await openStore("memory:", { recordsToolStarts: true });
  const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
  const says = (content: string): ModelMessage => ({ role: "assistant", content });
  const prompt = (content: string): ModelMessage => ({ role: "user", content });
  await session.replace([prompt("One?"), says("1."), prompt("Two?"), says("2.")], { reason: "import" });
  const messages = uiMessages(session);
  expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
  expect(new Set(messages.map(({ id }) => id)).size).toBe(4);
});

test("R19: what is done with the messages of a page changes nothing of the session", async () => {
  const session = await begin();
  await shown(session, { model: scripted([call("a", "add", { n: 1 })], [text("Done.")]) }, { add });
  const messages = uiMessages(session);
  const [, call1] = messages[1]!.parts as { input: { n: number }; output: { sum: number } }[];
  call1!.input.n = 7;
  call1!.output.sum = 7;
  messages[1]!.parts.length = 0;
  expect(JSON.stringify(uiMessages(session))).toContain('"output":{"sum":2}');
});

test("parts that are not what they should be are left out, and the rest is shown", async () => {
  const session = await begin();
  const turn = session.turn!;
  const content = [
    { type: "text", text: "Here." },
    { type: "tool-call" },
    { type: "tool-call", toolCallId: "a", toolName: "add", input: {} },
    { type: "tool-approval-request" },
    { type: "file", mediaType: "image/png" },
    { type: "reasoning-file", mediaType: "image/png" },
    { type: "of tomorrow", text: "?" },
  ];
  await turn.append({ role: "assistant", content } as never);
  await turn.append({
    role: "tool",
    content: [
      { type: "tool-result", toolCallId: "a", toolName: "add", output: "as it was once" },
      { type: "tool-result", toolCallId: "x", toolName: "add", output: { type: "text", value: "of no call" } },
      { type: "tool-approval-response", approvalId: "x", approved: true },
      { type: "of tomorrow" },
    ],
  } as never);
  await turn.append({
    role: "user",
    content: [
      { type: "file", mediaType: "image/png" },
      { type: "text", text: "Go on." },
    ],
  } as never);
  expect(uiMessages(session).at(-1)!.parts).toEqual([
    { type: "step-start" },
    { type: "text", text: "Here.", state: "done" },
    { type: "tool-add", toolCallId: "a", state: "output-available", input: {}, output: "as it was once" },
    { type: "steering-message", id: expect.any(String), parts: [{ type: "text", text: "Go on." }] },
  ]);
});

test("a text keeps its citations, and what has none gets none", () => {
  const citations = [{ type: "url", url: "https://example.com", title: "Example" }];
  const parts = [
    { type: "text", text: "It is so.", citations },
    { type: "text", text: "Plainly." },
    { type: "reasoning", text: "Hm." },
  ] as unknown as UIMessage["parts"];
  const ends = uiChunks({ id: "m", role: "assistant", parts }).filter(({ type }) => type.endsWith("-end"));
  expect(ends).toEqual([
    { type: "text-end", id: "m.0", citations },
    { type: "text-end", id: "m.1" },
    { type: "reasoning-end", id: "m.2" },
  ]);
});

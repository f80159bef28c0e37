import { validateAiSdk } from "@holdfast/testkit";
import { jsonSchema, type ModelMessage, type ToolSet, tool } from "ai";
import { openStore, type Session } from "holdfast";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { Approvals } from "../../../src/ai-sdk/approvals.ts";
import type { CallPart } from "../../../src/ai-sdk/content.ts";
import { durable, type RunOutcome } from "../../../src/ai-sdk/index.ts";
import { everyWay, outline, PROMPT, recordsOf } from "../../agents.ts";
import { call, promptOf, scripted, text } from "../../scripted-model.ts";

const any = jsonSchema<{ n?: number }>({ type: "object" });
const NEXT: ModelMessage = { role: "user", content: "And now?" };

type Waiting = Extract<RunOutcome, { kind: "waiting" }>;

function answer(approvals: Waiting["approvals"], approved: boolean, reason?: string): ModelMessage {
  return {
    role: "tool",
    content: approvals.map(({ approvalId }) => ({
      type: "tool-approval-response",
      approvalId,
      approved,
      ...(reason === undefined ? {} : { reason }),
    })),
  };
}

/** Tools that count how often each call ran. */
function counting(): { ran: string[]; tools: () => ToolSet } {
  const ran: string[] = [];
  const execute = async (_: unknown, { toolCallId }: { toolCallId: string }): Promise<string> => {
    ran.push(toolCallId);
    return `ran ${toolCallId}`;
  };
  return {
    ran,
    tools: () =>
      ({
        free: tool({ inputSchema: any, execute }),
        asks: tool({ inputSchema: any, execute, needsApproval: true }),
        changes: tool({
          inputSchema: z.object({ at: z.string().transform((at) => at.length) }),
          execute,
          needsApproval: async () => true,
        }),
      }) as ToolSet,
  };
}

describe.each(everyWay)("%s", (_, start) => {
  /** RunRegistry to the approval, lets a person answer in another life of the session, and goes on. */
  async function lives(
    approved: boolean,
    restart: boolean,
    settings: Record<string, unknown> = {},
  ): Promise<{
    ran: string[];
    session: Session<ModelMessage>;
    waiting: RunOutcome;
    prompts: unknown[];
    lines: string[];
  }> {
    const { ran, tools } = counting();
    const store = await openStore("memory:", { recordsToolStarts: true });
    let session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
    await session.startTurn(PROMPT);
    let agent = durable(session);
    const first = scripted([
      text("May I?"),
      call("a", "asks", { n: 1 }),
      call("b", "free"),
      call("c", "changes", { at: "now" }),
    ]);
    const waiting = await agent.finish(start(agent, { model: first, tools: tools(), ...settings }).run);
    expect(ran).toEqual(["b"]);
    if (waiting.kind !== "waiting") throw new Error(waiting.kind);
    if (restart) {
      await session.close();
      session = await store.resume<ModelMessage>(session.id);
      expect(session.interruption).toMatchObject({
        how: { kind: "suspended", reason: "approval" },
        calls: [
          { id: "a", state: "awaiting" },
          { id: "c", state: "awaiting" },
        ],
      });
    }
    const turn = await session.resumeTurn({ calls: () => "keep" });
    await turn.append(answer(waiting.approvals, approved, approved ? undefined : "not today"));
    agent = durable(session);
    await agent.runOpen(tools());
    expect(ran, "what waits for approval is not run by runOpen").toEqual(["b"]);
    const second = scripted([text("Done.")]);
    expect(await agent.finish(start(agent, { model: second, tools: tools(), ...settings }).run)).toEqual({
      kind: "completed",
    });
    return { ran, session, waiting, prompts: second.prompts, lines: outline(await recordsOf(session)) };
  }

  /** The same, by the SDK alone. */
  async function undisturbed(
    approved: boolean,
    settings: Record<string, unknown> = {},
  ): Promise<{ prompts: unknown[]; all: ModelMessage[] }> {
    const { tools } = counting();
    const first = scripted([
      text("May I?"),
      call("a", "asks", { n: 1 }),
      call("b", "free"),
      call("c", "changes", { at: "now" }),
    ]);
    const added = await start(null, { model: first, tools: tools(), ...settings }, [PROMPT]).added();
    const assistant = added.find(({ role }) => role === "assistant")!.content as { type: string; approvalId: string }[];
    const asked = assistant.filter(({ type }) => type === "tool-approval-request") as never;
    const answered = answer(asked, approved, approved ? undefined : "not today");
    // As the SDK's documentation has it: the answers in the message that has the results.
    const last = added.at(-1)!;
    const before = [
      PROMPT,
      ...added.slice(0, -1),
      { ...last, content: [...last.content, ...answered.content] } as ModelMessage,
    ];
    const second = scripted([text("Done.")]);
    const more = await start(null, { model: second, tools: tools(), ...settings }, before).added();
    return { prompts: second.prompts, all: [...before, ...more] };
  }

  test.each([
    ["approved", true, true, true],
    ["approved, in the same process", true, false, true],
    ["denied", false, true, false],
    ["denied, in the same process", false, false, false],
  ])("C37: %s", async (_, approved, restart, runs) => {
    const { ran, session, waiting, prompts, lines } = await lives(approved, restart);
    expect(waiting).toMatchObject({
      approvals: [
        { toolCallId: "a", toolName: "asks", input: { n: 1 } },
        { toolCallId: "c", toolName: "changes", input: { at: 3 } },
      ],
    });
    expect(ran.sort()).toEqual(runs ? ["a", "b", "c"] : ["b"]);
    expect(lines.filter((line) => line === "tool.started a").length).toBe(runs ? 1 : 0);
    const expected = await undisturbed(approved);
    expect(sorted(prompts)).toEqual(sorted(expected.prompts));
    expect(sorted(await promptOf([...session.messages, NEXT]))).toEqual(
      sorted(await promptOf([...expected.all, NEXT])),
    );
    expect(validateAiSdk([...session.messages, NEXT])).toEqual([]);
    const sent = prompts[0] as unknown[];
    expect((await promptOf([...session.messages, NEXT])).slice(0, sent.length), "R1: as the model has seen it").toEqual(
      sent,
    );
  });

  test("an approval that is signed with a secret of the application's is accepted", async () => {
    const settings = { experimental_toolApprovalSecret: "a secret of thirty-two characters" };
    const { ran } = await lives(true, true, settings);
    expect(ran.sort()).toEqual(["a", "b", "c"]);
  });

  test.each([undefined, "a secret of thirty-two characters"])(
    "what a schema made of an input that JSON cannot carry is refused after its approval, in words for the model (secret: %s)",
    async (experimental_toolApprovalSecret) => {
      const store = await openStore("memory:", { recordsToolStarts: true });
      const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
      await session.startTurn(PROMPT);
      const ran: unknown[] = [];
      const inputSchema = z.object({ at: z.string().transform((at) => new Date(at)) });
      const execute = async ({ at }: { at: Date }): Promise<number> => ran.push(at);
      const tools = { late: tool({ inputSchema, execute, needsApproval: true }) } as unknown as ToolSet;
      const settings = { tools, ...(experimental_toolApprovalSecret ? { experimental_toolApprovalSecret } : {}) };
      const agent = durable(session);
      const asks = scripted([call("a", "late", { at: "2020-01-01" })]);
      const waiting = await agent.outcome(start(agent, { model: asks, ...settings }).run);
      await session.turn!.append(answer((waiting as Waiting).approvals, true));
      const model = scripted([text("I see.")]);
      expect(await agent.finish(start(agent, { model, ...settings }).run)).toEqual({ kind: "completed" });
      expect(ran).toEqual([]);
      expect(JSON.stringify(model.prompts[0]!.at(-1))).toContain("does not match the validated schema output");
    },
  );

  test("a rule that denies now what a person approved before wins, and is recorded as it is sent", async () => {
    const { ran, tools } = counting();
    const store = await openStore("memory:", { recordsToolStarts: true });
    const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
    await session.startTurn(PROMPT);
    const agent = durable(session);
    const waiting = await agent.finish(start(agent, { model: scripted([call("a", "asks")]), tools: tools() }).run);
    const turn = await session.resumeTurn({ calls: () => "keep" });
    await turn.append(answer((waiting as Waiting).approvals, true));
    const model = scripted([text("Done.")]);
    const toolApproval = (): object => ({ type: "denied", reason: "no longer" });
    expect(await agent.finish(start(agent, { model, tools: tools(), toolApproval }).run)).toEqual({
      kind: "completed",
    });
    expect(ran).toEqual([]);
    expect(model.prompts[0]!.at(-1)).toMatchObject({
      role: "tool",
      content: [{ output: { type: "execution-denied", reason: "no longer" } }],
    });
    expect((await promptOf([...session.messages, NEXT])).slice(0, model.prompts[0]!.length)).toEqual(model.prompts[0]);
  });

  test.each([true, false])("answered at once, in the turn that is open (approved: %s)", async (approved) => {
    const { ran, tools } = counting();
    const store = await openStore("memory:", { recordsToolStarts: true });
    const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
    const turn = await session.startTurn(PROMPT);
    const agent = durable(session);
    const first = scripted([call("a", "asks"), call("b", "free")]);
    const waiting = await agent.outcome(start(agent, { model: first, tools: tools() }).run);
    expect(session.turn).toBe(turn);
    await turn.append(answer((waiting as Waiting).approvals, approved, "because"));
    const model = scripted([text("Done.")]);
    expect(await agent.finish(start(agent, { model, tools: tools() }).run)).toEqual({ kind: "completed" });
    expect(ran).toEqual(approved ? ["b", "a"] : ["b"]);
    const results = model.prompts[0]!.at(-1)!.content as unknown as { output: unknown }[];
    const shown = approved ? { type: "text", value: "ran a" } : { type: "execution-denied", reason: "because" };
    expect(results.map(({ output }) => output)).toEqual([shown, { type: "text", value: "ran b" }]);
    expect((await promptOf([...session.messages, NEXT])).slice(0, model.prompts[0]!.length)).toEqual(model.prompts[0]);
  });

  test("a rule that throws fails the run: nothing runs, and nothing looks free to run", async () => {
    const { ran, tools } = counting();
    const store = await openStore("memory:", { recordsToolStarts: true });
    const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
    await session.startTurn(PROMPT);
    const agent = durable(session);
    const error = new Error("the rule is broken");
    const toolApproval = (): Promise<never> => Promise.reject(error);
    const model = scripted([call("a", "free")]);
    expect(await agent.finish(start(agent, { model, tools: tools(), toolApproval }).run)).toEqual({
      kind: "failed",
      error,
    });
    expect(ran).toEqual([]);
    expect(session.interruption).toMatchObject({ how: { kind: "failed" }, calls: [] });
  });

  test("ids that the SDK makes beside its approvals are its own: each is another", async () => {
    const store = await openStore("memory:", { recordsToolStarts: true });
    const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
    await session.startTurn(PROMPT);
    const agent = durable(session);
    let made = 0;
    const settings = { toolApproval: () => "approved", _internal: { generateId: () => `id-${++made}` } };
    const model = scripted([call("a", "free"), call("b", "free")], [call("c", "free")], [text("Done.")]);
    const { run } = start(agent, { model, tools: counting().tools(), ...settings });
    const finished = agent.finish(run);
    const { steps } = (await run) as { steps: unknown };
    expect(await finished).toEqual({ kind: "completed" });
    const responses = ((await steps) as { response: { id: string } }[]).map(({ response }) => response.id);
    const requests = session.entries.flatMap(({ message: { content } }) =>
      ((typeof content === "string" ? [] : content) as { type: string; approvalId: string }[]).flatMap(
        ({ type, approvalId }) => (type === "tool-approval-request" ? [approvalId] : []),
      ),
    );
    expect(requests).toHaveLength(3);
    expect(responses).toHaveLength(3);
    expect(new Set([...requests, ...responses]).size).toBe(6);
  });

  test("the application's rule is asked once for each call", async () => {
    const store = await openStore("memory:", { recordsToolStarts: true });
    const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
    await session.startTurn(PROMPT);
    const agent = durable(session);
    const asked: unknown[] = [];
    const toolApproval = {
      free: async (input: unknown, { toolCallId, messages }: { toolCallId: string; messages: unknown[] }) => {
        asked.push([toolCallId, input, messages.length]);
        return "approved";
      },
    };
    const model = scripted([call("a", "free", { n: 1 }), call("b", "free", { n: 2 })], [text("Done.")]);
    await agent.finish(start(agent, { model, tools: counting().tools(), toolApproval }).run);
    expect(asked).toEqual([
      ["a", { n: 1 }, 1],
      ["b", { n: 2 }, 1],
    ]);
  });
});

test("an id that the SDK makes is an approval's once, right after it has asked, and never again", async () => {
  let made = 0;
  const approvals = new Approvals({
    tools: undefined,
    toolApproval: ({ toolCall }: { toolCall: { toolCallId: string } }) =>
      toolCall.toolCallId === "free" ? "not-applicable" : "user-approval",
    secret: undefined,
    newId: () => `id-${++made}`,
  });
  const scope = { tools: undefined, toolsContext: undefined, runtimeContext: undefined, messages: [] };
  const of = (toolCallId: string) => ({ type: "tool-call", toolCallId, toolName: "asks", input: {} }) as CallPart;
  approvals.begin();
  await approvals.resolve({ ...scope, toolCall: of("a") });
  const first = approvals.newId();
  expect(approvals.newId()).not.toBe(first);
  await approvals.resolve({ ...scope, toolCall: of("free") });
  const between = approvals.newId();
  await approvals.resolve({ ...scope, toolCall: of("a") });
  expect(approvals.newId(), "the same call, the same id").toBe(first);
  // Asked, and no id made: the next response begins with ids of its own, and its calls may have the same names.
  await approvals.resolve({ ...scope, toolCall: of("a") });
  approvals.begin();
  expect([first, between]).not.toContain(approvals.newId());
  await approvals.resolve({ ...scope, toolCall: of("a") });
  expect(approvals.newId()).not.toBe(first);
});

/**
 * The SDK puts the results of approved calls behind the others; the session, like the provider's rules, in the order of
 * the calls.
 */
function sorted(prompts: unknown): unknown {
  return JSON.parse(JSON.stringify(prompts), (_, value: unknown) => {
    if (!Array.isArray(value)) return value;
    const isResults =
      value.length > 0 && value.every((one) => (one as { type?: string } | null)?.type === "tool-result");
    return isResults ? value.sort((a, b) => (a.toolCallId < b.toolCallId ? -1 : 1)) : value;
  });
}

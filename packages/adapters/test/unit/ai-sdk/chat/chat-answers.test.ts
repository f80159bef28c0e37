import { jsonSchema, type ModelMessage, type ToolSet, tool, type UIMessage } from "ai";
import { expect, test, vi } from "vitest";
import { chunksOf, held, nothing, Server, says, wordsIn } from "../../../memory-chat.ts";
import { Page, plain, transportOf } from "../../../page.ts";
import { call, text } from "../../../scripted-model.ts";

const tools: ToolSet = {
  place: tool({
    inputSchema: nothing,
    outputSchema: jsonSchema<{ at: string }>(
      { type: "object", properties: { at: { type: "string" } } },
      {
        validate: (value) =>
          typeof (value as { at?: unknown })?.at === "string"
            ? { success: true, value: value as { at: string } }
            : { success: false, error: new Error("at is missing") },
      },
    ),
  }),
  anything: tool({ inputSchema: nothing }),
};

test("the output of a client-side tool is judged by the tool that was called, not by the one the browser names", async () => {
  await using server = await Server.with([[call("c1", "place")], [text("So be it.")]], tools);
  const page = await server.page();
  await page.sendMessage({ text: "Where am I?" });
  const message = page.messages.at(-1)!;
  const parts = (type: string): unknown[] => [
    { type: "step-start" },
    { type, toolCallId: "c1", state: "output-available", input: {}, output: "nonsense" },
  ];
  const fits = await server.post({ message: { ...message, parts: parts("tool-place") } });
  expect(fits.status, "not what the schema allows").toBe(400);
  const other = await server.post({ message: { ...message, parts: parts("tool-anything") } });
  expect([other.status, other.headers.get("x-holdfast-code")]).toEqual([409, "NOT_WAITING"]);
  expect((await server.state()).status).toBe("waiting");
  expect(server.model.prompts).toHaveLength(1);
});

const asks: ToolSet = { send: tool({ inputSchema: nothing, needsApproval: true, execute: async () => "Sent." }) };

function decided(message: UIMessage, decisions: Readonly<Record<string, boolean>>): UIMessage {
  return {
    ...message,
    parts: message.parts.map((part) => {
      const approved = "toolCallId" in part ? decisions[part.toolCallId] : undefined;
      if (approved === undefined || !("approval" in part)) return part;
      return { ...part, state: "approval-responded", approval: { ...part.approval, approved } } as never;
    }),
  };
}

test("a tab that contradicts an earlier decision is told, also if it decides something new", async () => {
  await using server = await Server.with([[call("c1", "send"), call("c2", "send")], [text("Done.")]], asks);
  const page = await server.page();
  await page.sendMessage({ text: "Send both." });
  await server.chat.idle();
  const message = page.messages.at(-1)!;
  expect((await server.post({ message: decided(message, { c1: true }) })).status).toBe(200);
  const stale = await server.post({ message: decided(message, { c1: false, c2: true }) });
  expect([stale.status, stale.headers.get("x-holdfast-code")]).toEqual([409, "ALREADY_ANSWERED"]);
  expect((await server.state()).status, "nothing of it was recorded").toBe("waiting");
  const both = await server.post({ message: decided(message, { c1: true, c2: true }) });
  expect(wordsIn(await chunksOf(both))).toBe("Done.");
});

test("a call id that the model uses twice: the earlier output is not taken as the answer to the later call", async () => {
  await using server = await Server.with(
    [[call("c1", "anything")], [call("c1", "anything")], [text("Thanks.")]],
    tools,
  );
  const page = await server.page();
  await page.sendMessage({ text: "Ask twice." });
  const part = { type: "tool-anything", toolCallId: "c1", input: {} };
  const first = [{ type: "step-start" }, { ...part, state: "output-available", output: "one" }];
  const message = page.messages.at(-1)!;
  await (await server.post({ message: { ...message, parts: first } })).text();
  await server.chat.idle();
  const open = [...first, { type: "step-start" }, { ...part, state: "input-available" }];
  await (await server.post({ message: { ...message, parts: open } })).text();
  expect((await server.state()).status, "the second call has no output yet").toBe("waiting");
  const second = [...first, { type: "step-start" }, { ...part, state: "output-available", output: "two" }];
  const done = await server.post({ message: { ...message, parts: second } });
  expect(wordsIn(await chunksOf(done))).toBe("Thanks.");
  expect(JSON.stringify(server.model.prompts[2])).toMatch(/"one".*"two"/);
});

/** A turn whose process was killed after its calls were recorded. `started`: those that were running. */
async function killedWith(
  server: Server,
  calls: readonly (readonly [id: string, name: string])[],
  started: readonly string[],
): Promise<void> {
  const session = await server.store.create<ModelMessage>({
    dialect: "ai-sdk",
    id: server.chat.sessionId(server.id),
  });
  const turn = await session.startTurn({ role: "user", content: "Do it." }, { id: "m" });
  const parts = calls.flatMap(([toolCallId, toolName]) => [
    { type: "tool-call" as const, toolCallId, toolName, input: {} },
    ...(toolName === "send"
      ? [{ type: "tool-approval-request" as const, approvalId: `ask ${toolCallId}`, toolCallId }]
      : []),
  ]);
  await turn.append({ role: "assistant", content: parts });
  for (const id of started) await turn.toolStarted(id);
  await session.close();
}

test("calls that a kill cut off beside one that waits: the page's answer is sent, and the page ends as the journal", async () => {
  const ran: string[] = [];
  const look = tool({
    inputSchema: nothing,
    execute: async (_, { toolCallId }) => {
      ran.push(toolCallId);
      return "Seen.";
    },
  });
  await using server = await Server.with([[text("Done.")]], { ...asks, look });
  await killedWith(
    server,
    [
      ["c1", "look"],
      ["c2", "send"],
      ["c3", "look"],
    ],
    ["c1"],
  );
  const { status, interrupted } = await server.state();
  expect([status, interrupted?.tools.map(({ toolCallId, state }) => `${toolCallId} ${state}`)]).toEqual([
    "waiting",
    ["c1 outcome-unknown", "c3 never-started"],
  ]);
  const page = await server.page();
  const states = (): unknown[] => page.messages.at(-1)!.parts.flatMap((part) => ("state" in part ? [part.state] : []));
  expect(states(), "only what waits is open").toEqual(["output-error", "approval-requested", "output-error"]);
  await page.addToolApprovalResponse({ id: "ask c2", approved: true });
  await vi.waitFor(() => expect([page.error, page.status, page.text]).toEqual([undefined, "ready", "Done."]));
  expect(states()).toEqual(["output-error", "output-available", "output-available", "done"]);
  expect(ran, "what was running does not run again").toEqual(["c3"]);
  await server.chat.idle();
  expect(plain((await server.state()).messages)).toEqual(page.shown);
});

test("a prompt that is sent again while its turn waits beside a call that was cut off: the page can answer", async () => {
  const look = tool({ inputSchema: nothing, execute: async () => "Seen." });
  await using server = await Server.with([[text("Done.")]], { ...asks, look });
  await killedWith(
    server,
    [
      ["c1", "look"],
      ["c2", "send"],
    ],
    ["c1"],
  );
  const page = new Page(server.id, [], { transport: transportOf(server.chat.handle) });
  await page.sendMessage({ id: "m", role: "user", parts: [{ type: "text", text: "Do it." }] });
  expect(plain((await server.state()).messages)).toEqual(page.shown);
});

test("an answer to a turn that is past is judged at once, also while the model answers in another one", async () => {
  const slow = held("One ", "two.");
  await using server = await Server.with([[call("c1", "send")], slow.step], asks);
  const page = await server.page();
  await page.sendMessage({ text: "Send it." });
  await server.chat.idle();
  const message = page.messages.at(-1)!;
  const next = await server.post(says("m2", "Never mind: count."));
  await slow.said;
  const late = await server.post({ message: decided(message, { c1: true }) });
  expect([late.status, late.headers.get("x-holdfast-code")]).toEqual([409, "NOT_WAITING"]);
  slow.release();
  expect(wordsIn(await chunksOf(next))).toBe("One two.");
});

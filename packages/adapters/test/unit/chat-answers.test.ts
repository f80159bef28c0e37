import { jsonSchema, type ToolSet, tool, type UIMessage } from "ai";
import { expect, test } from "vitest";
import { chunksOf, nothing, Server, wordsIn } from "../memory-chat.ts";
import { call, text } from "../scripted-model.ts";

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

import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { openStore, type Session } from "holdfast";
import { createAgent, createMiddleware, modelRetryMiddleware, tool } from "langchain";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { place } from "../../../holdfast/test/place.ts";
import { durable, langchain } from "../../src/langchain/index.ts";
import { outline, recordsOf } from "../agents.ts";
import { ScriptedChatModel } from "../scripted-chat-model.ts";

const called = (id: string, name = "look", content = "I look.") =>
  new AIMessage({ content, tool_calls: [{ type: "tool_call", id, name, args: {} }] });

/** Calls a tool, then answers. */
const looks = (messages: BaseMessage[]) =>
  ToolMessage.isInstance(messages.at(-1)) ? new AIMessage("That is all.") : called("c1");

const look = tool(() => "seen", { name: "look", schema: z.object({}) });

async function begin(folder: string): Promise<Session<BaseMessage>> {
  const store = await openStore(folder, { recordsToolStarts: true });
  return store.create({ dialect: langchain });
}

const texts = (messages: readonly BaseMessage[]) => messages.map(({ text }) => text);

describe("an agent with the middleware", () => {
  test("records tokens, the answer before its tools start, starts before they run, and outcomes", async () => {
    using folder = place();
    const session = await begin(folder.path);
    const agent = durable(session);
    const app = createAgent({ model: new ScriptedChatModel(looks), tools: [look], middleware: [agent.middleware] });
    await session.startTurn(new HumanMessage("Look."));
    const run = app.invoke({ messages: agent.messages() }, agent.config());
    expect(await agent.finish(run)).toEqual({ kind: "completed" });
    const records = outline(await recordsOf(session)).filter((line) => !line.startsWith("draft"));
    expect(records).toMatchInlineSnapshot(`
      [
        "turn.started",
        "message undefined",
        "message undefined",
        "tool.started c1",
        "tool.ended c1",
        "message undefined",
        "turn.ended",
      ]
    `);
    expect(texts(session.messages)).toEqual(["Look.", "I look.", "seen", "That is all."]);
    await session.close();
  });
});

import { AIMessage, type BaseMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { openStore } from "holdfast";
import { createAgent, tool } from "langchain";
import { expect, test } from "vitest";
import { z } from "zod";
import { durable, langchain } from "../../../src/langchain/index.ts";
import { bringTo, callRows } from "../../call-rows.ts";
import { ScriptedChatModel } from "../../scripted-chat-model.ts";

test.each(callRows())("resume decides about an open call as the account says: $state, $decision", async (row) => {
  await using store = await openStore("memory:", {
    recordsToolStarts: row.state !== "unrecorded",
    dialects: [langchain],
  });
  const first = await store.create({ dialect: langchain });
  const turn = await first.startTurn(new HumanMessage("go"));
  await turn.append(
    new AIMessage({ content: "", tool_calls: [{ type: "tool_call", id: "a", name: "look", args: {} }] }),
  );
  await bringTo(turn, row);
  await first.close();
  const session = await store.resume<BaseMessage>(first.id, { dialect: langchain });
  expect(session.calls).toMatchObject([{ id: "a", state: row.state }]);
  const ran: string[] = [];
  const run = (): string => {
    ran.push("a");
    return "seen";
  };
  const look = tool(run, { name: "look", schema: z.object({}) });
  const model = new ScriptedChatModel(() => new AIMessage("Done."));
  const agent = durable(session, { replay: { look: "safe" } });
  const resumed = await agent.resume();
  if (row.decision === "wait") {
    expect([resumed, ran, session.state]).toEqual([null, [], "waiting"]);
    return;
  }
  const app = createAgent({ model, tools: [look], middleware: [agent.middleware] });
  await agent.finish(app.invoke({ messages: agent.messages() }, agent.config()));
  expect(ran).toEqual(row.decision === "tell-model" ? [] : ["a"]);
  const told = model.asked[0]!.findLast((message) => ToolMessage.isInstance(message));
  expect(told?.text).toMatch(row.decision === "tell-model" ? /check before repeating it/i : /seen/);
  expect(session.state).toBe("idle");
});

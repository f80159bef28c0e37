import { HoldfastSessionStore } from "@holdfast/adapters/claude-agent";
import { langchain } from "@holdfast/adapters/langchain";
import { openaiAgents } from "@holdfast/adapters/openai-agents";
import { AIMessage, HumanMessage, ToolMessage } from "@langchain/core/messages";
import type { AgentInputItem } from "@openai/agents";
import { openStore } from "holdfast";
import { describe, expect, test } from "vitest";
import { place } from "../../../../holdfast/test/place.ts";
import { exportSession } from "../../../src/export/export.ts";
import { openBoth } from "../../../src/store/open.ts";
import { itemsOf } from "../../../src/transcript/items.ts";

/** Sessions of the frameworks' adapters, read as the command reads them: without the frameworks. */

const PROMPT = "Tell everybody about the release.";
const ANSWER = "Everybody knows.";

async function withOpenaiAgents(folder: string): Promise<void> {
  await using store = await openStore(folder, { dialects: [openaiAgents] });
  await using session = await store.create<AgentInputItem>({ dialect: openaiAgents });
  const turn = await session.startTurn({ type: "message", role: "user", content: PROMPT });
  const called = {
    type: "function_call",
    callId: "c1",
    name: "send_mail",
    arguments: '{"to":"all"}',
    status: "completed",
  };
  await turn.append(called as AgentInputItem);
  const output = { type: "text", text: "sent to 7" };
  const result = { type: "function_call_result", callId: "c1", name: "send_mail", status: "completed", output };
  await turn.append(result as AgentInputItem);
  const content = [{ type: "output_text", text: ANSWER }];
  await turn.append({ type: "message", role: "assistant", status: "completed", content } as AgentInputItem);
  await turn.end();
}

async function withLangchain(folder: string): Promise<void> {
  await using store = await openStore(folder, { dialects: [langchain] });
  await using session = await store.create({ dialect: langchain });
  const turn = await session.startTurn(new HumanMessage(PROMPT));
  const tool_calls = [{ type: "tool_call" as const, id: "c1", name: "send_mail", args: { to: "all" } }];
  await turn.append(new AIMessage({ content: "", tool_calls }));
  await turn.append(new ToolMessage({ content: "sent to 7", tool_call_id: "c1" }));
  await turn.append(new AIMessage(ANSWER));
  await turn.end();
}

async function withClaudeAgent(folder: string): Promise<void> {
  await using store = await HoldfastSessionStore.open(folder);
  const message = (role: string, content: unknown, stop_reason?: string) => ({
    type: role,
    message: { role, content, stop_reason },
  });
  await store.append({ projectKey: "p", sessionId: "s" }, [
    message("user", PROMPT),
    message("assistant", [{ type: "tool_use", id: "c1", name: "send_mail", input: { to: "all" } }], "tool_use"),
    message("user", [{ type: "tool_result", tool_use_id: "c1", content: "sent to 7" }]),
    message("assistant", [{ type: "text", text: ANSWER }], "end_turn"),
  ]);
}

describe.each([
  ["OpenAI Agents", withOpenaiAgents],
  ["LangChain", withLangchain],
  ["Claude Agent SDK", withClaudeAgent],
])("a session of %s", (_, record) => {
  test("is listed with its prompt, shown, searched and exported", async () => {
    using folder = place();
    await record(folder.path);
    await using opened = await openBoth(folder.path, "test", { stores: {} });
    const { store } = opened;
    const { sessions } = await store.list();
    expect(sessions).toMatchObject([{ title: PROMPT, status: "idle" }]);
    const { id } = sessions[0]!;

    const items = itemsOf(await store.read(id)).map((item) => {
      if (item.kind === "call") return { call: item.name, state: item.state };
      return item.text;
    });
    expect(items).toEqual([PROMPT, { call: "send_mail", state: "done" }, ANSWER]);

    for (const words of ["release", "everybody knows"])
      expect(await Array.fromAsync(store.search(words)), words).toContainEqual(
        expect.objectContaining({ session: id }),
      );

    for (const format of ["markdown", "messages", "openai-chat", "anthropic"] as const) {
      let text = "";
      for await (const piece of exportSession(store, id, { format })) text += piece;
      for (const words of [PROMPT, "send_mail", "sent to 7", ANSWER]) expect(text, format).toContain(words);
    }
  });
});

test("a session that was cut off is shown with its open call", async () => {
  using folder = place();
  {
    await using store = await openStore(folder.path, { dialects: [langchain], recordsToolStarts: true });
    await using session = await store.create({ dialect: langchain });
    const turn = await session.startTurn(new HumanMessage(PROMPT));
    const tool_calls = [{ type: "tool_call" as const, id: "c1", name: "send_mail", args: { to: "all" } }];
    await turn.append(new AIMessage({ content: "", tool_calls }));
    await turn.toolStarted("c1", { name: "send_mail", input: {} });
  }
  await using opened = await openBoth(folder.path, "test", { stores: {} });
  const { sessions } = await opened.store.list();
  const reading = await opened.store.read(sessions[0]!.id);
  expect(reading.interruption?.calls).toMatchObject([{ name: "send_mail", state: "outcome-unknown" }]);
  expect(reading.messages).toHaveLength(3); // the last one says that the outcome is unknown
});

import { Agent, type AgentInputItem, MemorySession, run, type Session, tool } from "@openai/agents";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { durable, historySession } from "../../../src/openai-agents/index.ts";
import { call, ScriptedModel, stage, text } from "../../openai-agents/scripted.ts";

/** History only: the `Session` of the SDK. */

function agentOf(model: ScriptedModel, needsApproval = false): Agent {
  const look = tool({
    name: "look",
    description: "",
    parameters: z.object({}),
    needsApproval,
    execute: async () => "seen",
  });
  return new Agent({ name: "A", model, tools: [look] });
}

const SCRIPT = [[text("I look."), call("a", "look")], [text("Done.")], [text("Yes.")]];

/** Two runs, streamed or not; what the session holds afterwards, and what the models were asked with. */
async function conversation(session: Session, stream: boolean, asks: boolean) {
  const model = new ScriptedModel(SCRIPT);
  const agent = agentOf(model, asks);
  for (const prompt of ["Go.", "Sure?"]) {
    let input: Parameters<typeof run>[1] = prompt;
    for (;;) {
      const result = await run(agent, input as string, { session, stream } as { session: Session; stream: true });
      if (stream) await result.completed;
      if (result.interruptions.length === 0) break;
      for (const item of result.interruptions) result.state.approve(item);
      input = result.state as never;
    }
  }
  return { items: bare(await session.getItems()), inputs: model.inputs.map(bare) };
}

function bare(items: readonly AgentInputItem[]): unknown {
  return JSON.parse(JSON.stringify(items), (key, value) =>
    key === "id" || (key === "type" && value === "message") ? undefined : value,
  );
}

describe.each([
  ["at once", false],
  ["streamed", true],
] as const)("%s", (_, stream) => {
  test.each([
    ["a conversation", false],
    ["with an approval", true],
  ])("%s: the same items as in the SDK's own memory, each once", async (__, asks) => {
    await using here = await stage();
    const ours = await conversation(historySession(here.session), stream, asks);
    expect(ours).toEqual(await conversation(new MemorySession(), stream, asks));
    const session = await here.next();
    expect(bare(await historySession(session).getItems())).toEqual(ours.items);
    expect(session.interruption).toBe(null);
  });
});

test("items can be limited, removed and cleared", async () => {
  await using here = await stage();
  const history = historySession(here.session);
  expect(await history.getSessionId()).toBe(here.session.id);
  expect(await history.popItem()).toBe(undefined);
  const items: AgentInputItem[] = [{ role: "user", content: "one" }, text("two"), { role: "user", content: "three" }];
  await history.addItems(items);
  expect(await history.getItems(2)).toEqual(items.slice(1));
  expect(await history.getItems(0)).toEqual([]);
  expect(await history.popItem()).toEqual(items[2]);
  expect(await history.getItems()).toEqual(items.slice(0, 2));
  await history.clearSession();
  expect(await history.getItems()).toEqual([]);
  await history.addItems(items.slice(0, 1));
  expect(await history.getItems()).toEqual(items.slice(0, 1));
});

test("the items belong to the caller", async () => {
  await using here = await stage();
  const history = historySession(here.session);
  const items = [{ role: "user" as const, content: "one" }];
  await history.addItems(items);
  items[0]!.content = "changed";
  const [read] = (await history.getItems()) as { content: string }[];
  read!.content = "changed";
  expect(await history.getItems()).toEqual([{ role: "user", content: "one" }]);
});

test("durable runs go on with what was recorded as history, and refuse a session beside it", async () => {
  await using here = await stage();
  const history = historySession(here.session);
  await run(new Agent({ name: "A", model: new ScriptedModel([[text("Hello.")]]) }), "Hi.", { session: history });
  const model = new ScriptedModel([[text("Yes.")]]);
  const held = durable(here.session);
  await expect(held.run(agentOf(model), "Sure?", { session: history } as never)).rejects.toThrow(/"session"/);
  await held.run(agentOf(model), "Sure?");
  expect(model.inputs[0]).toHaveLength(3);
  expect(await history.getItems()).toHaveLength(4);
});

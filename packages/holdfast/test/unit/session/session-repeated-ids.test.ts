import { type OpenAIChatMessage, openStore, type Session } from "holdfast";
import { expect, test } from "vitest";

type M = OpenAIChatMessage;

/** Local servers give the same ids in every response (R9). */
const calls = (): M =>
  ({
    role: "assistant",
    content: null,
    tool_calls: [{ id: "call_0", type: "function", function: { name: "work", arguments: "{}" } }],
  }) as M;
const textOf = ({ messages }: Session<M>): string => JSON.stringify(messages);

async function begin(): Promise<Session<M>> {
  const store = await openStore("memory:", { recordsToolStarts: true });
  return store.create<M>({ dialect: "openai-chat" });
}

test("R9: a call whose result came in a message does not keep its id for the rest of the turn", async () => {
  const session = await begin();
  const turn = await session.startTurn({ role: "user", content: "work" });
  await turn.append(calls());
  await turn.toolStarted("call_0");
  await turn.append({ role: "tool", tool_call_id: "call_0", content: "first" } as M);
  await turn.append(calls());
  expect(await turn.tool("call_0", () => "second")).toEqual({ value: "second" });
  expect(textOf(session)).toMatch(/first.*second/);
});

test("R9: an outcome belongs to the newest call of its id that was started", async () => {
  const session = await begin();
  const turn = await session.startTurn({ role: "user", content: "work" });
  await turn.append(calls());
  await turn.toolStarted("call_0");
  await turn.append({ role: "tool", tool_call_id: "call_0", content: "first" } as M);
  await turn.append(calls());
  await turn.toolStarted("call_0");
  await turn.toolEnded("call_0", { value: "second" });
  expect(textOf(session)).toMatch(/first.*second/);
});

test("R9: a tool that still runs when its id comes again keeps its outcome to itself", async () => {
  const session = await begin();
  const turn = await session.startTurn({ role: "user", content: "work" });
  const first = await turn.append(calls());
  const { promise: slow, resolve } = Promise.withResolvers<string>();
  const running = turn.tool("call_0", () => slow);
  // The model goes on though the tool still runs.
  const second = await turn.append(calls());
  await turn.tool("call_0", () => "second");
  resolve("first");
  await running;
  const ended = [];
  for await (const record of session.follow({ signal: AbortSignal.timeout(50) }))
    if (record.kind === "tool.ended") ended.push({ message: record["message"], value: record["value"] });
  expect(ended).toEqual([
    { message: second.id, value: "second" },
    { message: first.id, value: "first" },
  ]);
  expect(textOf(session)).toMatch(/first.*second/);
});

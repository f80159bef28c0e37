import { type ModelMessage, type ToolSet, tool, type UIMessage } from "ai";
import { expect, test } from "vitest";
import { place } from "../../../../../holdfast/test/place.ts";
import { LazyDisk } from "../../../lazy-disk.ts";
import { BASE, held, nothing, Server, says } from "../../../memory-chat.ts";
import { call, text } from "../../../scripted-model.ts";

/** What a server has answered is on disk, and it answers nothing before. */

const tools: ToolSet = {
  send: tool({ inputSchema: nothing, needsApproval: true, execute: async () => "Sent." }),
  where: tool({ inputSchema: nothing }),
};

const stop = (server: Server): Promise<Response> =>
  server.chat.DELETE(new Request(`${BASE}/${server.id}`, { method: "DELETE" }));

async function answered(server: Server): Promise<Response> {
  const message = (await server.state()).messages.at(-1)!;
  const parts = message.parts.map((part) => {
    if ("approval" in part && part.state === "approval-requested")
      return { ...part, state: "approval-responded", approval: { ...part.approval, approved: true } };
    if (part.type === "tool-where") return { ...part, state: "output-available", output: "here" };
    return part;
  });
  return server.post({ message: { ...message, parts: parts as UIMessage["parts"] } });
}

/** What a page does, and how the journal says so. */
const ACTS: readonly (readonly [(server: Server) => Promise<Response>, journal: RegExp])[] = [
  [(server) => server.post(says("m1", "Send it.")), /"id":"m1"/],
  [stop, /"by":"the user"/],
  [
    (server) => server.post({ ...says("m1", "Send it."), trigger: "regenerate-message" }),
    /turn\.resumed.*turn\.resumed/,
  ],
  [answered, /"tool-approval-response"/],
  [(server) => server.post(says("m2", "Where am I?")), /"id":"m2"/],
  [answered, /"here"/],
  [(server) => server.post(says("m3", "And now?")), /"id":"m3"/],
  [(server) => server.post({ trigger: "continue" }), /(?:turn\.resumed.*){5}/],
];

const down = (): never => {
  throw new Error("the provider is down");
};

test("nothing is answered before it is on disk: a prompt, a decision, an output, a stop, and to go on", async () => {
  using folder = place();
  const lazy = new LazyDisk();
  await using store = await lazy.open(folder.path);
  const steps = [
    [call("c1", "send")],
    [call("c2", "send")],
    [text("Done.")],
    [call("c3", "where")],
    [text("Here.")],
    down,
    [text("Back.")],
  ];
  const server = new Server(store, steps, tools, { onFailure: () => {} });
  for (const [n, [act, recorded]] of ACTS.entries()) {
    const response = await act(server);
    expect(lazy.left, `act ${n} was answered`).toMatch(recorded);
    expect(response.ok, `act ${n}`).toBe(true);
    if (act === stop) expect(await store.holder(server.chat.sessionId(server.id)), "any server can go on").toBe(null);
    await response.text();
    await server.chat.idle();
  }
  expect((await server.state()).status).toBe("ready");
});

test("a stop of the running answer is on disk when it is answered", async () => {
  using folder = place();
  const lazy = new LazyDisk();
  await using store = await lazy.open(folder.path);
  const slow = held("One ", "two.");
  const server = new Server(store, [slow.step]);
  await server.post(says("m", "Count."));
  await slow.said;
  expect((await stop(server)).status).toBe(204);
  expect(lazy.left).toMatch(/"by":"the user"/);
  slow.release();
  await server.chat.idle();
});

/** A turn that a killed server left. */
async function left(server: Server, ...messages: ModelMessage[]): Promise<void> {
  const session = await server.store.create<ModelMessage>({
    dialect: "ai-sdk",
    id: server.chat.sessionId(server.id),
  });
  const turn = await session.startTurn({ role: "user", content: "Go." }, { id: "m" });
  await turn.append(messages);
  await session.close();
}

const asking = (...ids: string[]): ModelMessage => ({
  role: "assistant",
  content: ids.flatMap((toolCallId) => [
    { type: "tool-call" as const, toolCallId, toolName: "send", input: {} },
    { type: "tool-approval-request" as const, approvalId: `ask ${toolCallId}`, toolCallId },
  ]),
});

const decided = async (server: Server, call: string): Promise<Response> => {
  const message = (await server.state()).messages.at(-1)!;
  const parts = message.parts.map((part) =>
    "approval" in part && "toolCallId" in part && part.toolCallId === call
      ? { ...part, state: "approval-responded", approval: { ...part.approval, approved: true } }
      : part,
  );
  return server.post({ message: { ...message, parts: parts as UIMessage["parts"] } });
};

test.each<[string, ModelMessage, (server: Server) => Promise<Response>, journal: RegExp, status: number]>([
  ["one of two decisions", asking("c1", "c2"), (server) => decided(server, "c1"), /turn\.suspended/, 200],
  [
    "to go on with what is complete",
    { role: "assistant", content: "All of it." },
    (server) => server.post({ trigger: "continue" }),
    /turn\.ended/,
    202,
  ],
  ["to go on with what waits", asking("c1"), (server) => server.post({ trigger: "continue" }), /"c1"/, 409],
  ["a stop of what broke off", asking("c1"), stop, /"by":"the user"/, 204],
])("the session is free for any server when this is answered: %s", async (_, message, act, recorded, status) => {
  using folder = place();
  const lazy = new LazyDisk();
  await using store = await lazy.open(folder.path);
  const server = new Server(store, [], tools, { onFailure: () => {} });
  await left(server, message);
  const response = await act(server);
  expect([response.status, await store.holder(server.chat.sessionId(server.id))]).toEqual([status, null]);
  expect(lazy.left).toMatch(recorded);
  await response.text();
});

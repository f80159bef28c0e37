import { type ModelMessage, type ToolSet, tool } from "ai";
import { expect, test, vi } from "vitest";
import { BASE, held, nothing, Server, says } from "../../../memory-chat.ts";
import { plain } from "../../../page.ts";
import { call, text } from "../../../scripted-model.ts";

/** What a stop does in each state of a chat, and what can follow it. */

const stop = (server: Server): Promise<Response> =>
  server.chat.DELETE(new Request(`${BASE}/${server.id}`, { method: "DELETE" }));

const sends = (ran: string[]): ToolSet => ({
  send: tool({
    inputSchema: nothing,
    needsApproval: true,
    execute: async (_, { toolCallId }) => {
      ran.push(toolCallId);
      return "Sent.";
    },
  }),
});

test("stopped, then regenerated: the answer is made again, and the page ends as the journal", async () => {
  const slow = held("One ", "two.");
  await using server = await Server.with([slow.step, [text("Again.")]]);
  const page = await server.page();
  const sent = page.sendMessage({ text: "Count." });
  await slow.said;
  expect((await stop(server)).status).toBe(204);
  slow.release();
  await sent;
  expect((await server.state()).status).toBe("ready");
  await page.regenerate();
  expect([page.error, page.text]).toEqual([undefined, "Again."]);
  await server.chat.idle();
  const { status, messages } = await server.state();
  expect([status, plain(messages)]).toEqual(["ready", page.shown]);
});

test("regenerated while the stopped answer still ends: it is made again, and does not join the stopped one", async () => {
  const { promise: told, resolve: tell } = Promise.withResolvers<void>();
  const { promise: released, resolve: release } = Promise.withResolvers<string>();
  const deaf = tool({
    inputSchema: nothing,
    execute: async () => {
      tell();
      return released;
    },
  });
  await using server = await Server.with([[call("c1", "deaf")], [text("Again.")]], { deaf });
  const page = await server.page();
  const sent = page.sendMessage({ text: "Go." });
  await told;
  expect((await stop(server)).status).toBe(204);
  const again = page.regenerate();
  release("Late.");
  await Promise.all([sent, again]);
  expect([page.error, page.text]).toEqual([undefined, "Again."]);
  expect(server.model.prompts).toHaveLength(2);
  await server.chat.idle();
  expect(plain((await server.state()).messages)).toEqual(page.shown);
});

test("a stop while an approval waits: the call is denied, and nothing can revive it but a new request", async () => {
  const ran: string[] = [];
  await using server = await Server.with([[text("May I?"), call("c1", "send")], [text("As you like.")]], sends(ran));
  const page = await server.page();
  const stale = await server.page();
  await page.sendMessage({ text: "Send it." });
  await server.chat.idle();
  stale.messages = structuredClone(page.messages);
  expect((await server.state()).status).toBe("waiting");
  expect((await stop(server)).status).toBe(204);
  const { status, interrupted, messages } = await server.state();
  expect([status, interrupted]).toEqual(["ready", null]);
  expect(messages.at(-1)!.parts.at(-1)).toMatchObject({ state: "output-denied", approval: { approved: false } });
  const [request] = stale.messages.at(-1)!.parts.flatMap((part) => ("approval" in part ? [part.approval!.id] : []));
  await stale.addToolApprovalResponse({ id: request!, approved: true });
  await vi.waitFor(() => expect(stale.error?.message).toContain("Nothing waits for this answer"));
  expect(ran).toEqual([]);
  const next = await server.page();
  await next.sendMessage({ text: "Never mind." });
  expect(next.text).toBe("As you like.");
  expect(JSON.stringify(server.model.prompts[1])).toContain("not approved");
  await server.chat.idle();
  expect(plain((await server.state()).messages)).toEqual(next.shown);
});

test("a stop at the moment when the turn begins to wait is not lost", async () => {
  await using server = await Server.with([[call("c1", "send")]], sends([]));
  const response = await server.post(says("m", "Send it."));
  let said = "";
  for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
    said += piece;
    if (said.includes('"type":"finish"')) break;
  }
  expect((await stop(server)).status).toBe(204);
  await server.chat.idle();
  expect((await server.state()).status).toBe("ready");
});

test("a stop while an approval waits, then regenerate: the model is told that the call was not approved", async () => {
  const ran: string[] = [];
  await using server = await Server.with([[call("c1", "send")], [text("Then not.")]], sends(ran));
  const page = await server.page();
  await page.sendMessage({ text: "Send it." });
  await server.chat.idle();
  await stop(server);
  await page.regenerate();
  expect([page.error, page.text, ran]).toEqual([undefined, "Then not.", []]);
  expect(JSON.stringify(server.model.prompts[1])).toContain("not approved");
  await server.chat.idle();
  const { status, messages } = await server.state();
  expect([status, plain(messages)]).toEqual(["ready", page.shown]);
});

test("a stop after one of two approvals, then regenerate: what was approved before does not run, either", async () => {
  const ran: string[] = [];
  const steps = [[call("c1", "send"), call("c2", "send")], [text("Then not.")]];
  await using server = await Server.with(steps, sends(ran));
  const page = await server.page();
  await page.sendMessage({ text: "Send both." });
  await server.chat.idle();
  const [first] = page.messages.at(-1)!.parts.flatMap((part) => ("approval" in part ? [part.approval!.id] : []));
  await page.addToolApprovalResponse({ id: first!, approved: true });
  await (await server.post({ message: page.messages.at(-1)! })).text();
  expect((await server.state()).status).toBe("waiting");
  await stop(server);
  const next = await server.page();
  await next.regenerate();
  expect([next.error, next.text, ran]).toEqual([undefined, "Then not.", []]);
  expect(JSON.stringify(server.model.prompts[1])).toMatch(/Not run: the user stopped it.*not approved/);
  await server.chat.idle();
  expect(plain((await server.state()).messages)).toEqual(next.shown);
});

test("regenerate while an approval waits is refused, and says why", async () => {
  await using server = await Server.with([[call("c1", "send")]], sends([]));
  const page = await server.page();
  await page.sendMessage({ text: "Send it." });
  await server.chat.idle();
  await page.regenerate();
  expect(page.error?.message).toContain("waits for an answer");
  expect((await server.state()).status).toBe("waiting");
});

test("a stop while a tool runs: the page does not show the call as running for ever", async () => {
  const { promise: told, resolve: tell } = Promise.withResolvers<void>();
  const look = tool({
    inputSchema: nothing,
    execute: (_, { abortSignal }) =>
      new Promise<string>((_resolve, reject) => {
        abortSignal!.addEventListener("abort", () => reject(new Error("stopped")));
        tell();
      }),
  });
  await using server = await Server.with([[call("c1", "look"), call("c2", "look")]], { look });
  const page = await server.page();
  const sent = page.sendMessage({ text: "Look." });
  await told;
  await stop(server);
  await sent;
  await server.chat.idle();
  const { status, messages } = await server.state();
  expect(status).toBe("ready");
  const states = messages.at(-1)!.parts.flatMap((part) => ("toolCallId" in part ? [part.state] : []));
  expect(states).toEqual(["output-error", "output-error"]);
});

test("a stop of an answer that broke off: the user gives it up, its words stay, and the chat goes on", async () => {
  await using server = await Server.with([[text("Next.")]]);
  const session = await server.store.create<ModelMessage>({
    dialect: "ai-sdk",
    id: server.chat.sessionId(server.id),
  });
  const turn = await session.startTurn({ role: "user", content: "Count." }, { id: "m1" });
  turn.request().draft.push({ text: "One " });
  await session.flush();
  await session.close();
  const before = await server.state();
  expect(before.status).toBe("interrupted");
  expect((await stop(server)).status).toBe(204);
  const { status, interrupted, messages } = await server.state();
  expect([status, interrupted, plain(messages)]).toMatchObject([
    "ready",
    null,
    [{ id: "m1" }, { parts: [{}, { text: "One " }] }],
  ]);
  const page = await server.page();
  await page.sendMessage({ text: "Go on." });
  expect([page.error, page.text]).toEqual([undefined, "Next."]);
  await server.chat.idle();
  expect(plain((await server.state()).messages)).toEqual(page.shown);
});

test("a stop of a turn whose answer was complete leaves it complete; of a chat that does not exist, nothing", async () => {
  await using server = await Server.with([]);
  expect((await stop(server)).status).toBe(204);
  expect(await server.store.has(server.chat.sessionId(server.id)), "nothing was created").toBe(false);
  const session = await server.store.create<ModelMessage>({
    dialect: "ai-sdk",
    id: server.chat.sessionId(server.id),
  });
  const turn = await session.startTurn({ role: "user", content: "Hi." }, { id: "m1" });
  await turn.append({ role: "assistant", content: "Hello." });
  await session.close();
  expect((await stop(server)).status).toBe(204);
  const { interruption } = await server.store.read(server.chat.sessionId(server.id));
  expect(interruption?.answered ?? true).toBe(true);
  expect((await server.state()).status).toBe("ready");
});

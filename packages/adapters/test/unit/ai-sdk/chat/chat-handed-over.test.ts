import { type ModelMessage, type ToolSet, tool } from "ai";
import type { Session } from "holdfast";
import { expect, test } from "vitest";
import { BASE, chunksOf, held, nothing, Server, says, wordsIn } from "../../../memory-chat.ts";
import { textOf } from "../../../page.ts";
import { type Step, text } from "../../../scripted-model.ts";

/** An answer that another process handed over: whoever asks for it continues it. */

const ran: string[] = [];
const tools: ToolSet = {
  look: tool({
    inputSchema: nothing,
    execute: async (_, { toolCallId }) => {
      ran.push(toolCallId);
      return "seen";
    },
  }),
  send: tool({ inputSchema: nothing, needsApproval: true, execute: async () => "Sent." }),
  where: tool({ inputSchema: nothing }),
};

const calls = (...names: string[]): ModelMessage => ({
  role: "assistant",
  content: names.flatMap((toolName) => [
    { type: "tool-call" as const, toolCallId: `${toolName}_1`, toolName, input: {} },
    ...(toolName === "send"
      ? [{ type: "tool-approval-request" as const, approvalId: "ask_1", toolCallId: "send_1" }]
      : []),
  ]),
});

/** A server, and a turn whose process recorded this and handed it over. */
async function handedOver(
  steps: Step[],
  work: (turn: NonNullable<Session<ModelMessage>["turn"]>) => Promise<unknown>,
): Promise<Server> {
  ran.length = 0;
  const server = await Server.with(steps, tools);
  const session = await server.store.create({ dialect: "ai-sdk", id: server.chat.sessionId(server.id) });
  const turn = await session.startTurn({ role: "user", content: "Look." }, { id: "p1" });
  await work(turn);
  await turn.suspend({ reason: "hand-over", until: new Date() });
  await session.close();
  return server;
}

const streamOf = (server: Server): Promise<Response> => server.chat.GET(new Request(`${BASE}/${server.id}/stream`));

test("to the page it runs, with calls that are about to run; its stream continues it, and the model is told nothing", async () => {
  await using server = await handedOver([[text("I saw it.")]], (turn) => turn.append(calls("look")));
  const { status, interrupted, messages } = await server.state();
  expect([status, interrupted]).toEqual(["running", null]);
  expect(messages.at(-1)!.parts).toMatchObject([{ type: "step-start" }, { state: "input-available" }]);
  const page = await server.page();
  await page.resumeStream();
  expect([page.status, page.error, page.text]).toEqual(["ready", undefined, "I saw it."]);
  await server.chat.idle();
  expect(page.shown).toEqual((await server.page()).shown);
  expect(ran).toEqual(["look_1"]);
  expect(JSON.stringify(server.model.prompts)).not.toMatch(/interrupted|restarted|cut off/);
  const { entries } = await server.store.read(server.chat.sessionId(server.id));
  expect(entries.filter(({ synthetic }) => synthetic !== undefined)).toEqual([]);
});

test("several requests for it continue it once", async () => {
  await using server = await handedOver([[text("I saw it.")]], (turn) => turn.append(calls("look")));
  const responses = await Promise.all([streamOf(server), streamOf(server), server.post({ trigger: "continue" })]);
  const said = await Promise.all(responses.slice(0, 2).map(async (one) => wordsIn(await chunksOf(one))));
  expect(said).toEqual(["I saw it.", "I saw it."]);
  await server.chat.idle();
  expect([ran, server.model.prompts.length]).toEqual([["look_1"], 1]);
});

test("a new prompt waits for it, and replaces nothing", async () => {
  await using server = await handedOver([[text("I saw it.")], [text("Welcome.")]], (turn) =>
    turn.append(calls("look")),
  );
  const response = await server.post(says("p2", "Thank you."));
  expect(wordsIn(await chunksOf(response))).toBe("Welcome.");
  await server.chat.idle();
  const { status, messages } = await server.state();
  expect([status, messages.map(({ id }) => id)]).toMatchObject(["ready", { length: 4, 0: "p1", 2: "p2" }]);
  expect(messages.map(textOf)).toEqual(["Look.", "I saw it.", "Thank you.", "Welcome."]);
});

test("a stop gives it up: nothing of it runs", async () => {
  await using server = await handedOver([], (turn) => turn.append(calls("look")));
  const stopped = await server.chat.DELETE(new Request(`${BASE}/${server.id}`, { method: "DELETE" }));
  expect([stopped.status, (await server.state()).status, ran]).toEqual([204, "ready", []]);
  expect((await streamOf(server)).status).toBe(204);
});

test("one that lacks only its end is complete", async () => {
  await using server = await handedOver([], (turn) => turn.append({ role: "assistant", content: "All is well." }));
  expect((await server.state()).status).toBe("ready");
  expect((await streamOf(server)).status).toBe(204);
});

test.each(["send", "where"])("one that waits for the page waits: %s", async (name) => {
  await using server = await handedOver([[text("Done.")]], (turn) => turn.append(calls(name)));
  expect((await server.state()).status).toBe("waiting");
  expect((await streamOf(server)).status).toBe(204);
  expect((await server.post({ trigger: "continue" })).status).toBe(409);
});

test("a stream of it ends without an error, and the page sends nothing by itself", async () => {
  const { step, said, release } = held("I ", "see.");
  await using server = await handedOver([step], (turn) => turn.append({ role: "assistant", content: "First." }));
  const session = await server.store.resume<ModelMessage>(server.chat.sessionId(server.id));
  const turn = await session.resumeTurn();
  const other = await server.page();
  const resumed = other.resumeStream();
  await expect.poll(() => other.text).toBe("First.");
  await turn.append(calls("look"));
  await turn.suspend({ reason: "hand-over", until: new Date() });
  await session.close();
  await resumed;
  expect([other.status, other.error]).toEqual(["ready", undefined]);
  expect((await server.state()).status).toBe("running");
  const again = other.resumeStream();
  await said;
  release();
  await again;
  expect([other.error, other.text]).toEqual([undefined, "First.I see."]);
});

test("a page follows a process that has it open and is about to continue it", async () => {
  await using server = await handedOver([], (turn) => turn.append(calls("look")));
  const session = await server.store.resume<ModelMessage>(server.chat.sessionId(server.id));
  const page = await server.page();
  const resumed = page.resumeStream();
  await expect.poll(() => page.messages.at(-1)?.role, { timeout: 60_000 }).toBe("assistant");
  const turn = await session.resumeTurn({ calls: "rerun" });
  await turn.tool("look_1", () => "seen");
  await turn.append({ role: "assistant", content: "I saw it." });
  await turn.end();
  await resumed;
  await session.close();
  expect([page.error, page.text]).toEqual([undefined, "I saw it."]);
});

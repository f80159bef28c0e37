import { type ToolSet, tool } from "ai";
import { expect, test } from "vitest";
import { chunksOf, held, nothing, Server, says, wordsIn } from "../../../memory-chat.ts";
import { textOf } from "../../../page.ts";
import { call, type Step, text } from "../../../scripted-model.ts";

/** A server that is replaced: it closes its chats, and the next one has the same store. */

const HAND_OVER = { handOver: true, withinMs: 60_000 } as const;

function next(server: Server, steps: Step[], tools: ToolSet = {}): Server {
  return Object.assign(new Server(server.store, steps, tools), { id: server.id });
}

/** A tool that runs until it is released. */
function slow(): { readonly tools: ToolSet; readonly ran: string[]; readonly began: Promise<void>; release(): void } {
  const began = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const ran: string[] = [];
  const look = tool({
    inputSchema: nothing,
    execute: async (_, { toolCallId }) => {
      ran.push(toolCallId);
      began.resolve();
      await released.promise;
      return "seen";
    },
  });
  return { tools: { look }, ran, began: began.promise, release: released.resolve };
}

test("an answer is handed over behind the tool that runs: the page sees no error, and the next server continues", async () => {
  const { tools, ran, began, release } = slow();
  await using server = await Server.with([[text("Let me see. "), call("look_1", "look")]], tools);
  const page = await server.page();
  const asked = page.sendMessage({ text: "Look." });
  await began;
  const closed = server.chat.close(HAND_OVER);
  release();
  await Promise.all([asked, closed]);
  expect([page.status, page.error, page.text]).toEqual(["ready", undefined, "Let me see. "]);
  const other = next(server, [[text("I saw it.")]], tools);
  const { status, interrupted } = await other.state();
  expect([status, interrupted]).toEqual(["running", null]);
  const shown = await other.page();
  await shown.resumeStream();
  expect([shown.error, shown.text]).toEqual([undefined, "Let me see. I saw it."]);
  await other.chat.idle();
  expect((await other.state()).status).toBe("ready");
  expect(ran).toEqual(["look_1"]);
  const { entries } = await server.store.read(server.chat.sessionId(server.id));
  expect(entries.filter(({ synthetic }) => synthetic !== undefined)).toEqual([]);
});

test("calls whose start the hand-over refused are shown as calls that are about to run", async () => {
  const { step, said, release } = held("Let me ", "see.");
  const ran: string[] = [];
  const look = tool({ inputSchema: nothing, execute: async (_, { toolCallId }) => void ran.push(toolCallId) });
  const withCall: Step = async (options) => {
    const { stream } = (await (step as (given: unknown) => unknown)(options)) as Extract<Step, { stream: unknown }>;
    const calls = new TransformStream({
      transform(part, controller) {
        if (part.type === "finish")
          controller.enqueue({ type: "tool-call", toolCallId: "look_1", toolName: "look", input: "{}" });
        const reason = { unified: "tool-calls", raw: "tool-calls" };
        controller.enqueue(part.type === "finish" ? { ...part, finishReason: reason } : part);
      },
    });
    return { stream: stream.pipeThrough(calls) };
  };
  await using server = await Server.with([withCall], { look });
  const response = await server.post(says("p1", "Look."));
  await said;
  const closed = server.chat.close(HAND_OVER);
  release();
  const chunks = await chunksOf(response);
  await closed;
  expect(chunks.map(({ type }) => type).filter((type) => /error|abort|output/.test(type))).toEqual([]);
  expect(chunks.at(-1)).toEqual({ type: "finish", finishReason: "interrupted" });
  expect(ran).toEqual([]);
  const other = next(server, [[text("Done.")]], { look });
  expect((await other.state()).messages.at(-1)!.parts.at(-1)).toMatchObject({ state: "input-available" });
  await (await other.page()).resumeStream();
  expect(ran).toEqual(["look_1"]);
});

test("a last answer that comes to its end is complete, and a prompt in the queue is the next server's", async () => {
  const { step, said, release } = held("Hello ", "there.");
  await using server = await Server.with([step]);
  const first = await server.post(says("p1", "Hello."));
  await said;
  const second = server.post(says("p2", "And you?"));
  await expect
    .poll(async () => (await server.store.read(server.chat.sessionId(server.id))).queue.length, { timeout: 60_000 })
    .toBe(1);
  const closed = server.chat.close(HAND_OVER);
  release();
  expect((await chunksOf(first)).at(-1)).toMatchObject({ type: "finish" });
  expect((await chunksOf(await second)).at(-1)).toEqual({ type: "finish", finishReason: "interrupted" });
  await closed;
  const other = next(server, [[text("Fine.")]]);
  expect((await other.state()).status).toBe("running");
  const page = await other.page();
  await page.resumeStream();
  expect([page.error, page.text]).toEqual([undefined, "Fine."]);
  expect((await other.state()).messages.map(textOf)).toEqual(["Hello.", "Hello there.", "And you?", "Fine."]);
});

test("what would begin something is refused, and nothing is recorded; the state can be read", async () => {
  await using server = await Server.with([[text("Hello.")]]);
  await chunksOf(await server.post(says("p1", "Hello.")));
  await server.chat.idle();
  await server.chat.close({ handOver: true });
  for (const response of [await server.post(says("p2", "More.")), await server.post({ trigger: "continue" })]) {
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "1"]);
    expect(response.headers.get("x-holdfast-code")).toBe("STOPPING");
  }
  const { status, messages } = await server.state();
  expect([status, messages.length]).toEqual(["ready", 2]);
  const again = next(server, [[text("Welcome.")]]);
  expect(wordsIn(await chunksOf(await again.post(says("p2", "More."))))).toBe("Welcome.");
});

test("without a hand-over, the answer broke off", async () => {
  const { step, said } = held("Hello ", "there.");
  await using server = await Server.with([step]);
  const response = await server.post(says("p1", "Hello."));
  await said;
  await server.chat.close();
  expect((await chunksOf(response)).at(-1)).toMatchObject({ type: expect.stringMatching(/error|abort/) });
  expect(await next(server, []).state()).toMatchObject({ status: "interrupted" });
});

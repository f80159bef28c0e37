import { type ModelMessage, type ToolSet, tool } from "ai";
import { openStore, type ProbedCall, type Store, toolCall } from "holdfast";
import { Memory, openMemoryStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { expect, test } from "vitest";
import type { DurableChatOptions } from "../../../../src/ai-sdk/index.ts";
import { nothing, Server, says } from "../../../memory-chat.ts";
import { call, text } from "../../../scripted-model.ts";

/** A chat whose server died in a payment. */

/** A server after the one that died: what it has charged, and whom it has asked. */
async function after(options: (asked: ProbedCall[]) => DurableChatOptions = () => ({}), name = "charge") {
  const store = await openStore("memory:", { recordsToolStarts: true });
  const charged: string[] = [];
  const asked: ProbedCall[] = [];
  const charge = tool({ inputSchema: nothing, execute: async () => charged.push(toolCall()!.key) && "charged" });
  const first = new Server(store, [], {});
  const made = { type: "tool-call" as const, toolCallId: "c1", toolName: "charge", input: {} };
  const session = await store.create<ModelMessage>({
    dialect: "ai-sdk",
    id: first.chat.sessionId(first.id),
    labels: { chat: first.id },
  });
  const turn = await session.startTurn({ role: "user", content: "Pay." }, { id: "m1" });
  await turn.append({ role: "assistant", content: [made] });
  const { key } = await turn.toolStarted("c1", { probe: true });
  await session.close();
  const server = new Server(store, [[text("Paid.")]], { [name]: charge } as ToolSet, options(asked));
  Object.assign(server, { id: first.id });
  return { server, charged, asked, key, [Symbol.asyncDispose]: () => store.close() };
}

const settles = (asked: ProbedCall[]): DurableChatOptions => ({
  probe: {
    charge: (given) => {
      asked.push(given);
      return { value: "receipt 7" };
    },
  },
});

test.each([
  ["goes on", { trigger: "continue" }],
  ["is asked something else", says("m2", "And now?")],
])("the model is told what its probe found, when the chat %s", async (_, body) => {
  await using here = await after(settles);
  const { server, asked, charged, key } = here;
  expect((await server.post(body)).ok).toBe(true);
  await server.chat.idle();
  expect(JSON.stringify(server.model.prompts[0])).toMatch(/Settled by asking the service.*receipt 7/);
  expect([asked.map((one) => one.key), charged]).toEqual([[key], []]);
  const { messages, status } = await server.state();
  expect(status).toBe("ready");
  const shown = messages.flatMap(({ parts }) => parts).find((part) => part.type === "tool-charge");
  expect(shown).toMatchObject({ state: "output-available", output: "receipt 7" });
});

test("what did not happen runs, with the key that it had", async () => {
  await using here = await after(() => ({ probe: { charge: () => "did-not-happen" } }));
  const { server, charged, key } = here;
  await server.post({ trigger: "continue" });
  await server.chat.idle();
  expect(charged).toEqual([key]);
  expect(JSON.stringify(server.model.prompts[0])).toMatch(/"charged"/);
});

test("a tool whose server died between two steps continues after the first, which returns its value without running", async () => {
  const memory = new Memory();
  const open = (): Promise<Store> =>
    openStoreWith((options) => openMemoryStore({ ...options, memory }), { recordsToolStarts: true });
  await using here = await open();
  await using there = await open();
  const ran: string[] = [];
  const order = (between?: () => void) =>
    tool({
      inputSchema: nothing,
      execute: async () => {
        const { step } = toolCall()!;
        const stock = await step("reserve", () => ran.push("reserve") && "seven");
        between?.();
        return step("charge", () => ran.push("charge") && `charged for ${stock}`);
      },
    });
  const options: DurableChatOptions = { replay: { order: "safe" }, onFailure: () => {} };
  const dies = () => memory.crash(first.chat.sessionId(first.id));
  const first = new Server(here, [[call("c1", "order")]], { order: order(dies) }, options);
  await first.post(says("m1", "Order."));
  await first.chat.idle();
  const next = new Server(there, [[text("Paid.")]], { order: order() }, options);
  Object.assign(next, { id: first.id });
  await next.post({ trigger: "continue" });
  await next.chat.idle();
  expect(ran).toEqual(["reserve", "charge"]);
  expect(JSON.stringify(next.model.prompts[0])).toContain("charged for seven");
});

test("a chat waits for a tool that is missing: its page is refused, the application is told, and the next deploy goes on", async () => {
  const told: unknown[] = [];
  await using here = await after(
    () => ({ onFailure: (error) => told.push(error), replay: { charge: "safe" } }),
    "other",
  );
  const { server, charged } = here;
  const session = await server.store.resume<ModelMessage>(server.chat.sessionId(server.id));
  const turn = await session.resumeTurn({ calls: () => "did-not-happen" });
  await turn.suspend({ reason: "the server stops" });
  await session.close();
  const refused = await server.post({ trigger: "continue" });
  expect([refused.status, refused.headers.get("x-holdfast-code")]).toEqual([503, "TOOL_MISSING"]);
  expect(told).toMatchObject([{ code: "TOOL_MISSING", facts: { tools: ["charge"] } }]);
  const charge = tool({ inputSchema: nothing, execute: async () => charged.push("charged") && "charged" });
  const next = new Server(server.store, [[call("c2", "charge")], [text("Paid.")]], { charge });
  Object.assign(next, { id: server.id });
  expect((await next.post({ trigger: "continue" })).status).toBe(202);
  await next.chat.idle();
  expect(charged).toEqual(["charged", "charged"]);
  expect(JSON.stringify((await next.state()).messages)).toContain("Paid.");
});

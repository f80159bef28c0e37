import { jsonSchema, type ModelMessage, type ToolSet, tool } from "ai";
import { type ErrorCode, HoldfastError, openStore, type Session } from "holdfast";
import { describe, expect, test, vi } from "vitest";
import { place } from "../../../../holdfast/test/place.ts";
import { durable } from "../../../src/ai-sdk/index.ts";
import { begun, everyWay, outline, PROMPT, recordsOf } from "../../agents.ts";
import { FailingDisk } from "../../failing-disk.ts";
import { call, type Step, scripted, text } from "../../scripted-model.ts";

/** What Holdfast refuses inside a tool is not for the model to hear: an agent would try again for ever. */

const any = jsonSchema<object>({ type: "object" });
const PROCESS = { pid: 1, started: "now" };

/** A model that calls the tool in each step, as long as it is asked. */
const insists = () => scripted(...Array.from({ length: 8 }, (_, n): Step => [call(`a${n}`, "tries")]));

async function nested(): Promise<Session<ModelMessage>> {
  const store = await openStore("memory:", { recordsToolStarts: true });
  const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
  await session.startTurn(PROMPT);
  return session;
}

/** What a tool may do wrong, and what it is told. */
const faults: Record<string, [ErrorCode, (session: Session<ModelMessage>) => unknown]> = {
  "turn.tool for a call that nobody made": ["CALL_UNKNOWN", ({ turn }) => turn!.tool("nobody", () => "ran")],
  "turn.toolProcess for a call that does not run": ["CALL_UNKNOWN", ({ turn }) => turn!.toolProcess("nobody", PROCESS)],
  "turn.tool for the call that it runs for": ["CALL_TAKEN", ({ turn }) => turn!.tool("a0", () => "ran")],
  "a second turn in a session of its own": ["TURN_OPEN", async () => (await nested()).startTurn(PROMPT)],
  "a message that does not fit": ["MESSAGE_UNFIT", async () => (await nested()).turn!.append({ role: "x" } as never)],
  "a session of its own that is closed": [
    "SESSION_CLOSED",
    async () => {
      const session = await nested();
      await session.close();
      await session.startTurn(PROMPT);
    },
  ],
  "a store that is closed": [
    "STORE_CLOSED",
    async () => {
      const store = await openStore("memory:", { recordsToolStarts: true });
      await store.close();
      await store.create({ dialect: "ai-sdk" });
    },
  ],
  "a store of its own that is full": [
    "STORE_FULL",
    async () => {
      using folder = place();
      const disk = new FailingDisk();
      const store = await disk.open(folder.path);
      const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
      disk.countdown = 1;
      await session.startTurn(PROMPT).finally(() => store.close());
    },
  ],
  "a store of its own whose sync failed": [
    "SYNC_FAILED",
    async () => {
      using folder = place();
      const disk = new FailingDisk();
      const store = await disk.open(folder.path);
      const session = await store.create<ModelMessage>({ dialect: "ai-sdk" });
      await session.startTurn(PROMPT);
      disk.countdown = 2;
      await session.turn!.end().finally(() => store.close().catch(() => {}));
    },
  ],
};

const isStoreFailure = (code: ErrorCode): boolean => /^(STORE|SYNC|SESSION)_/.test(code);

describe.each(everyWay)("%s", (_, start) => {
  test.each(Object.entries(faults))(
    "%s: the run fails with it, and nothing more is asked",
    async (_, [code, fault]) => {
      await using here = await begun();
      const { session } = here;
      const turn = session.turn!;
      const agent = durable(session);
      let stopped: unknown = null;
      const tools: ToolSet = {
        tries: tool({ inputSchema: any, execute: async () => String(await fault(session)) }),
        waits: tool({
          inputSchema: any,
          execute: async (_, { abortSignal }) => {
            const { promise, reject } = Promise.withResolvers<string>();
            abortSignal!.addEventListener("abort", () => reject(abortSignal!.reason));
            return promise.catch((error) => {
              stopped = error;
              throw error;
            });
          },
        }),
      };
      const model = scripted([call("a0", "tries"), call("b", "waits")], [call("a1", "tries")], [text("I give up.")]);
      await expect(agent.finish(start(agent, { model, tools }).run)).rejects.toMatchObject({ code });
      expect(model.prompts).toHaveLength(1);
      await vi.waitFor(() => expect(stopped, "what runs beside it is told to stop").toMatchObject({ code }), 60_000);
      await vi.waitFor(async () => expect(outline(await recordsOf(session))).toContain("tool.ended b"), 60_000);
      expect(turn.signal.reason, "the turn's signal fires").toMatchObject({ code });
      expect(session.turn).toBe(null);
      const ended = outline(await recordsOf(session)).filter((line) => line === "tool.ended a0");
      // Of a tool whose store failed it is not known how far it came: it may be taken up again.
      const open = isStoreFailure(code) ? [{ id: "a0", state: "outcome-unknown" }] : [];
      expect(ended).toHaveLength(1 - open.length);
      expect(session.interruption).toMatchObject({ how: { kind: "failed" }, calls: open });
    },
  );

  test.each(["CALL_UNKNOWN", "STORE_IO", "LEASE_LOST"] as const)("%s in each step: it does not go on", async (code) => {
    await using here = await begun();
    const agent = durable(here.session);
    const error = new HoldfastError(code, "no", {});
    const tries = tool({ inputSchema: any, execute: () => Promise.reject<string>(error) });
    const model = insists();
    await expect(agent.finish(start(agent, { model, tools: { tries } }).run)).rejects.toBe(error);
    expect(model.prompts).toHaveLength(1);
  });

  test.each(["CALL_UNKNOWN", "STORE_IO"] as const)(
    "%s beside a tool that never ends: nobody waits for that",
    async (code) => {
      await using here = await begun();
      const agent = durable(here.session);
      const running = Promise.withResolvers<void>();
      const error = new HoldfastError(code, "no", {});
      const tools: ToolSet = {
        never: tool({
          inputSchema: any,
          execute: () => {
            running.resolve();
            return new Promise<string>(() => {});
          },
        }),
        tries: tool({ inputSchema: any, execute: () => running.promise.then(() => Promise.reject<string>(error)) }),
      };
      const model = scripted([call("a", "never"), call("b", "tries")], [text("I go on.")]);
      await expect(agent.finish(start(agent, { model, tools }).run)).rejects.toBe(error);
      expect(model.prompts).toHaveLength(1);
    },
  );

  test("what is no fault of the program is the tool's error, and the model may act on it", async () => {
    await using here = await begun();
    const agent = durable(here.session);
    const store = await openStore("memory:", { recordsToolStarts: true });
    const codes: ErrorCode[] = ["SESSION_BUSY", "QUERY_INVALID", "RECORD_TOO_LARGE"];
    const tries = tool({
      inputSchema: any,
      execute: async () => {
        const code = codes.pop();
        if (code) throw new HoldfastError(code, `told: ${code}`, {});
        await store.read("01a1e0c7-8fa1-7c24-9279-4d69692d85eb");
        return "never";
      },
    });
    const calls = ["a", "b", "c", "d"].map((id) => call(id, "tries"));
    const model = scripted(calls, [text("I see.")]);
    expect(await agent.finish(start(agent, { model, tools: { tries } }).run)).toEqual({ kind: "completed" });
    for (const words of ["told: SESSION_BUSY", "told: QUERY_INVALID", "told: RECORD_TOO_LARGE", "no session"])
      expect(JSON.stringify(model.prompts[1])).toContain(words);
  });

  test("what a tool runs into because it was stopped is its outcome, and the run was stopped", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const turn = session.turn!;
    const tries = tool({
      inputSchema: any,
      execute: async () => {
        await turn.abort({ by: "user" });
        await turn.append({ role: "user", content: "too late" });
        return "never";
      },
    });
    expect(await agent.finish(start(agent, { model: insists(), tools: { tries } }).run)).toEqual({ kind: "aborted" });
    await vi.waitFor(async () => expect(outline(await recordsOf(session))).toContain("tool.ended a0"), 60_000);
    expect(session.interruption).toMatchObject({ how: { kind: "aborted", by: "user" } });
  });

  test("a call that the session does not know, from messages of the application's own, is not run, and the run says so", async () => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const ran: string[] = [];
    const tools: ToolSet = {
      asks: tool({ inputSchema: any, execute: async () => ran.push("asks"), needsApproval: true }),
    };
    const foreign: ModelMessage[] = [
      PROMPT,
      {
        role: "assistant",
        content: [
          { type: "tool-call", toolCallId: "x", toolName: "asks", input: {} },
          { type: "tool-approval-request", approvalId: "ok", toolCallId: "x" },
        ],
      },
      { role: "tool", content: [{ type: "tool-approval-response", approvalId: "ok", approved: true }] },
    ];
    const model = insists();
    const { run } = start(agent, { model, tools }, foreign);
    await expect(agent.finish(run)).rejects.toMatchObject({ code: "CALL_UNKNOWN" });
    expect(ran).toEqual([]);
    expect(model.prompts).toEqual([]);
    expect(session.interruption).toMatchObject({ how: { kind: "failed" } });
  });
});

test.each(Object.entries(faults))("runOpen: %s: it rejects, and no other tool starts", async (_, [code, fault]) => {
  await using here = await begun();
  const { session } = here;
  const content = ["a0", "b"].map((id) => ({
    type: "tool-call" as const,
    toolCallId: id,
    toolName: "tries",
    input: {},
  }));
  await session.turn!.append({ role: "assistant", content });
  await session.turn!.abort({ by: "user" });
  await session.resumeTurn({ calls: "rerun" });
  const turn = session.turn!;
  const tries = tool({ inputSchema: any, execute: async () => String(await fault(session)) });
  await expect(durable(session).runOpen({ tries })).rejects.toMatchObject({ code });
  expect(turn.signal.reason).toMatchObject({ code });
});

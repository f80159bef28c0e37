import { validateAiSdk } from "@holdfast/testkit";
import { jsonSchema, type ModelMessage, tool } from "ai";
import { openStore } from "holdfast";
import { describe, expect, test, vi } from "vitest";
import { durable } from "../../../src/ai-sdk/index.ts";
import { everyWay, outline, PROMPT, recordsOf } from "../../agents.ts";
import { Instants, STEPS } from "../../instants.ts";
import { scripted } from "../../scripted-model.ts";

/** A run that is stopped at one instant of many: before, in and after each write, each part of a stream, each tool. */

const NEXT: ModelMessage = { role: "user", content: "And now?" };
/**
 * So many instants apart are the runs: each way to run and to stop begins at another, and together they come to them
 * all.
 */
const APART = 8;

describe.each(everyWay.map(([name, start], n) => [name, start, n] as const))("%s", (name, start, n) => {
  test.each([
    ["the application's signal", 0],
    ["turn.abort", APART / 2],
  ])(
    "C11: whenever it is stopped by %s, what ran is on disk, once, and the turn goes on to its end",
    async (by, offset) => {
      for (let at = 1 + offset + n, isOver = false; !isOver; at += APART) {
        const what = `instant ${at}`;
        await using store = await openStore("memory:", { recordsToolStarts: true });
        let session = await store.create<ModelMessage>({ dialect: "ai-sdk", draftMs: 0 });
        const turn = await session.startTurn(PROMPT);
        const controller = new AbortController();
        const instants = new Instants(at, () =>
          by === "turn.abort" ? turn.abort({ by: "user" }) : controller.abort(),
        );
        instants.watch(turn);
        const ran: string[] = [];
        const mark = tool({
          inputSchema: jsonSchema<object>({ type: "object" }),
          execute: async (_, { toolCallId }) => {
            ran.push(toolCallId);
            await instants.tick();
            return toolCallId;
          },
        });
        const answers = instants.answers(STEPS, name.includes("tream"));
        let agent = durable(session);
        const settings = { model: scripted(...answers), tools: { mark }, abortSignal: controller.signal };
        const { kind } = await agent.finish(start(agent, settings).run);
        isOver = !instants.isOver;
        expect(isOver ? ["completed"] : ["completed", "aborted"], what).toContain(kind);
        // A tool that was not waited for still comes to its end.
        await vi.waitFor(async () => {
          const ended = outline(await recordsOf(session)).filter((line) => line.startsWith("tool.ended"));
          expect(ended.length, what).toBeGreaterThanOrEqual(ran.length);
        }, 60_000);

        await session.close();
        session = await store.resume<ModelMessage>(session.id);
        const lines = outline(await recordsOf(session));
        for (const id of ran) {
          expect(
            lines.filter((line) => line === `tool.started ${id}`),
            what,
          ).toHaveLength(1);
          expect(
            lines.filter((line) => line === `tool.ended ${id}`),
            what,
          ).toHaveLength(1);
        }
        if (session.interruption) {
          await session.resumeTurn({ calls: "rerun" });
          agent = durable(session);
          await agent.runOpen({ mark });
          const answered = session.messages.filter(({ role }) => role === "assistant").length;
          const model = scripted(...STEPS.slice(Math.min(answered, STEPS.length - 1)));
          expect(await agent.finish(start(agent, { model, tools: { mark } }).run), what).toEqual({ kind: "completed" });
        }
        expect(ran.toSorted(), what).toEqual([...new Set(ran)].sort());
        await session.startTurn(NEXT);
        expect(validateAiSdk(session.messages), what).toEqual([]);
      }
    },
  );
});

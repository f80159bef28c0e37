import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { validateAiSdk } from "@holdfast/testkit";
import { jsonSchema, type ModelMessage, tool } from "ai";
import { openStore, type Turn } from "holdfast";
import { describe, expect, test, vi } from "vitest";
import { durable } from "../../../src/ai-sdk/index.ts";
import { everyWay, outline, PROMPT, recordsOf } from "../../agents.ts";
import { type Content, call, finished, type Step, scripted, streamed, text } from "../../scripted-model.ts";

/** A run that is stopped at one instant of many: before, in and after each write, each part of a stream, each tool. */

const NEXT: ModelMessage = { role: "user", content: "And now?" };
const STEPS: Content[][] = [
  [text("Both."), call("a", "mark"), call("b", "mark")],
  [text("More."), call("c", "mark")],
  [text("Done.")],
];

/**
 * So many instants apart are the runs: each way to run and to stop begins at another, and together they come to them
 * all.
 */
const APART = 8;

class Instants {
  readonly #at: number;
  readonly #stop: () => unknown;
  #count = 0;

  constructor(at: number, stop: () => unknown) {
    this.#at = at;
    this.#stop = stop;
  }

  get isOver(): boolean {
    return this.#count >= this.#at;
  }

  async tick(): Promise<void> {
    if (++this.#count === this.#at) await this.#stop();
  }

  /** The same call, with an instant before, in and behind it. */
  within<A extends unknown[], R>(write: (...args: A) => Promise<R>): (...args: A) => Promise<R> {
    return async (...args) => {
      await this.tick();
      const written = write(...args);
      await this.tick();
      const answer = await written;
      await this.tick();
      return answer;
    };
  }

  watch(turn: Turn<ModelMessage>): void {
    turn.toolStarted = this.within(turn.toolStarted.bind(turn));
    turn.toolEnded = this.within(turn.toolEnded.bind(turn));
    const request = turn.request.bind(turn);
    turn.request = () => {
      const made = request();
      made.draft.commit = this.within(made.draft.commit.bind(made.draft));
      return made;
    };
  }

  stream(content: readonly Content[], signal: AbortSignal | undefined): ReadableStream<LanguageModelV4StreamPart> {
    const tick = (): Promise<void> => this.tick();
    const end = finished(content.some(({ type }) => type === "tool-call") ? "tool-calls" : "stop");
    const parts = [{ type: "stream-start" as const, warnings: [] }, ...content.flatMap(streamed), end];
    async function* given(): AsyncGenerator<LanguageModelV4StreamPart> {
      for (const part of parts) {
        await tick();
        signal?.throwIfAborted();
        yield part;
      }
      await tick();
    }
    return ReadableStream.from(given());
  }
}

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
        const answers = STEPS.map(
          (content): Step =>
            async ({ abortSignal }) => {
              await instants.tick();
              if (name.includes("tream")) return { stream: instants.stream(content, abortSignal) };
              abortSignal?.throwIfAborted();
              return content;
            },
        );
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

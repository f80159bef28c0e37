import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import type { Turn } from "holdfast";
import { type Content, call, finished, type Step, streamed, text } from "./scripted-model.ts";

/** A run with parallel tools, one more, and its last answer. */
export const STEPS: Content[][] = [
  [text("Both."), call("a", "mark"), call("b", "mark")],
  [text("More."), call("c", "mark")],
  [text("Done.")],
];

/** The instants of a run, one of which something happens at. */
export class Instants {
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

  watch<M>(turn: Turn<M>): void {
    turn.toolStarted = this.within(turn.toolStarted.bind(turn));
    turn.toolEnded = this.within(turn.toolEnded.bind(turn));
    const request = turn.request.bind(turn);
    turn.request = () => {
      const made = request();
      made.draft.commit = this.within(made.draft.commit.bind(made.draft));
      return made;
    };
  }

  /** These answers, streamed or not. */
  answers(steps: readonly Content[][], isStreamed: boolean): Step[] {
    return steps.map(
      (content): Step =>
        async ({ abortSignal }) => {
          await this.tick();
          if (isStreamed) return { stream: this.stream(content, abortSignal) };
          abortSignal?.throwIfAborted();
          return content;
        },
    );
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

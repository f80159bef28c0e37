import type { LanguageModel, ModelMessage, ToolSet } from "ai";

/** The settings of `streamText`, `generateText` or `ToolLoopAgent` that this adapter touches; all others pass through as they are. */
export interface Settings {
  readonly model: LanguageModel;
  readonly tools?: ToolSet | undefined;
}

/** What a run came to, without ending the turn: the caller may go on in it. */
export type RunOutcome =
  | { readonly kind: "completed" }
  | { readonly kind: "aborted" }
  /** The model, its stream or the store failed. `error` is the original. */
  | { readonly kind: "failed"; readonly error: unknown }
  /** Calls wait for a person: append a `tool-approval-response`, or suspend the turn. */
  | {
      readonly kind: "waiting";
      readonly approvals: readonly {
        readonly approvalId: string;
        readonly toolCallId: string;
        readonly toolName: string;
        readonly input: unknown;
      }[];
    };

/** Makes the runs of an AI SDK agent durable in one session. */
export interface Durable {
  /**
   * The same settings, with a model, tools and callbacks that record: deltas as they stream, each assistant message before any of its tools starts, each tool's start before it runs (fails closed) and its outcome the moment it returns.
   * Callbacks of the application's own are still called. Records go to the turn that is open when the model is asked.
   */
  wrap<S extends Settings>(settings: S): S;
  /** A copy of what the model is to see now: give it as `messages`. */
  messages(): ModelMessage[];
  /** Runs the calls that `resumeTurn` left open (`turn.open`) with these tools, and records their results. Do it before the model is asked again. */
  runOpen(tools: ToolSet): Promise<void>;
  /** Reads the run to its end, whoever else reads it, and says what it came to. Rejects only if the store failed. */
  outcome(run: Run): Promise<RunOutcome>;
  /** The same, and ends the turn accordingly: `end`, `abort`, `fail`, or `suspend` for calls that wait. */
  finish(run: Run): Promise<RunOutcome>;
}

/** A result of `streamText` or `agent.stream`, or the promise of `generateText` or `agent.generate`. */
export type Run = PromiseLike<unknown> | { consumeStream(options?: { onError?: (error: unknown) => void }): PromiseLike<void> };

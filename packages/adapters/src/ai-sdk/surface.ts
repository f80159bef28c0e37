import type { LanguageModel, ModelMessage, ToolSet } from "ai";
import type { ResumeOptions, Turn } from "holdfast";

/** The settings of `streamText`, `generateText` or `ToolLoopAgent` that this adapter touches; all others pass through as they are. */
export interface Settings {
  readonly model: LanguageModel;
  readonly tools?: ToolSet | undefined;
}

/** `messages`, for settings that have neither these nor a prompt. */
export type Prompted<S> = S extends { readonly prompt: unknown } | { readonly messages: unknown }
  ? S
  : S & { messages: ModelMessage[] };

export interface DurableOptions {
  /** By the name of the tool. "safe": running it twice does no harm, so that `resumeTurn({ calls: "rerun" })` may. Recorded at each start. Default "never". */
  readonly replay?: Readonly<Record<string, "safe" | "never">>;
}

/** What a run came to, without ending the turn: the caller may go on in it. */
export type RunOutcome =
  | { readonly kind: "completed" }
  | { readonly kind: "aborted" }
  /** The model or its stream failed. `error` is the original. */
  | { readonly kind: "failed"; readonly error: unknown }
  /** Calls wait for somebody: append what they wait for, or suspend the turn. */
  | {
      readonly kind: "waiting";
      /** For a `tool-approval-response`. */
      readonly approvals: readonly (WaitingCall & { readonly approvalId: string })[];
      /** Of tools without `execute`, which the application runs itself: for a `tool-result`. */
      readonly calls: readonly WaitingCall[];
    };

export interface WaitingCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
}

/** What tools get beside their input: as in the settings of a run. */
export interface ToolSettings {
  readonly toolsContext?: Readonly<Record<string, unknown>>;
  readonly experimental_sandbox?: unknown;
}

/** What a person decided of a call that waited: `approvalId` is that of the request. */
export interface ApprovalAnswer {
  readonly approvalId: string;
  readonly approved: boolean;
  readonly reason?: string | undefined;
}

export interface ResumeSettings extends ToolSettings {
  /** The answers to all requests for approval that are open. Recorded before anything runs. */
  readonly approvals?: readonly ApprovalAnswer[] | undefined;
  /** As in `session.resumeTurn`. Default: what waits for a person stays open, what is safe to run is run, the rest is closed. */
  readonly calls?: ResumeOptions["calls"] | undefined;
  readonly draft?: ResumeOptions["draft"] | undefined;
}

/** Makes the runs of an AI SDK agent durable in one session. */
export interface Durable {
  /**
   * The same settings, with a model, tools and callbacks that record: deltas as they stream, each assistant message before any of its tools starts, each tool's start before it runs (fails closed) and its outcome the moment it returns.
   * Callbacks of the application's own are still called. Records go to the turn that is open when the model is first asked; wrap anew for the run of another turn (a `ToolLoopAgent` is wrapped once: each of its calls counts as a run of its own).
   * Settings with neither `prompt` nor `messages` get the session's messages; those of an agent get them at each call that brings none.
   */
  wrap<S extends Settings>(settings: S): Prompted<S>;
  /** A copy of what the model is to see now: give it as `messages`. */
  messages(): ModelMessage[];
  /**
   * Goes on with the interrupted turn: what a person decided is recorded, calls that are safe to run are run with these tools, of the others the model is told how far each got. Answers the turn: ask the model next.
   * Answers null if there is nothing to ask now: the model had answered (`interruption.answered`), and the turn is ended as completed; or calls wait for a person, and the turn is left as it is. Throws as `session.resumeTurn` and `runOpen` do.
   */
  resume(tools: ToolSet, settings?: ResumeSettings): Promise<Turn<ModelMessage> | null>;
  /**
   * Runs the calls that `resumeTurn` left open (`turn.open`) with these tools, and records their results. Do it before the model is asked again. Calls that wait for approval, or were approved, are left to the SDK; so are tools
   * without `execute` to the application. Rejects if the store failed, or a context does not fit its tool.
   */
  runOpen(tools: ToolSet, settings?: ToolSettings): Promise<void>;
  /** Reads the run to its end, whoever else reads it, and says what it came to. Call it when the run has just begun: it means the newest one. Rejects only if the store failed. */
  outcome(run: Run): Promise<RunOutcome>;
  /** The same, and ends the turn accordingly: `end`, `abort`, `fail`, or `suspend` for calls that wait. */
  finish(run: Run): Promise<RunOutcome>;
}

/** A result of `streamText` or `agent.stream`, or the promise of `generateText`, `agent.generate` or `agent.stream`. */
export type Run =
  | PromiseLike<unknown>
  | { consumeStream(options?: { onError?: (error: unknown) => void }): PromiseLike<void> };

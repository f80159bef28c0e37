import type { LanguageModel, ModelMessage, ToolSet } from "ai";
import type { Json, ResumeOptions, Turn } from "holdfast";
import type { ToolRules } from "../tool-rules.ts";

/**
 * The settings of `streamText`, `generateText` or `ToolLoopAgent` that this adapter changes; all others pass through.
 */
export interface Settings {
  readonly model: LanguageModel;
  readonly tools?: ToolSet | undefined;
}

/** `messages`, if the settings have neither messages nor a prompt. */
export type Prompted<S> = S extends { readonly prompt: unknown } | { readonly messages: unknown }
  ? S
  : S & { messages: ModelMessage[] };

export interface DurableOptions extends ToolRules {
  /**
   * Notes what the tool may change, before it runs: small JSON, recorded with its start. After a crash it is in the
   * call's `before` (`session.interruption`). The tool waits for it.
   */
  readonly before?: (call: WaitingCall, replay: "safe" | "never") => Promise<Json | undefined>;
}

/** How a run ended. The turn stays open: the caller may continue it. */
export type RunOutcome =
  | { readonly kind: "completed" }
  | { readonly kind: "aborted" }
  /** The session is being closed with `handOver`: the next process continues the turn. */
  | { readonly kind: "handed-over" }
  /** The model or its stream failed. `error` is the original error. */
  | { readonly kind: "failed"; readonly error: unknown }
  /** Calls are waiting: append what they wait for, or suspend the turn. */
  | {
      readonly kind: "waiting";
      /** For a `tool-approval-response`. */
      readonly approvals: readonly (WaitingCall & { readonly approvalId: string })[];
      /** Calls of tools without `execute`, which the application runs itself: for a `tool-result`. */
      readonly calls: readonly WaitingCall[];
    };

export interface WaitingCall {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
}

/** What tools get besides their input, as in the settings of a run. */
export interface ToolSettings {
  readonly toolsContext?: Readonly<Record<string, unknown>>;
  readonly experimental_sandbox?: unknown;
}

/** A person's decision about a pending call. `approvalId` is the id of the request. */
export interface ApprovalAnswer {
  readonly approvalId: string;
  readonly approved: boolean;
  readonly reason?: string | undefined;
}

export interface ResumeSettings extends ToolSettings {
  /** Answers to all open approval requests. Recorded before anything runs. */
  readonly approvals?: readonly ApprovalAnswer[] | undefined;
  /**
   * As in `session.resumeTurn`. Default: calls that wait for a person stay open, calls that are safe to run are run,
   * the others are closed.
   */
  readonly calls?: ResumeOptions["calls"] | undefined;
  readonly draft?: ResumeOptions["draft"] | undefined;
}

/** Makes the runs of an AI SDK agent durable in one session. */
export interface Durable {
  /**
   * Returns the same settings, with a model, tools and callbacks that record: deltas as they stream, each assistant
   * message before any of its tools starts, each tool's start before it runs (it does not run if that fails), and its
   * outcome the moment it returns. Your own callbacks are still called.
   *
   * Records go to the turn that is open when the model is first asked. Wrap again for a run in another turn. Wrap a
   * `ToolLoopAgent` once: each of its calls counts as a separate run. Settings with neither `prompt` nor `messages` get
   * the session's messages; an agent gets them at each call that passes none.
   */
  wrap<S extends Settings>(settings: S): Prompted<S>;
  /** A copy of what the model should see now: pass it as `messages`. */
  messages(): ModelMessage[];
  /**
   * Resumes the interrupted turn: asks the probes, records the person's decisions, and runs the calls that are safe to
   * run with these tools. For the other calls, the model is told how far each got. Returns the turn: ask the model
   * next. Returns null if there is nothing to ask now: the model had answered (`interruption.answered`), and the turn
   * is ended as completed; or calls wait for a person, or for your application (tools without `execute`), and the turn
   * stays as it is. Throws as `session.resumeTurn` and `runOpen` do, and TOOL_MISSING, with the turn as it was: a call
   * that would run is one of a tool that is not among these. A later version that has it goes on.
   */
  resume(tools: ToolSet, settings?: ResumeSettings): Promise<Turn<ModelMessage> | null>;
  /**
   * Runs the calls that `resumeTurn` left open (`turn.open`) with these tools, and records their results. Call it
   * before you ask the model again. The SDK handles calls that wait for approval or were approved; the application
   * handles tools without `execute`. What an earlier process started, and is not safe to repeat, does not run: the
   * model is told. Rejects if the store fails, a context does not fit its tool, or a tool is missing (TOOL_MISSING).
   */
  runOpen(tools: ToolSet, settings?: ToolSettings): Promise<void>;
  /**
   * Reads the run to its end, even if others read it too, and reports how it ended. Call it when the run has just
   * begun: it refers to the newest run. Rejects if the store fails, or if Holdfast refused something inside a tool.
   */
  outcome(run: Run): Promise<RunOutcome>;
  /**
   * The same, and ends the turn accordingly: `end`, `abort`, `fail`, or `suspend` for pending calls. A turn that is
   * handed over is left as it is.
   */
  finish(run: Run): Promise<RunOutcome>;
}

/** A result of `streamText` or `agent.stream`, or the promise of `generateText`, `agent.generate` or `agent.stream`. */
export type Run =
  | PromiseLike<unknown>
  | { consumeStream(options?: { onError?: (error: unknown) => void }): PromiseLike<void> };

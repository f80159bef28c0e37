import type {
  Agent,
  AgentInputItem,
  IndividualRunOptions,
  RunConfig,
  RunContext,
  Runner,
  RunResult,
  RunState,
  StreamedRunResult,
} from "@openai/agents";
import type { ResumeOptions } from "holdfast";
import type { ToolRules } from "../tool-rules.ts";

// biome-ignore lint/suspicious/noExplicitAny: the SDK's own signatures of agents with any context and output.
export type AnyAgent = Agent<any, any>;
// biome-ignore lint/suspicious/noExplicitAny: as above.
export type AnyState = RunState<any, any>;
export type AnyContext = RunContext<unknown>;

export interface DurableOptions extends ToolRules {
  /** What you would pass to `new Runner(…)`. */
  readonly runner?: Partial<RunConfig>;
}

/** The options of `run` in the SDK, without those that name another place for the history. */
export type RunOptions = Omit<
  IndividualRunOptions<unknown>,
  "session" | "conversationId" | "previousResponseId" | "stream"
> & {
  readonly stream?: boolean;
};

/** The same, and how to treat what was interrupted. */
export type ResumeRunOptions = RunOptions & {
  /**
   * What happens to calls without a result, as in `session.resumeTurn`. Default: calls that wait for a person stay
   * open, calls that are safe to run are run, and for the others the model is told how far each got.
   */
  readonly calls?: ResumeOptions["calls"];
  readonly draft?: ResumeOptions["draft"];
};

/** How a run ended. */
export type RunOutcome =
  | { readonly kind: "completed" }
  /** Calls wait for approval (`result.interruptions`): decide in `result.state`, and pass the state to `run`. */
  | { readonly kind: "waiting" }
  | { readonly kind: "aborted" }
  /** The session is being closed with `handOver`: the next process continues the turn. */
  | { readonly kind: "handed-over" }
  /** `error` is the original error. */
  | { readonly kind: "failed"; readonly error: unknown };

/** Makes the runs of agents durable in one session. */
export interface Durable {
  /** Runs the agents. For hooks: `runner.on("agent_tool_start", …)`. */
  readonly runner: Runner;
  /**
   * Like `run(agent, input, options)` of the SDK, in a turn of the session: records the input, and then deltas as they
   * stream, each response before any of its tools starts, each tool's start before it runs (it does not run if that
   * fails), and its outcome when it returns. The history comes from the session. At the end of the run the turn is
   * ended accordingly: completed, suspended for approvals, aborted or failed. If the session is closed with `handOver`
   * before that, the turn is left as it is: a run without a stream rejects with TURN_HANDED_OVER.
   *
   * With a state of an earlier result, continues after approvals. The decisions are on disk before anything runs.
   */
  run<A extends AnyAgent>(
    agent: A,
    input: string | AgentInputItem[] | AnyState,
    options: RunOptions & { readonly stream: true },
  ): Promise<StreamedRunResult<unknown, A>>;
  run<A extends AnyAgent>(
    agent: A,
    input: string | AgentInputItem[] | AnyState,
    options?: RunOptions,
  ): Promise<RunResult<unknown, A>>;
  /**
   * Continues the interrupted turn where it was cut off, with the agent that the turn began with. Recorded responses
   * are not asked for again and tools that returned are not run again: the SDK gets what was recorded, so hand-offs,
   * guardrails and approvals (`result.interruptions`, `result.state`) are as before. If the answer was recorded, it
   * returns it. Before that, the probes are asked. Throws NOTHING_TO_RESUME; and TOOL_MISSING, with the turn suspended,
   * if it comes to a call of a tool that the agent does not have: resume it with a version that has it.
   */
  resume<A extends AnyAgent>(
    agent: A,
    options: ResumeRunOptions & { readonly stream: true },
  ): Promise<StreamedRunResult<unknown, A>>;
  resume<A extends AnyAgent>(agent: A, options?: ResumeRunOptions): Promise<RunResult<unknown, A>>;
  /**
   * Resolves when the run has ended and its turn is on disk. Needed only for streams: read the stream, then call this.
   * Rejects if the store failed.
   */
  finish(result: StreamedRunResult<unknown, AnyAgent> | RunResult<unknown, AnyAgent>): Promise<RunOutcome>;
  /** The agent that answered last, found by its name among this agent and those it can hand off to. */
  lastAgent<A extends AnyAgent>(agent: A): A;
}

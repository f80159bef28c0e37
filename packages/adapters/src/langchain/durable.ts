import type { BaseMessage } from "@langchain/core/messages";
import type { RunnableConfig } from "@langchain/core/runnables";
import { errorKind, isHoldfastError, type ResumeOptions, type Session, type Turn } from "holdfast";
import { type AgentMiddleware, createMiddleware } from "langchain";
import { unlessHandedOver } from "../hand-over.ts";
import { LACKS_TOOL, type ToolRules } from "../tool-rules.ts";
import { AgentTap } from "./agent-tap.ts";
import { copyOf, langchain } from "./dialect.ts";
import { resumeTurn, runMessages, WAITS_INSIDE } from "./resume.ts";
import type { AgentState } from "./run-events.ts";

export interface DurableOptions extends ToolRules {}

/** How a run ended. */
export type RunOutcome =
  | { readonly kind: "completed" }
  | { readonly kind: "aborted" }
  /** The session is being closed with `handOver`: the next process continues the turn. */
  | { readonly kind: "handed-over" }
  /** The model, a middleware or the graph failed. The turn has ended as failed. */
  | { readonly kind: "failed"; readonly error: unknown }
  /** An `interrupt()` waits for a person. The turn is suspended. */
  | { readonly kind: "waiting" };

/** Makes the runs of an agent durable in one session. */
export interface Durable {
  /**
   * Put it first in `middleware`, so that it is the outermost: it records each answer of the model before any of its
   * tools starts, each start of a tool before it runs (it does not run if that fails), and its outcome the moment it
   * returns.
   */
  readonly middleware: AgentMiddleware;
  /** The config of a run: yours, with the callbacks that record tokens as they stream, and the signal of the turn. */
  config<C extends RunnableConfig>(config?: C): C;
  /**
   * A copy of what a run begins with: pass it as the input's `messages`. After `resume`, it lacks the answer whose
   * calls are open: the middleware returns that one in place of the model.
   */
  messages(): BaseMessage[];
  /**
   * Resumes the interrupted turn, and returns it: run the agent next. That run goes on with the recorded answer: the
   * calls that are safe to run go through all middleware, with its approvals and policies. For the other calls, the
   * model is told how far each got. Returns null if there is nothing to run now: the model had answered, and the turn
   * is ended as completed; or an `interrupt()` waits for a person, and the turn stays suspended. When the person has
   * decided, pass `{ calls: () => "keep" }`. Throws as `session.resumeTurn` does.
   */
  resume(options?: ResumeOptions): Promise<Turn<BaseMessage> | null>;
  /**
   * Waits for the run, and ends its turn accordingly. Rejects if the store fails, or if Holdfast refused something: the
   * turn then stays open. Also rejects if a decision found no checkpoint to go on from: the turn then waits as before.
   */
  finish(run: Promise<unknown>): Promise<RunOutcome>;
}

/**
 * Makes the runs of a `createAgent` agent durable in this session. The session's dialect is `langchain`. Open its store
 * with `recordsToolStarts: true`, since every start is recorded. The session keeps the history, so the agent needs no
 * checkpointer.
 */
export function durable(session: Session<BaseMessage>, options: DurableOptions = {}): Durable {
  const { dialect } = session.attributes;
  if (dialect !== langchain.name) {
    throw new TypeError(
      `The session has the dialect "${dialect}", but messages of LangChain need "${langchain.name}". Create the session with the dialect "langchain" of @holdfast/adapters/langchain.`,
    );
  }
  const tap = new AgentTap(session, options);
  const middleware = createMiddleware({
    name: "holdfast",
    wrapModelCall: (request, handler) => tap.model(request, handler),
    wrapToolCall: (request, handler) => tap.tool(request, handler),
  });
  return {
    middleware: middleware as unknown as AgentMiddleware,
    config: <C extends RunnableConfig>(config?: C): C => tap.config(config ?? ({} as C)),
    messages: () => runMessages(session, session.turn?.open ?? []).map(copyOf),
    resume: (given = {}) => resumeTurn(session, given, options),
    finish: (run) => unlessHandedOver(session, () => finish(run, session, tap)),
  };
}

/** LangGraph ends such a run at once, without an error. */
const NO_CHECKPOINT =
  "The run did nothing: there is no checkpoint of its thread, so the decision reached nobody. The turn still waits. Run the agent as usual, with `messages` as its input: it asks the person again.";

async function finish(run: Promise<unknown>, session: Session<BaseMessage>, tap: AgentTap): Promise<RunOutcome> {
  const { turn } = session;
  try {
    const given = (await run) as AgentState | undefined;
    // What the reader of a stream returns is not the agent's state, or not all of it.
    const { messages = [], __interrupt__: interrupts = [] } = { ...tap.state, ...given };
    if (!turn || turn.signal.aborted) return { kind: "aborted" };
    const isUnknown = tap.state?.messages?.length === 0;
    if (interrupts.length > 0 || isUnknown) {
      await turn.suspend({ reason: WAITS_INSIDE, calls: waitingCalls(turn, interrupts) });
      if (isUnknown) throw new Error(NO_CHECKPOINT);
      return { kind: "waiting" };
    }
    await tap.recordResults(messages);
    await tap.recordLast(messages);
    await turn.end();
    return { kind: "completed" };
  } catch (error) {
    const failure = tap.failure ?? holdfastErrorIn(error);
    if (isHoldfastError(failure, "TOOL_MISSING")) await turn?.suspend({ reason: LACKS_TOOL });
    if (failure) throw failure;
    if (turn?.signal.aborted) return { kind: "aborted" };
    if (session.turn !== turn) throw error;
    await turn?.fail(error);
    return { kind: "failed", error };
  }
}

/** The calls that a person is asked about. `humanInTheLoopMiddleware` names their tools; others do not say. */
function waitingCalls({ open }: Turn<BaseMessage>, interrupts: NonNullable<AgentState["__interrupt__"]>): string[] {
  const names = interrupts.flatMap(({ value }) => {
    const { actionRequests } = (value ?? {}) as { readonly actionRequests?: readonly { readonly name?: string }[] };
    return actionRequests?.map(({ name }) => name) ?? [];
  });
  return open.flatMap(({ id, name }) => (names.length === 0 || names.includes(name) ? [id] : []));
}

/** LangChain wraps what a middleware throws. */
function holdfastErrorIn(error: unknown): unknown {
  let inner: unknown = error;
  for (let depth = 0; inner instanceof Error && depth < 10; depth++) {
    const kind = errorKind(inner);
    if (kind === "store" || kind === "misuse" || isHoldfastError(inner, "TOOL_MISSING")) return inner;
    inner = inner.cause;
  }
  return null;
}

import { AsyncLocalStorage } from "node:async_hooks";
import type { StepCall, StepOptions } from "./steps.ts";

/** The call that a tool runs for. */
export interface ToolCall {
  readonly id: string;
  /**
   * The call's idempotency key, to send to a service: the same whenever the call runs again, in any process and on any
   * machine, and different for every call. The process that runs the call has recorded it before.
   */
  readonly key: string;
  /**
   * Runs a part of the tool's work that has an outcome of its own. Its start is durable before `fn` runs, and what it
   * returned or threw when this resolves. If the tool runs again, a step that had ended does not: it returns or throws
   * what is recorded (the value must be JSON; an error comes back as an Error with the same words). One whose outcome
   * is unknown is settled by its probe, or runs again if `replay` is "safe" now and was when it started; otherwise this
   * rejects with STEP_IN_DOUBT. `name` is unique in the call and the same in every run; steps may run in parallel.
   * Throws STEP_TAKEN, STEP_LIMIT, STEP_VALUE_LOST, CALL_TAKEN if the tool has ended, RECORD_INVALID, store errors.
   */
  readonly step: <T>(
    name: string,
    fn: (signal: AbortSignal, step: StepCall) => T | Promise<T>,
    options?: StepOptions<T>,
  ) => Promise<T>;
}

const running = new AsyncLocalStorage<ToolCall>();

/** Runs the tool of a call: `toolCall` returns that call in everything that `run` does. */
export function runInCall<T>(call: ToolCall, run: () => T): T {
  return running.run(call, run);
}

/** The call that the calling code runs for, also inside the tools of an adapter; null outside a tool. */
export function toolCall(): ToolCall | null {
  return running.getStore() ?? null;
}

import { AsyncLocalStorage } from "node:async_hooks";

/** The call that a tool runs for. */
export interface ToolCall {
  readonly id: string;
  /**
   * The call's idempotency key, to send to a service: the same whenever the call runs again, in any process and on any
   * machine, and different for every call. The process that runs the call has recorded it before.
   */
  readonly key: string;
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

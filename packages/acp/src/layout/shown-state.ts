import { lineOf, type RequestId, updateLine } from "../record/message.ts";
import type { ShownChange } from "../wrap/shown-change.ts";

/** Of each kind, the oldest are forgotten beyond this: an agent may never end what it begins. */
const OPEN_MAX = 1000;
const INTERRUPTED = "Interrupted, outcome unknown: the process that records this agent has died.";

/** What an editor shows as running or waiting, so that it can be told the end if nobody else is left to tell it. */
export class ShownState {
  /** Each call with its session, by both. */
  readonly #calls = new Map<string, { readonly session: string; readonly call: string }>();
  readonly #requests = new Map<string, RequestId>();

  apply({ session, open, ended, request }: ShownChange): void {
    if (session !== null) {
      for (const call of ended) this.#calls.delete(JSON.stringify([session, call]));
      for (const call of open) add(this.#calls, JSON.stringify([session, call]), { session, call });
    }
    if (request !== undefined) add(this.#requests, JSON.stringify(request), request);
  }

  /** The editor has answered a question. */
  answered(request: RequestId): void {
    this.#requests.delete(JSON.stringify(request));
  }

  /** The turn has ended: the editor knows that its calls have ended too. */
  leave(session: string): void {
    for (const [key, one] of this.#calls) if (one.session === session) this.#calls.delete(key);
  }

  /** Lines that withdraw the questions and end the calls. Nothing is open after that. */
  takeEnd(): Buffer[] {
    const content = [{ type: "content", content: { type: "text", text: INTERRUPTED } }];
    const lines = [
      ...[...this.#requests.values()].map((requestId) => lineOf({ method: "$/cancel_request", params: { requestId } })),
      ...[...this.#calls.values()].map(({ session, call: toolCallId }) =>
        updateLine(session, { sessionUpdate: "tool_call_update", toolCallId, status: "failed", content }),
      ),
    ];
    this.#requests.clear();
    this.#calls.clear();
    return lines;
  }
}

function add<T>(open: Map<string, T>, key: string, value: T): void {
  open.set(key, value);
  if (open.size > OPEN_MAX) open.delete(open.keys().next().value!);
}

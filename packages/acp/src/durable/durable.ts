import type { Store } from "holdfast";
import { DurableConnection } from "./connection.ts";
import type { DurableOptions, DurableStream, MessageStream } from "./surface.ts";

/**
 * Makes the sessions of an ACP agent survive: put it around the stream that connects the agent to its client. Each
 * message is recorded before it is passed on, and sessions can be listed, loaded, resumed, closed and deleted. An
 * update is on record when the SDK's call that sent it resolves.
 */
export function durable<Message>(
  stream: MessageStream<Message>,
  store: Store,
  options: DurableOptions = {},
): DurableStream<Message> {
  const connection = new DurableConnection(stream as unknown as MessageStream<unknown>, store, options);
  return {
    readable: connection.readable as ReadableStream<Message>,
    writable: connection.writable as WritableStream<Message>,
    checkpoint: (sessionId, value) => connection.checkpoint(sessionId, value),
  };
}

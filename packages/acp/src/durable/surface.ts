import type { McpServer, SessionUpdate } from "@agentclientprotocol/sdk";
import type { Json } from "holdfast";
import type { InterruptedTurn } from "./interrupted-turn.ts";

/** The public types of `durable`. */

export type { InterruptedCall, InterruptedTurn } from "./interrupted-turn.ts";

/** What `ndJsonStream` returns, in any version of the SDK. */
export interface MessageStream<Message> {
  readonly readable: ReadableStream<Message>;
  readonly writable: WritableStream<Message>;
}

/** A session of an earlier process, for the agent that takes it over. */
export interface RestoredSession {
  /** The conversation, as updates: prompts are `user_message_chunk`. The client is shown the same. */
  readonly history: readonly SessionUpdate[];
  /** The same as text, quoted and labelled, for agents that tell their model in words. At most 40,000 characters. */
  readonly transcript: string;
  /** What was in flight when the last process died; null if nothing was. */
  readonly interruption: InterruptedTurn | null;
  /** The last value that the agent gave to `checkpoint`; null if there is none. */
  readonly checkpoint: Json;
  /** These three are from the client's request, not from the record. */
  readonly cwd: string;
  readonly additionalDirectories: readonly string[];
  readonly mcpServers: readonly McpServer[];
}

export interface DurableOptions {
  /** The agent's name in the store. Default: what the agent calls itself in `agentInfo`, or the program's file. */
  readonly app?: string;
  /**
   * Rebuilds the agent's own context of a session before it is loaded or resumed. May return `modes` and
   * `configOptions` for the client. If it throws, the client's request fails with that message. Without this function,
   * the agent's own `session/resume` or `session/load` is used, or else a new session that receives the conversation as
   * text with the next prompt.
   */
  readonly restore?: (sessionId: string, session: RestoredSession) => unknown;
  /** For the person who reads the editor's log. Default: standard error. */
  readonly log?: (line: string) => void;
}

/** A stream whose sessions survive. */
export interface DurableStream<Message> extends MessageStream<Message> {
  /**
   * Records what the agent needs in order to continue: for example the id of the model's last response. The last value
   * counts; keep it small. Durable when it resolves. Throws SESSION_NOT_FOUND if the session is not open.
   */
  checkpoint(sessionId: string, value: Json): Promise<void>;
}

import type { Admission } from "../admit/admit.ts";
import type { Conversation } from "../conversation/conversation.ts";
import type { Log } from "./log.ts";
import type { LiveTurn } from "./turn.ts";

/** What a session and its turns share. */
export interface SessionContext<M> {
  readonly id: string;
  readonly log: Log<M>;
  readonly conversation: Conversation<M>;
  readonly admission: Admission<M>;
  readonly draftMs: number;
  readonly draftBytes: number;
  /** The newest record that the application had seen when it last asked for the messages: the model may have been asked with them. */
  askedAt(): number;
  /** Throws SESSION_CLOSED. */
  assertOpen(): void;
  /** The turn is over, in whatever way. */
  turnOver(turn: LiveTurn<M>): void;
}

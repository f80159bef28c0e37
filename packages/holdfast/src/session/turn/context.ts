import type { Admission } from "../../admit/admit.ts";
import type { Conversation } from "../../conversation/conversation.ts";
import type { Log } from "../log.ts";
import type { LiveTurn } from "./turn.ts";

/** Shared between a session and its turns. */
export interface SessionContext<M> {
  readonly id: string;
  readonly log: Log<M>;
  readonly conversation: Conversation<M>;
  readonly admission: Admission<M>;
  readonly draftMs: number;
  readonly draftBytes: number;
  /** The newest record when the application last read the messages: the model may have been asked with them. */
  askedAt(): number;
  /** Throws SESSION_CLOSED. */
  assertOpen(): void;
  /** The turn has ended, in any way. */
  turnOver(turn: LiveTurn<M>): void;
}

import type { Admission } from "../../admit/admit.ts";
import type { Conversation } from "../../conversation/conversation.ts";
import type { Log } from "../writing/log.ts";

/** Shared between a session and its turns. */
export interface SessionContext<M> {
  readonly id: string;
  readonly log: Log<M>;
  readonly conversation: Conversation<M>;
  readonly admission: Admission<M>;
  readonly draftMs: number;
  readonly draftChars: number;
  /** What the model is asked with now, in an array of the caller's own. */
  messages(): M[];
  /** Throws SESSION_CLOSED. */
  assertOpen(): void;
  /** The turn has ended, in any way. */
  turnOver(turn: object): void;
}

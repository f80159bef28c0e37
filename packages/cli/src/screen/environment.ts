import type { Chat, Host } from "../host/host.ts";

/** What the screen gets from outside. */
export interface ScreenEnvironment {
  readonly host: Host;
  readonly colour: boolean;
  /** The model for the first session, if it is chosen from the list. Default: the one that it used last. */
  readonly model?: string;
  readonly now: () => number;
  /** Creates a session, if the person prefers a new one to the unfinished one that was offered. */
  readonly startNew: () => Promise<Chat>;
  /** Writes the conversation to a file and returns its path. */
  readonly exportTo: (id: string, file: string | undefined) => Promise<string>;
}

import type { Host } from "../host/host.ts";

/** What the screen is given from outside. */
export interface ScreenEnvironment {
  readonly host: Host;
  readonly colour: boolean;
  /** For the session that the screen begins with, if it is taken from the list. Default: the one that it used last. */
  readonly model?: string;
  readonly now: () => number;
  /** Writes the conversation to a file, and answers its path. */
  readonly exportTo: (id: string, file: string | undefined) => Promise<string>;
}

import type { EditorFiles } from "@holdfast/server/internal/contract";
import type { OwnStore } from "../paths/own-store.ts";

/** What the file tools know about the agent that runs them. */
export interface FileContext {
  /** The agent's working folder; an absolute, real path. */
  readonly cwd: string;
  /**
   * Whether a search or listing skips this real path because reading it needs approval (`makeSearchFilter` in
   * permission/decide.ts). Default: skip what looks like a secret.
   */
  readonly passOver?: (path: string) => boolean;
  /** The files of the store that this process has open: no tool touches them. */
  readonly own?: OwnStore | null;
  /** The files as the user's editor has them. */
  readonly editor?: EditorFiles | null;
}

/** Checks a call that changes a file again, at the last moment. */
export interface Watch {
  /** Throws if the call is no longer the one that was allowed. */
  readonly check: () => Promise<void>;
  readonly changed: () => Promise<void>;
}

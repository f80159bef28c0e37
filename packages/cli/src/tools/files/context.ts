import type { OwnStore } from "../paths/own-store.ts";

/** What the file tools may know of the agent that runs them. */
export interface FileContext {
  /** The folder that the agent works in; an absolute, real path. */
  readonly cwd: string;
  /**
   * Real paths of files and folders that a search or a listing passes over, because reading them needs approval
   * (`makeSearchFilter` in permission/decide.ts). Default: what looks like a secret.
   */
  readonly passOver?: (path: string) => boolean;
  /** The files of the store that this process has open: no tool touches them. */
  readonly own?: OwnStore | null;
}

/** Checks a call that changes a file once more, at the last moment. */
export interface Watch {
  /** Throws if the call is no longer what was allowed. */
  readonly check: () => Promise<void>;
  readonly changed: () => Promise<void>;
}

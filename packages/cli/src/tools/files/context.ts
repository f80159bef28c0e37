import type { ToolProcess } from "holdfast";
import type { Environment } from "../shell/environment.ts";
import type { OwnStore } from "./own-store.ts";

/** What a tool may know of the agent that runs it. One for each session. */
export interface ToolContext {
  /** The folder that the agent works in; an absolute, real path. */
  readonly cwd: string;
  /** Where the whole output of a shell command is kept: `<call>.<pid>.log`, and `.exit` when it has ended. Made with 0700 on demand. */
  readonly outputs: string;
  /** Records the process group of a call, durably; the command begins only after it (R7b). */
  readonly process: (call: string, process: ToolProcess) => Promise<void>;
  /** What a running tool says, for people. */
  readonly output: (call: string, text: string) => void;
  /** The variables of its commands (`commandEnvironment`). */
  readonly env: Environment;
  /** Files and folders (real paths) that a search or a listing passes over, since reading them would need a word (`passedOver` of permission.ts). Default: what looks like a secret. */
  readonly passOver?: (path: string) => boolean;
  /** The files of the store that this process has open: no tool touches them. */
  readonly own?: OwnStore | null;
  /** For a call that changes a file: what it asks at the last moment before that, and tells right after it. */
  readonly watch?: (call: string, name: string, input: unknown) => Watch;
}

export interface Watch {
  /** Throws if the call is no longer what was allowed. */
  readonly check: () => Promise<void>;
  readonly changed: () => Promise<void>;
}

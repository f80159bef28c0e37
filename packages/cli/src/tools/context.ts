import type { ToolProcess } from "holdfast";

/** What a tool may know of the agent that runs it. One for each session. */
export interface ToolContext {
  /** The folder that the agent works in; an absolute, real path. */
  readonly cwd: string;
  /** Where the whole output of a shell command is kept: `<outputs>/<call>.log`, and `.exit` when it has ended. Made with 0700 on demand. */
  readonly outputs: string;
  /** Records the process group of a call, durably; the command begins only after it (R7b). */
  readonly process: (call: string, process: ToolProcess) => Promise<void>;
  /** What a running tool says, for people. */
  readonly output: (call: string, text: string) => void;
}

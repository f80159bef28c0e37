/**
 * What an editor lets the agent of one session use. Not part of `Host`, because it is not plain data: only an agent in
 * the process that the editor started can use it.
 */
export interface EditorOffer {
  readonly files: EditorFiles;
  /** Null if the editor offers no terminals. */
  readonly terminals: EditorTerminals | null;
  /** The MCP servers of the editor's configuration. */
  readonly servers: readonly OfferedServer[];
}

/** Files as the editor has them. All paths are absolute. A member is null if the editor does not offer it. */
export interface EditorFiles {
  /** The text, with changes that are not saved yet. Rejects if the editor does not give it in time. */
  readonly read: ((path: string, signal?: AbortSignal) => Promise<string>) | null;
  /** If it rejects, the file may have been written. */
  readonly write: ((path: string, text: string, signal?: AbortSignal) => Promise<void>) | null;
}

export interface EditorTerminals {
  /** Starts a command, and shows its terminal with this call. If it rejects, the command may have started. */
  create(call: string, command: TerminalCommand): Promise<EditorTerminal>;
}

export interface TerminalCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** The editor keeps this much of the end of the output. */
  readonly outputBytesMax: number;
}

/** Its methods reject if the editor reports an error or is gone. */
export interface EditorTerminal {
  readonly ended: Promise<{ readonly code: number | null; readonly by: string | null }>;
  output(): Promise<{ readonly text: string; readonly isCut: boolean }>;
  kill(): Promise<void>;
  /** The editor frees the terminal, and ends its command if that is still running. */
  release(): Promise<void>;
}

/** An MCP server of the editor's configuration. The values of `env` and `headers` may be secrets: never record them. */
export type OfferedServer = { readonly name: string } & (
  | { readonly command: string; readonly args: readonly string[]; readonly env: Readonly<Record<string, string>> }
  | { readonly url: string; readonly headers: Readonly<Record<string, string>> }
);

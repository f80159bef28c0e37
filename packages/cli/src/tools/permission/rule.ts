/**
 * A permission rule. `*`: everything. `read`: every call of that tool; if it allows, only inside the working folder.
 * `write(src/**)`: these paths. `shell(npm *)`: these commands (command-rules.ts). `read(=a*b)`, `shell(=…)`: exactly
 * this path or command line, without wildcards. `mcp__github`: every tool of that MCP server; `mcp__github__list_*`:
 * these tools; `mcp__*`: the tools of all servers.
 */
export interface Rule {
  readonly text: string;
  /** `*` for every tool. */
  readonly tool: string;
  readonly pattern: string | null;
  readonly isExact: boolean;
  /** Written with `=`: matches character for character. */
  readonly isLiteral?: true;
  /** For a shell pattern: the words of its commands; empty if it cannot be parsed. */
  readonly commands: readonly (readonly string[])[];
}

export interface Places {
  readonly cwd: string;
  readonly home: string;
}

/** `maybe`: it cannot be determined. Then only a rule that gives the whole command allows it. */
export type Match = "yes" | "maybe" | "no";

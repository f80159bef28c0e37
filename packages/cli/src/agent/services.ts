import type { Store } from "holdfast";
import type { Config } from "../config.ts";
import type { McpServers } from "../mcp/servers.ts";
import type { ResolvedModel } from "../models/resolve.ts";
import type { ProjectRules } from "../trust/project-rules.ts";
import type { Trust } from "../trust/trust.ts";

/** Shared by all conversations of a host. */
export interface Services {
  readonly store: Store;
  readonly config: Config;
  /** Who decides on a call that no rule allows: a person, or nobody, and it is denied. */
  readonly asks: "person" | "nobody";
  readonly model: (name: string) => Promise<ResolvedModel>;
  /** Fires when a signal told the process to end: start nothing new. */
  readonly ending: AbortSignal;
  /** The folder for the full outputs of a session's tools. */
  readonly outputs: (session: string) => string;
  /** What this user has allowed and approved in this store's sessions. */
  readonly trust: Trust;
  /** The user's MCP servers; null if there are none. */
  readonly servers: McpServers | null;
  /** The user's rules for single projects. */
  readonly rules: ProjectRules;
}

import type { EditorOffer } from "@holdfast/server/contract";
import type { Store } from "holdfast";
import type { Config } from "../config.ts";
import type { McpServers } from "../mcp/servers.ts";
import type { ResolvedModel } from "../models/resolve.ts";
import type { ProjectRules } from "../trust/project-rules.ts";
import type { Trust } from "../trust/trust.ts";

/** What the user's editor lets the agent of a session use. */
export interface EditorTools extends Pick<EditorOffer, "files" | "terminals"> {
  /** Null if the editor has none. */
  readonly servers: McpServers | null;
}

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
  /** For a session that an editor has open. */
  readonly editor?: (session: string) => EditorTools | null;
  /** The user's rules for single projects. */
  readonly rules: ProjectRules;
}

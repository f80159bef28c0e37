import { resolve } from "node:path";
import { setTimeout as passed } from "node:timers/promises";
import { homeFolder } from "../home.ts";
import { expandVariables, type ServerSettings, type Servers } from "../mcp-settings/server-settings.ts";
import type { Environment } from "../tools/shell/environment.ts";
import type { ServerTool } from "./catalog.ts";
import { Connection, type Limits, type ServerState } from "./connection.ts";
import { type Hide, secretHider } from "./hide-secrets.ts";
import { httpTransport } from "./http-transport.ts";
import { type ServerTransport, stdioTransport } from "./stdio-transport.ts";

export interface ServersOptions {
  readonly version: string;
  /** What the servers that this machine runs inherit. */
  readonly env: Environment;
  /** For `${NAME}` in the settings. Null: the settings mean what they say, also `~`. */
  readonly variables: Environment | null;
  readonly limits?: Limits;
}

/** One server, for lists. */
export interface ServerReport {
  readonly name: string;
  readonly state: ServerState | "disabled";
  readonly why: string | null;
  readonly tools: readonly ServerTool[];
  readonly problems: readonly string[];
}

/** How long a turn waits for servers that are still starting. They go on starting, and serve the next turn. */
const PATIENCE_MS = 10_000;

/** The user's MCP servers. They start at once, side by side, and end with the agent. */
export class McpServers {
  readonly #connections: readonly Connection[];
  readonly #disabled: readonly string[];
  /** Those that no turn has waited for yet. */
  #awaited: readonly Connection[];
  #warnings: string[] = [];

  constructor(servers: Servers, options: ServersOptions) {
    const all = Object.entries(servers);
    this.#disabled = all.flatMap(([name, { enabled }]) => (enabled ? [] : [name]));
    const enabled = all.filter(([, settings]) => settings.enabled);
    this.#connections = enabled.map(([name, settings]) => this.#connectionOf(name, settings, options));
    this.#awaited = this.#connections;
    for (const connection of this.#connections) connection.start();
  }

  /** Waits for servers that are starting for the first time, once and not for long. Tries failed ones again. */
  async ready(signal?: AbortSignal, patienceMs: number = PATIENCE_MS): Promise<void> {
    const starting = this.#awaited.filter(({ state }) => state === "starting");
    for (const connection of this.#connections) connection.retry();
    this.#awaited = [];
    if (starting.length === 0) return;
    const late = new AbortController();
    const either = signal ? AbortSignal.any([signal, late.signal]) : late.signal;
    const patience = passed(patienceMs, undefined, { signal: either }).catch(() => {});
    await Promise.race([Promise.all(starting.map(({ settled }) => settled)), patience]);
    late.abort();
    const slow = starting.filter(({ state }) => state === "starting").map(({ name }) => `"${name}"`);
    if (slow.length > 0 && !signal?.aborted)
      this.#warnings.push(`Not ready yet: MCP server ${slow.join(", ")}. Its tools are missing from this turn.`);
  }

  /** Waits until each server is ready or has failed. */
  async settled(): Promise<void> {
    await Promise.all(this.#connections.map(({ settled }) => settled));
  }

  /** The tools of each server that has been ready. */
  get tools(): readonly (readonly ServerTool[])[] {
    return this.#connections.map(({ catalog, state }) => (state === "failed" ? [] : catalog.tools));
  }

  get reports(): readonly ServerReport[] {
    return [
      ...this.#connections.map(({ name, state, why, catalog: { tools, problems } }) => ({
        ...{ name, state, why },
        ...{ tools, problems },
      })),
      ...this.#disabled.map((name) => ({ name, state: "disabled" as const, why: null, tools: [], problems: [] })),
    ];
  }

  /** What the user should know and has not been told. */
  takeWarnings(): readonly string[] {
    const warnings = this.#warnings;
    this.#warnings = [];
    return [...new Set(warnings)];
  }

  /** Throws an error worded for the model. */
  async call(tool: ServerTool, input: unknown, options: Parameters<Connection["call"]>[2]): Promise<unknown> {
    const connection = this.#connections.find(({ catalog }) => catalog.tools.some(({ name }) => name === tool.name));
    if (!connection) throw new Error(`The tool ${tool.name} no longer exists: it did not run.`);
    return connection.call(tool.tool, input, options);
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }

  #connectionOf(
    name: string,
    settings: ServerSettings,
    { version, env, variables, limits }: ServersOptions,
  ): Connection {
    const { tools, timeoutSeconds } = settings;
    const hide = secretHider(settings, (text) => (variables ? expandVariables(text, variables) : text));
    return new Connection({
      ...{ name, version, hide },
      open: () => openTransport(settings, env, variables, hide),
      isRemote: "url" in settings,
      ...(tools ? { tools } : {}),
      timeoutMs: timeoutSeconds * 1000,
      warn: (text) => this.#warnings.push(text),
      ...(limits ? { limits } : {}),
    });
  }
}

function openTransport(
  settings: ServerSettings,
  env: Environment,
  variables: Environment | null,
  hide: Hide,
): ServerTransport {
  const expanded = (text: string): string => (variables ? expandVariables(text, variables) : text);
  const all = (texts: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, expanded(text)]));
  if ("url" in settings) return httpTransport(expanded(settings.url), all(settings.headers));
  // Not in the working folder: there `npx` would run what the repository installed, and obey its settings.
  const home = homeFolder();
  const cwd = settings.cwd?.replace(/^~(?=[/\\]|$)/, home ?? "") ?? home ?? "/";
  return stdioTransport({
    command: variables ? expanded(settings.command).replace(/^~(?=[/\\])/, home ?? "~") : settings.command,
    args: settings.args.map(expanded),
    cwd: resolve(cwd),
    env: { ...env, ...all(settings.env) },
    hide,
  });
}

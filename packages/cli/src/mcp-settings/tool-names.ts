import { createHash } from "node:crypto";

/** Every tool of a server is named `mcp__<server>__<tool>`: no tool of the agent can have such a name. */
const PREFIX = "mcp__";

/** What every provider accepts as the name of a tool. */
const NAME_CHARS_MAX = 64;
const HASH_CHARS = 8;

/**
 * A server's name has no `__` and does not end with `_`, so that a tool's name can be split in one way only. It is
 * short enough to leave room for the tool.
 */
const SERVER_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9-]|_(?![_]|$)){0,31}$/;

export function isServerName(name: string): boolean {
  return SERVER_NAME.test(name);
}

/**
 * The name of a server's tool for the model, the rules and the user. A name that providers refuse, or that could look
 * like another one on a screen, has its characters replaced and a digest added. It depends on nothing but these two
 * names: an approval that waits over a restart is for the same tool afterwards.
 */
export function toolName(server: string, tool: string): string {
  const name = `${PREFIX}${server}__${tool}`;
  if (/^[A-Za-z0-9_-]+$/.test(tool) && name.length <= NAME_CHARS_MAX) return name;
  const digest = createHash("sha256").update(tool).digest("hex").slice(0, HASH_CHARS);
  const room = NAME_CHARS_MAX - PREFIX.length - server.length - 2 - HASH_CHARS - 1;
  return `${PREFIX}${server}__${tool.slice(0, room).replaceAll(/[^A-Za-z0-9_-]/gu, "_")}_${digest}`;
}

/** Whether this is, or could be meant as, a rule for the tools of servers. */
export function isServerRule(tool: string): boolean {
  return tool.startsWith(PREFIX);
}

/** The server that a rule names, `*` for all; null if the rule is malformed. */
export function serverOfRule(tool: string): string | null {
  const [, server, pattern] = /^mcp__(\*|[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*)(?:__([\w*-]+))?$/.exec(tool) ?? [];
  if (server === undefined || (server === "*" ? pattern !== undefined : !isServerName(server))) return null;
  return server;
}

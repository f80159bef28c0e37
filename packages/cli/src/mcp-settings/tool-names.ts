/** Every tool of a server is named `mcp__<server>__<tool>`: no tool of the agent can have such a name. */
export const PREFIX = "mcp__";

/**
 * A server's name has no `__` and does not end with `_`, so that a tool's name can be split in one way only. It is
 * short enough to leave room for the tool.
 */
const SERVER_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9-]|_(?![_]|$)){0,31}$/;

export function isServerName(name: string): boolean {
  return SERVER_NAME.test(name);
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

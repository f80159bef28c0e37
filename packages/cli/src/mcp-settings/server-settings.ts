import { posix, win32 } from "node:path";
import { isServerName } from "./tool-names.ts";

/** A server that this machine runs: it speaks on its standard input and output. */
export interface LocalServer {
  readonly command: string;
  readonly args: readonly string[];
  /** Variables in addition to those that commands see. */
  readonly env: Readonly<Record<string, string>>;
  /** The folder it runs in. Default: the user's home. */
  readonly cwd?: string;
}

/** A server elsewhere, reached by Streamable HTTP. */
export interface RemoteServer {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

export type ServerSettings = (LocalServer | RemoteServer) & {
  /** The tools to offer, by the server's own names. Default: all. */
  readonly tools?: readonly string[];
  /** How long a call may take without a word from the server. */
  readonly timeoutSeconds: number;
  readonly enabled: boolean;
};

export type Servers = Readonly<Record<string, ServerSettings>>;

export const TIMEOUT_SECONDS = 120;
const TIMEOUT_SECONDS_MAX = 3600;

const KNOWN = {
  local: ["type", "command", "args", "env", "cwd", "tools", "timeoutSeconds", "enabled"],
  remote: ["type", "url", "headers", "tools", "timeoutSeconds", "enabled"],
};

/**
 * Checks the `mcpServers` of a configuration file, in the form that other agents use too. Throws what `invalid` makes
 * of the first fault. Values are never repeated in a message: they may be keys.
 */
export function checkServers(
  given: unknown,
  where: string,
  platform: string,
  invalid: (why: string) => Error,
): Servers {
  const servers = membersOf(given);
  if (!servers) throw invalid(`${where} must be an object: the name of each server, and how to start it.`);
  const seen = new Map<string, string>();
  return Object.fromEntries(
    servers.map(([name, settings]) => {
      if (!isServerName(name))
        throw invalid(
          `${where}: ${JSON.stringify(name)} is not a name for a server. Use up to 32 letters, digits and hyphens, and single underscores between them.`,
        );
      const other = seen.get(name.toLowerCase());
      if (other !== undefined) throw invalid(`${where}: the names "${other}" and "${name}" differ only in case.`);
      seen.set(name.toLowerCase(), name);
      return [name, checkServer(settings, `${where}: "${name}"`, platform, invalid)];
    }),
  );
}

function checkServer(given: unknown, where: string, platform: string, invalid: (why: string) => Error): ServerSettings {
  const members = membersOf(given);
  if (!members) throw invalid(`${where} must be an object with "command" or "url".`);
  const { type, command, args, env, cwd, url, headers, tools, timeoutSeconds, enabled } = Object.fromEntries(members);
  const isRemote = url !== undefined;
  if (isRemote === (command !== undefined)) throw invalid(`${where} needs either "command" or "url".`);
  if (type !== undefined && type !== (isRemote ? "http" : "stdio"))
    throw invalid(`${where}: "type" must be ${isRemote ? '"http" (Streamable HTTP)' : '"stdio"'}, or left out.`);
  const unknown = members.find(([key]) => !(isRemote ? KNOWN.remote : KNOWN.local).includes(key))?.[0];
  if (unknown !== undefined) throw invalid(`${where}: unknown setting "${unknown}".`);
  const text = (value: unknown, key: string): string => {
    if (typeof value === "string" && value !== "" && !value.includes("\0")) return value;
    throw invalid(`${where}: "${key}" must be a non-empty string.`);
  };
  const list = (value: unknown, key: string): readonly string[] => {
    if (Array.isArray(value) && value.every((one) => typeof one === "string" && !one.includes("\0"))) return value;
    throw invalid(`${where}: "${key}" must be a list of strings.`);
  };
  const texts = (value: unknown, key: string): Readonly<Record<string, string>> => {
    const found = membersOf(value);
    if (found?.every(([name, one]) => name !== "" && typeof one === "string" && !one.includes("\0")))
      return Object.fromEntries(found) as Record<string, string>;
    throw invalid(`${where}: "${key}" must be an object of strings.`);
  };
  if (enabled !== undefined && typeof enabled !== "boolean")
    throw invalid(`${where}: "enabled" must be true or false.`);
  const seconds = timeoutSeconds ?? TIMEOUT_SECONDS;
  if (typeof seconds !== "number" || !(seconds > 0) || seconds > TIMEOUT_SECONDS_MAX)
    throw invalid(`${where}: "timeoutSeconds" must be a number up to ${TIMEOUT_SECONDS_MAX}.`);
  const common = {
    ...(tools === undefined ? {} : { tools: list(tools, "tools") }),
    timeoutSeconds: seconds,
    enabled: enabled ?? true,
  };
  if (isRemote) {
    const address = text(url, "url");
    if (!/^https?:\/\//i.test(address)) throw invalid(`${where}: "url" must start with http:// or https://.`);
    return { url: address, headers: headers === undefined ? {} : texts(headers, "headers"), ...common };
  }
  const folder = cwd === undefined ? undefined : text(cwd, "cwd");
  const { isAbsolute } = platform === "win32" ? win32 : posix;
  // The file applies in every folder, and a server must not depend on the one that the user happens to be in.
  if (folder !== undefined && !isAbsolute(folder) && !/^~(?:[/\\]|$)/.test(folder))
    throw invalid(`${where}: "cwd" must be an absolute path or start with ~/.`);
  return {
    command: text(command, "command"),
    args: args === undefined ? [] : list(args, "args"),
    env: env === undefined ? {} : texts(env, "env"),
    ...(folder === undefined ? {} : { cwd: folder }),
    ...common,
  };
}

function membersOf(value: unknown): [string, unknown][] | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? Object.entries(value) : null;
}

/**
 * Replaces `${NAME}` and `${NAME:-default}` by variables of the environment, so that keys need not be in the file.
 * Throws an error that names a missing variable.
 */
export function expandVariables(text: string, env: Readonly<Record<string, string | undefined>>): string {
  return text.replaceAll(/\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}/g, (_, name: string, otherwise: string | undefined) => {
    const value = env[name] || otherwise;
    if (value === undefined) throw new Error(`the environment variable ${name} is not set`);
    return value;
  });
}

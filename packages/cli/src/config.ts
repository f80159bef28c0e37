import { closeSync, fstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, posix, resolve, win32 } from "node:path";
import { shownAddress } from "holdfast/address";
import { CommandError, EXIT } from "./exit.ts";
import { homeFolder } from "./home.ts";
import { checkServers, type Servers } from "./mcp-settings/server-settings.ts";
import { readAddress } from "./read-address.ts";

/** By scheme: the name of a package beside the command, or the absolute path of a module. */
export type StorePackages = Readonly<Record<string, string>>;

/** The configuration. Each value comes from a flag, else the environment, else the file, else the default. */
export interface Config {
  /** The store's address; undefined for the library's default. */
  readonly store: string | undefined;
  /** The package that opens the store of an address, by the address's scheme. */
  readonly stores: StorePackages;
  /** `provider/name`, or `offline`. */
  readonly model: string;
  /** The URL of an OpenAI-compatible server. */
  readonly baseUrl: string | undefined;
  /** Permission rules, in the order given. */
  readonly allow: readonly string[];
  readonly ask: readonly string[];
  readonly deny: readonly string[];
  /** MCP servers, by name. */
  readonly mcpServers: Servers;
  /** The size of the model's context window in tokens; undefined to use the size known for the model. */
  readonly windowTokens: number | undefined;
  /** Environment variables that commands see in addition to the usual ones. */
  readonly passEnv: readonly string[];
  /** Redact credentials before anything is written to the journal. */
  readonly redact: boolean;
  /** The pager of `show`, as a shell command; undefined to use PAGER, or less. */
  readonly pager: string | undefined;
  /** How long the offline model waits before each delta, in milliseconds. */
  readonly offlineDelayMs: number;
  /** HOLDFAST_DEBUG: print stack traces and internals to stderr. */
  readonly debug: boolean;
}

/** One configurable setting. `holdfast config` and docs/CLI.md are generated from the table of these. */
export interface Setting {
  readonly key: keyof Config;
  /** Without one, the setting is allowed in the file only. */
  readonly env?: string;
  /** The flag, on the commands that take it. Without one, the setting applies to every command. */
  readonly flag?: string;
  /** Not allowed in the file. */
  readonly envOnly?: true;
  /** Lists are concatenated: first the file's, then the environment's, then the flags'. */
  readonly kind: "text" | "url" | "list" | "number" | "switch" | "servers" | "packages";
  /** The minimum, for a number; default 0. */
  readonly least?: number;
  readonly fallback: Config[keyof Config];
  readonly what: string;
}

export const settings: readonly Setting[] = [
  {
    key: "store",
    env: "HOLDFAST_STORE",
    flag: "--store",
    kind: "text",
    fallback: undefined,
    what: "where sessions are stored: a folder, sqlite:<file> or a postgres: URL (default: a folder in the user's data folder)",
  },
  {
    key: "stores",
    kind: "packages",
    fallback: {},
    what: "packages that open stores of other kinds, by the scheme of their addresses (see below)",
  },
  {
    key: "model",
    env: "HOLDFAST_MODEL",
    flag: "--model",
    kind: "text",
    fallback: "offline",
    what: 'model to use, as provider/name; "offline" is built in and needs no key',
  },
  {
    key: "baseUrl",
    env: "HOLDFAST_BASE_URL",
    flag: "--base-url",
    kind: "url",
    fallback: undefined,
    what: "URL of an OpenAI-compatible server (Ollama, vLLM, LM Studio)",
  },
  {
    key: "allow",
    env: "HOLDFAST_ALLOW",
    flag: "--allow",
    kind: "list",
    fallback: [],
    what: "rules for calls that run without asking",
  },
  {
    key: "ask",
    env: "HOLDFAST_ASK",
    flag: "--ask",
    kind: "list",
    fallback: [],
    what: "rules for calls that need approval",
  },
  {
    key: "deny",
    env: "HOLDFAST_DENY",
    flag: "--deny",
    kind: "list",
    fallback: [],
    what: "rules for calls that never run",
  },
  {
    key: "mcpServers",
    kind: "servers",
    fallback: {},
    what: "MCP servers whose tools the agent can use (see below)",
  },
  {
    key: "windowTokens",
    env: "HOLDFAST_WINDOW_TOKENS",
    flag: "--window-tokens",
    kind: "number",
    least: 1,
    fallback: undefined,
    what: "the model's context window in tokens (default: the known size for that model)",
  },
  {
    key: "passEnv",
    env: "HOLDFAST_PASS_ENV",
    kind: "list",
    fallback: [],
    what: "environment variables to pass to commands in addition to the usual ones (see below)",
  },
  {
    key: "redact",
    env: "HOLDFAST_REDACT",
    kind: "switch",
    fallback: false,
    what: "redact anything that looks like a credential before it is written to the journal; the model no longer sees it either",
  },
  {
    key: "pager",
    env: "HOLDFAST_PAGER",
    kind: "text",
    fallback: undefined,
    what: 'pager for "show" on a terminal, as a shell command; "cat" for none (default: PAGER, else less)',
  },
  {
    key: "offlineDelayMs",
    env: "HOLDFAST_OFFLINE_DELAY_MS",
    kind: "number",
    fallback: 15,
    what: "delay before each piece of the offline model's answer, in milliseconds",
  },
  {
    key: "debug",
    env: "HOLDFAST_DEBUG",
    envOnly: true,
    kind: "switch",
    fallback: false,
    what: "print stack traces and internals to standard error",
  },
];

/** The command-line options that commander passes to an action. Unknown ones are ignored. */
export type Flags = Readonly<Record<string, unknown>>;

/** A value and its origin: `--model`, `HOLDFAST_MODEL`, the path of the file, or `default`. */
export interface SettingValue {
  readonly setting: Setting;
  readonly value: Config[keyof Config];
  readonly from: readonly string[];
}

interface ConfigEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: string;
  readonly home: () => string;
}

const here: ConfigEnvironment = { env: process.env, platform: process.platform, home: homedir };

/** Throws CommandError CONFIG_INVALID. */
export function loadConfig(flags: Flags = {}, environment: ConfigEnvironment = here): Config {
  return Object.fromEntries(
    explainConfig(flags, environment).map(({ setting, value }) => [setting.key, value]),
  ) as never;
}

/** Like `loadConfig`, with the origin of each value. */
export function explainConfig(flags: Flags = {}, environment: ConfigEnvironment = here): SettingValue[] {
  const path = configPath(environment);
  const file = path === null ? {} : readConfigFile(path, environment.env["HOLDFAST_CONFIG"] !== undefined);
  return settings.map((setting) => {
    const flag = flags[setting.key];
    const env = setting.env === undefined ? undefined : environment.env[setting.env];
    const given: [value: Config[keyof Config], from: string][] = [];
    const take = (value: unknown, from: string, where: string): void => {
      const right = checkSetting(setting, value, where, environment.platform);
      given.push([setting.key === "store" ? addressOf(String(right), where, from === path, environment) : right, from]);
    };
    if (setting.key in file) take(file[setting.key], path!, `${path}: "${setting.key}"`);
    // Users often unset a variable by making it empty.
    if (env !== undefined && env !== "") take(env, setting.env!, setting.env!);
    if (setting.flag && flag !== undefined) take(flag, setting.flag, setting.flag);
    const last = given.at(-1);
    if (!last) return { setting, value: setting.fallback, from: ["default"] };
    if (setting.kind !== "list") return { setting, value: last[0], from: [last[1]] };
    return { setting, value: given.flatMap(([value]) => value as string[]), from: given.map(([, from]) => from) };
  });
}

/** An address given as an argument, with the same rules as `--store`. Throws CommandError CONFIG_INVALID. */
export function namedStore(given: string, environment: ConfigEnvironment = here): string {
  return addressOf(given, "The address", false, environment);
}

/** Expands `~/`, which a shell may not have seen. The file applies in every folder, so its address must be absolute. */
function addressOf(given: string, where: string, inFile: boolean, { platform, home }: ConfigEnvironment): string {
  const named = readAddress(given);
  if (!named || !("path" in named)) return given;
  const { kind, path } = named;
  if (/^~(?:[/\\]|$)/.test(path)) {
    const found = homeFolder(home);
    if (found === null) throw invalid(`${where} is ${shown(given)}, but this user has no home folder.`);
    return `${kind === "sqlite" ? "sqlite:" : ""}${found}${path.slice(1)}`;
  }
  if (inFile && !(platform === "win32" ? win32 : posix).isAbsolute(path))
    throw invalid(
      `${where} must be an absolute path or start with ~/, not ${shown(given)}: a relative path would mean a different store in each folder.`,
    );
  return given;
}

/** HOLDFAST_CONFIG, else `holdfast/config.json` in the platform's folder; null if that is empty, or without a home. */
export function configPath({ env, platform, home }: ConfigEnvironment = here): string | null {
  if (env["HOLDFAST_CONFIG"] !== undefined) return env["HOLDFAST_CONFIG"] || null;
  const path = platform === "win32" ? win32 : posix;
  const given = env[platform === "win32" ? "APPDATA" : "XDG_CONFIG_HOME"] ?? "";
  if (path.isAbsolute(given)) return path.join(given, "holdfast", "config.json");
  const found = homeFolder(home);
  const rest = platform === "win32" ? ["AppData", "Roaming"] : [".config"];
  return found === null ? null : path.join(found, ...rest, "holdfast", "config.json");
}

/** The rules for projects, beside the configuration file and never in a project. Null without a configuration. */
export function rulesPath(environment: ConfigEnvironment = here): string | null {
  const config = configPath(environment);
  return config === null ? null : join(dirname(resolve(config)), "rules.json");
}

function readConfigFile(path: string, mustBeThere: boolean): Readonly<Record<string, unknown>> {
  let text: string;
  let found: Stats;
  try {
    const file = openSync(path, "r");
    try {
      found = fstatSync(file);
      text = readFileSync(file, "utf8");
    } finally {
      closeSync(file);
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (!mustBeThere && (code === "ENOENT" || code === "ENOTDIR")) return {};
    throw invalid(`The configuration file ${path} could not be read: ${(error as Error).message}.`, error);
  }
  let parsed: unknown;
  try {
    parsed = JSON.parse(text.replace(/^\u{feff}/u, ""));
  } catch (error) {
    throw invalid(`The configuration file ${path} is not valid JSON: ${(error as Error).message}.`, error);
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    throw invalid(`The configuration file ${path} must contain one JSON object.`);
  const known = settings.filter(({ envOnly }) => !envOnly).map(({ key }) => key as string);
  const unknown = Object.keys(parsed).find((key) => !known.includes(key));
  if (unknown !== undefined)
    throw invalid(`${path}: unknown setting "${unknown}". The settings are ${known.join(", ")}.`);
  const program = ["mcpServers", "stores"].find((key) => key in parsed);
  if (program !== undefined) {
    const why = whyOthersDecide(found);
    if (why !== null)
      throw invalid(
        `${path} names programs to run ("${program}"), but it ${why}. Only you may be able to change it: check what it says, then "chown" it or "chmod go-w" it.`,
      );
  }
  return parsed as Record<string, unknown>;
}

/**
 * How someone else could have written this file; null if they could not. Many systems make files writable by a group
 * that has no other member, so the user's own group is not someone else.
 */
function whyOthersDecide({ uid, gid, mode }: Stats): string | null {
  const user = process.getuid?.();
  if (user === undefined) return null;
  const isOwn = uid === user || uid === 0 || (user === 0 && process.env["SUDO_UID"] === String(uid));
  if (!isOwn) return `belongs to another user (${uid})`;
  const isOpen = (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== process.getgid!());
  return isOpen ? "is writable by other users" : null;
}

/** Written by hand: a validation library would take longer to load than everything else here. */
function checkSetting(
  { kind, least = 0 }: Setting,
  given: unknown,
  where: string,
  platform: string,
): Config[keyof Config] {
  switch (kind) {
    case "servers":
      return checkServers(given, where, platform, invalid);
    case "packages":
      return checkPackages(given, where, platform);
    case "text":
      if (typeof given === "string" && given !== "") return given;
      throw invalid(`${where} must be a non-empty string, not ${shown(given)}.`);
    case "url":
      if (typeof given === "string" && /^https?:\/\//i.test(given) && URL.canParse(given)) return given;
      throw invalid(`${where} must be a URL that starts with http:// or https://, not ${shown(given)}.`);
    case "number": {
      const value = typeof given === "string" && /^\d{1,12}$/.test(given.trim()) ? Number(given) : given;
      if (typeof value === "number" && Number.isInteger(value) && value >= least) return value;
      throw invalid(`${where} must be a whole number of at least ${least}, not ${shown(given)}.`);
    }
    case "list": {
      const list = typeof given === "string" ? splitRules(given) : given;
      if (Array.isArray(list) && list.every((one) => typeof one === "string" && one !== "")) return list;
      throw invalid(`${where} must be a list of strings, not ${shown(given)}.`);
    }
    case "switch":
      if (typeof given === "boolean") return given;
      return !["0", "false", "no", "off"].includes(String(given).toLowerCase());
  }
}

function checkPackages(given: unknown, where: string, platform: string): StorePackages {
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw invalid(`${where} must be an object of schemes and packages, not ${shown(given)}.`);
  for (const [scheme, name] of Object.entries(given)) {
    if (readAddress(`${scheme}:x`)?.kind !== "other" || scheme !== scheme.toLowerCase())
      throw invalid(`${where}: ${shown(scheme)} is not a scheme that another package's store can have.`);
    const isPath = typeof name === "string" && (platform === "win32" ? win32 : posix).isAbsolute(name);
    if (!isPath && !(typeof name === "string" && PACKAGE.test(name)))
      throw invalid(
        `${where}: "${scheme}" must be the name of a package or the absolute path of a module, not ${shown(name)}.`,
      );
  }
  return given as StorePackages;
}

const PACKAGE = /^(?:@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*(?:\/[a-z0-9._~-]+)*$/;

/** Splits at commas outside brackets: `read(**), shell(echo a,b)` is two rules. */
function splitRules(text: string): string[] {
  return (text.match(/(?:\([^)]*\)?|[^,(])+/g) ?? []).map((rule) => rule.trim()).filter((rule) => rule !== "");
}

/** Even an invalid address may contain a password. */
function shown(given: unknown): string {
  const text = typeof given === "string" ? shownAddress(given) : given;
  return JSON.stringify(text)?.slice(0, 80) ?? String(text);
}

function invalid(message: string, cause?: unknown): CommandError {
  return new CommandError(EXIT.usage, "CONFIG_INVALID", `${message} Nothing was touched.`, cause);
}

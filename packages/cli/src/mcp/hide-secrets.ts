import { credentials } from "holdfast";
import { shownAddress } from "holdfast/address";
import type { ServerSettings } from "../mcp-settings/server-settings.ts";
import { withoutPasswords } from "../without-passwords.ts";

const SECRET_NAME = /PASS|PWD|SECRET|TOKEN|KEY|COOKIE|CREDENTIAL|AUTH|BEARER|DSN|\bPAT\b/iu;
const HARMLESS_HEADER = /^(?:accept(?:-.+)?|content-type|user-agent|cache-control)$/iu;
/** A shorter text may occur anywhere by chance. */
const CHARS_MIN = 8;
const HIDDEN = "…";

export type Hide = <T>(value: T) => T;

/**
 * Replaces the keys of a server's settings in all texts of a value. A server may print them when it dies or is asked
 * for its environment, and say back what it was sent; and what it says goes into the journal, to the model and to the
 * screen. Everything that leaves a connection passes through this.
 */
export function secretHider(settings: ServerSettings, expanded: (text: string) => string): Hide {
  const secrets = secretsIn(settings, (text) => {
    try {
      return expanded(text);
    } catch {
      // The variable is not set, so the server was not started with it.
      return "";
    }
  });
  const forms = secrets.flatMap(formsOf).filter(({ length }) => length >= CHARS_MIN);
  const longestFirst = [...new Set(forms)].sort((a, b) => b.length - a.length);
  const hidden = (text: string): string => longestFirst.reduce((rest, secret) => rest.replaceAll(secret, HIDDEN), text);
  const hide = (value: unknown): unknown => {
    if (typeof value === "string") return hidden(value);
    if (Array.isArray(value)) return value.map(hide);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [hidden(name), hide(one)]));
  };
  return <T>(value: T): T => (longestFirst.length === 0 ? value : (hide(value) as T));
}

/** The same for a message, which may also repeat an address with a short password. */
export function hideInMessage(hide: Hide, text: string): string {
  return withoutPasswords(hide(text));
}

/** How a server is reached or started, without what may be a key. Variables and headers are left out. */
export type ShownServer = { readonly url: string } | { readonly command: string; readonly args: readonly string[] };

export function shownServer(settings: ServerSettings): ShownServer {
  if ("url" in settings) return { url: shownText(settings.url) };
  const { command, args } = settings;
  const shown = args.map((arg, at) => (isValueOfSecret(args, at) && !isVariable(arg) ? HIDDEN : shownText(arg)));
  return { command: shownText(command), args: shown };
}

function shownText(text: string): string {
  const { name, value } = assigned(text);
  if (name !== null && SECRET_NAME.test(name)) return isVariable(value) ? text : text.slice(0, -value.length) + HIDDEN;
  const address = addressSecrets(text).filter(({ length }) => length >= CHARS_MIN && !isVariable(text));
  const known = address.reduce((rest, secret) => rest.replaceAll(secret, HIDDEN), text);
  return isVariable(known) ? credentials(known) : shownAddress(credentials(known));
}

/** `${NAME}` stands in the file for what is not there. */
function isVariable(text: string): boolean {
  return /\$\{[A-Za-z_]\w*(?::-)?\}/u.test(text);
}

function secretsIn(settings: ServerSettings, expanded: (text: string) => string): string[] {
  if ("url" in settings) {
    const headers = Object.entries(settings.headers).filter(([name]) => !HARMLESS_HEADER.test(name));
    return [...headers.flatMap(([, value]) => words(expanded(value))), ...addressSecrets(expanded(settings.url))];
  }
  const variables = Object.entries(settings.env).flatMap(([name, value]) => {
    const text = expanded(value);
    return SECRET_NAME.test(name) || isKey(text) ? words(text) : addressSecrets(text);
  });
  const args = settings.args.map(expanded);
  const given = args.flatMap((arg, at) => {
    const { name, value } = assigned(arg);
    if (isValueOfSecret(args, at) || isKey(arg)) return words(arg);
    return name !== null && SECRET_NAME.test(name) ? words(value) : addressSecrets(arg);
  });
  return [...variables, ...given];
}

/** What gives itself away, whatever its name: `ghp_…`. */
function isKey(text: string): boolean {
  return credentials(text).startsWith("[redacted:");
}

/** "Bearer <token>", "sid=<id>; …", and user and password of "Basic <base64>". */
function words(text: string): string[] {
  const parts = text.split(/[\s;,]+/u);
  const [, basic = ""] = /^Basic +(\S+)$/iu.exec(text) ?? [];
  const user = Buffer.from(basic, "base64").toString();
  const password = user.includes(":") ? [user, user.slice(user.indexOf(":") + 1)] : [];
  return [text, ...parts, ...parts.map((part) => assigned(part).value), ...password];
}

/** The value of an option like `--api-key`. */
function isValueOfSecret(args: readonly string[], at: number): boolean {
  const before = args[at - 1];
  return before !== undefined && /^--?[\w-]+$/u.test(before) && SECRET_NAME.test(before) && !args[at]!.startsWith("-");
}

/** `--api-key=value`, `NAME=value`, `Name: value`. */
function assigned(text: string): { readonly name: string | null; readonly value: string } {
  const [, name = null, value = ""] = /^(-{0,2}[\w.-]+)(?:=|: +)(.+)$/su.exec(text) ?? [];
  return { name, value };
}

/** What may be a key in an address: user and password, parameters, and parts of the path that look random. */
function addressSecrets(text: string): string[] {
  const [, authority = "", rest = ""] = /^[a-z][a-z0-9+.-]*:\/\/([^/?#\s]*@)?(.*)$/isu.exec(text) ?? [];
  const user = authority.slice(0, -1);
  const password = user.includes(":") ? [user.slice(user.indexOf(":") + 1)] : [];
  const encoded = user === "" ? [] : [user, Buffer.from(decoded(user)).toString("base64")];
  const parts = rest.split(/[/?#&;]/u).slice(1);
  const keys = parts.flatMap((part) => {
    const { name, value } = assigned(part);
    if (name !== null) return SECRET_NAME.test(name) || isRandom(value) ? [value] : [];
    return isRandom(part) ? [part] : [];
  });
  return [...password, ...encoded, ...keys];
}

const RANDOM_MIN = 16;

function isRandom(text: string): boolean {
  return text.length >= RANDOM_MIN && /[0-9]/u.test(text) && /[A-Za-z]/u.test(text) && /^[\w~%+=-]+$/u.test(text);
}

/** As it may be repeated in an address or in JSON. */
function formsOf(secret: string): string[] {
  return [secret, decoded(secret), encodeURIComponent(secret.toWellFormed()), JSON.stringify(secret).slice(1, -1)];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return text;
    throw error;
  }
}

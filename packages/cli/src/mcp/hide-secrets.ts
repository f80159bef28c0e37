import type { ServerSettings } from "../mcp-settings/server-settings.ts";

const SECRET_NAME = /PASS|PWD|SECRET|TOKEN|KEY|COOKIE|CREDENTIAL|AUTH|DSN/iu;
/** A shorter text may occur anywhere by chance. */
const CHARS_MIN = 8;

/**
 * Replaces the keys of a server's settings in all texts of a value. A server may print them when it dies or is asked
 * for its environment, and what it says goes into the journal.
 */
export function secretHider(settings: ServerSettings, expanded: (text: string) => string): <T>(value: T) => T {
  const secrets = secretsIn(settings).flatMap((text) => {
    try {
      const value = expanded(text);
      // "Bearer <token>"
      return [value, ...value.split(" ")].filter(({ length }) => length >= CHARS_MIN);
    } catch {
      // The variable is not set, so the server was not started with it.
      return [];
    }
  });
  const longestFirst = [...new Set(secrets)].sort((a, b) => b.length - a.length);
  const hidden = (text: string): string => longestFirst.reduce((rest, secret) => rest.replaceAll(secret, "…"), text);
  const hide = (value: unknown): unknown => {
    if (typeof value === "string") return hidden(value);
    if (Array.isArray(value)) return value.map(hide);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, hide(one)]));
  };
  return <T>(value: T): T => (longestFirst.length === 0 ? value : (hide(value) as T));
}

function secretsIn(settings: ServerSettings): string[] {
  if ("url" in settings) return Object.values(settings.headers);
  return Object.entries(settings.env).flatMap(([name, value]) => (SECRET_NAME.test(name) ? [value] : []));
}

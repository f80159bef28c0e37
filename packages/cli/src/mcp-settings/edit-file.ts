import { mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { CommandError, EXIT } from "../exit.ts";
import { busyFile, locked, PATIENCE_MS, realFile, replaceFile } from "../shared-file.ts";

type Members = Record<string, unknown>;

/**
 * Changes `mcpServers` in the user's configuration file, and nothing else in it; creates the file if there is none.
 * `change` gets the servers as they are written there. Atomic: another process sees the old file or the new one, and
 * two changes at once both count. Throws CommandError CONFIG_BUSY and CONFIG_INVALID, and what `change` throws.
 */
export function editServers(path: string, change: (servers: Members) => Members): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const real = realFile(path);
  locked(real, PATIENCE_MS, () => {
    const text = existing(real);
    const settings = parse(text, path);
    const { mcpServers = {}, ...rest } = settings;
    if (!isObject(mcpServers)) throw invalid(`${path}: "mcpServers" must be an object.`);
    const servers = change(mcpServers);
    const changed = Object.keys(servers).length === 0 ? rest : { ...settings, mcpServers: servers };
    const indent = /^[{]\s*\n([ \t]+)/.exec(text)?.[1] ?? "  ";
    replaceFile(real, `${JSON.stringify(changed, null, indent)}\n`, () => {
      // An editor takes no lock.
      if (existing(real) !== text) throw busyFile(`${path} was changed by another program just now.`);
    });
  });
}

function existing(path: string): string {
  try {
    return readFileSync(path, "utf8").replace(/^\u{feff}/u, "");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "{}";
    throw error;
  }
}

function parse(text: string, path: string): Members {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw invalid(`The configuration file ${path} is not valid JSON: ${(error as Error).message}.`);
  }
  if (isObject(parsed)) return parsed;
  throw invalid(`The configuration file ${path} must contain one JSON object.`);
}

function isObject(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function invalid(message: string): CommandError {
  return new CommandError(EXIT.usage, "CONFIG_INVALID", `${message} Nothing was changed.`);
}

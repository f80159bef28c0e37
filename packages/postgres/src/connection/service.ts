import { readFile, stat } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { codeOf } from "../failure.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Where `psql` looks for services: `PGSERVICEFILE` or `~/.pg_service.conf`, then `pg_service.conf` in `PGSYSCONFDIR`.
 */
export function serviceFiles(env: Environment): readonly string[] {
  const own = env["PGSERVICEFILE"] ?? join(homedir(), ".pg_service.conf");
  const system = env["PGSYSCONFDIR"];
  return system === undefined ? [own] : [own, join(system, "pg_service.conf")];
}

/** The settings of a service, as `psql` finds them. Null: no file has it. */
export async function readService(name: string, env: Environment): Promise<Map<string, string> | null> {
  for (const path of serviceFiles(env)) {
    const found = parseService(await textOf(path), name);
    if (found) return found;
  }
  return null;
}

/** The lines `name=value` under `[service]`. Pure. */
export function parseService(text: string, service: string): Map<string, string> | null {
  let settings: Map<string, string> | null = null;
  for (const line of text.split(/\r?\n/)) {
    const trimmed = line.trim();
    if (trimmed === "" || trimmed.startsWith("#")) continue;
    if (trimmed.startsWith("[")) {
      if (settings) return settings;
      if (trimmed === `[${service}]`) settings = new Map();
      continue;
    }
    const equals = trimmed.indexOf("=");
    if (settings && equals > 0) settings.set(trimmed.slice(0, equals).trim(), trimmed.slice(equals + 1).trim());
  }
  return settings;
}

/** Empty if the file does not exist or cannot be read: the error for an unknown service says where we looked. */
async function textOf(path: string): Promise<string> {
  try {
    return (await stat(path)).isFile() ? await readFile(path, "utf8") : "";
  } catch (error) {
    if (codeOf(error) !== undefined) return "";
    throw error;
  }
}

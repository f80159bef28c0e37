import {
  closeSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { setTimeout as passed } from "node:timers/promises";
import { CommandError, EXIT } from "../exit.ts";

/** A change takes milliseconds; a file that is older was left by a process that died. */
const STALE_MS = 10_000;
const WAIT_MS_MAX = 3000;
const POLL_MS = 20;

type Members = Record<string, unknown>;

/**
 * Changes `mcpServers` in the user's configuration file, and nothing else in it; creates the file if there is none.
 * `change` gets the servers as they are written there. Atomic: another process sees the old file or the new one, and
 * two changes at once both count. Throws CommandError CONFIG_BUSY and CONFIG_INVALID, and what `change` throws.
 */
export async function editServers(path: string, change: (servers: Members) => Members): Promise<void> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  // Many people keep their configuration elsewhere, and a link to it here.
  const real = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ? realpathSync(path) : path;
  // The new file is also the lock: it becomes the configuration, and so gives up its name, in one step.
  const next = `${real}.new`;
  await create(next);
  try {
    const text = existing(real);
    const settings = parse(text, path);
    const { mcpServers = {}, ...rest } = settings;
    if (!isObject(mcpServers)) throw invalid(`${path}: "mcpServers" must be an object.`);
    const servers = change(mcpServers);
    const changed = Object.keys(servers).length === 0 ? rest : { ...settings, mcpServers: servers };
    const indent = /^[{]\s*\n([ \t]+)/.exec(text)?.[1] ?? "  ";
    const file = openSync(next, "r+");
    try {
      writeFileSync(file, `${JSON.stringify(changed, null, indent)}\n`);
      // Before the rename: after a power cut the configuration must not be empty.
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(next, real);
  } catch (error) {
    rmSync(next, { force: true });
    throw error;
  }
}

/** With a mode for this user only: the settings of a server may contain keys. */
async function create(path: string): Promise<void> {
  const end = Date.now() + WAIT_MS_MAX;
  for (;;) {
    try {
      closeSync(openSync(path, "wx", 0o600));
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    const found = statSync(path, { throwIfNoEntry: false });
    if (found && Date.now() - found.mtimeMs > STALE_MS) rmSync(path, { force: true });
    else if (Date.now() > end)
      throw new CommandError(
        EXIT.busy,
        "CONFIG_BUSY",
        `Another process is changing the configuration: ${path} exists. Nothing was changed. Try again.`,
      );
    else await passed(POLL_MS);
  }
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

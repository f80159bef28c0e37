import { chmodSync, lstatSync, mkdtempSync, openSync, renameSync, rmdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { makeOwnFolder } from "../own-folder.ts";
import { stateFolder } from "../trust/state-folder.ts";

/** The log starts over at this size; the one before it is kept. */
const LOG_BYTES_MAX = 1024 * 1024;

/** What the caller needs to know of sockets. */
export interface SocketRoom {
  readonly nameChars: number;
  readonly pathBytesMax: number;
}

/**
 * A folder for the sockets of this user's supervisors, which nobody else can open: the first of these that is this
 * user's and whose path is short enough for a socket. If another user holds them all, a new folder with a random name:
 * then an agent cannot be found again by a later editor, and nothing else changes.
 */
export function socketFolder(
  { nameChars, pathBytesMax }: SocketRoom,
  env: Readonly<Record<string, string | undefined>> = process.env,
): string {
  const runtime = env["XDG_RUNTIME_DIR"] ?? "";
  const state = stateFolder();
  const user = process.getuid?.() ?? 0;
  const candidates: (readonly [root: string, ...names: string[]])[] = [
    ...(isAbsolute(runtime) ? [[runtime, "holdfast"] as const] : []),
    ...(state === null ? [] : [[state, "holdfast", "run"] as const]),
    [tmpdir(), `holdfast-${user}`],
    ["/tmp", `holdfast-${user}`],
  ];
  for (const [root, ...names] of candidates) {
    if (Buffer.byteLength(join(root, ...names)) + nameChars > pathBytesMax) continue;
    const folder = privateFolder(root, names);
    if (folder !== null && Buffer.byteLength(folder) + nameChars <= pathBytesMax) return folder;
  }
  return mkdtempSync("/tmp/holdfast-");
}

function privateFolder(root: string, names: readonly string[]): string | null {
  try {
    const folder = makeOwnFolder(root, names);
    if (process.getuid && (lstatSync(folder).mode & 0o077) !== 0) chmodSync(folder, 0o700);
    return folder;
  } catch {
    // It is another user's, a link, or cannot be made: the next one.
    return null;
  }
}

/** Removes the folder if it was made for one supervisor alone. */
export function removeRandomFolder(socket: string): void {
  const folder = dirname(socket);
  if (!/^\/tmp\/holdfast-\w{6}$/.test(folder) || /-\d+$/.test(folder)) return;
  try {
    rmdirSync(folder);
  } catch {
    // Something else is in it by now.
  }
}

/** Where supervisors log; null if the user has no home. */
export function logPath(): string | null {
  const state = stateFolder();
  return state === null ? null : join(state, "holdfast", "wrap.log");
}

/** The log, open for writing; null if it cannot be opened: an agent is not kept from starting for that. */
export function openLog(): number | null {
  const path = logPath();
  if (path === null) return null;
  try {
    makeOwnFolder(dirname(dirname(path)), ["holdfast"]);
    const found = statSync(path, { throwIfNoEntry: false });
    if (found && found.size > LOG_BYTES_MAX) renameSync(path, `${path}.1`);
    return openSync(path, "a", 0o600);
  } catch {
    return null;
  }
}

import { createHash } from "node:crypto";
import { type Dirent, lstatSync, lutimesSync, readdirSync, rmSync } from "node:fs";
import { basename, dirname, isAbsolute, join } from "node:path";
import { homeFolder } from "../home.ts";
import { findOwnFolder, makeOwnFolder } from "../own-folder.ts";
import { isInMemory, onDisk } from "./address.ts";

const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** A user-given folder, and names below it that must be real folders only this user can write to. */
interface OutputFolder {
  readonly root: string;
  readonly names: readonly string[];
}

/**
 * Where full tool outputs are kept (the journal has what the model saw): beside the store, one folder per session. Null
 * if the store is in memory, or is a remote database and the user has no home. `storeUrl` is `store.url`. The folder
 * need not exist.
 */
export function outputsFolder(
  storeUrl: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
): string | null {
  const place = placeOf(storeUrl, env);
  return place && join(place.root, ...place.names);
}

function placeOf(
  storeUrl: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
): OutputFolder | null {
  const place = onDisk(storeUrl);
  if (place?.kind === "sqlite") return { root: dirname(place.path), names: [`${basename(place.path)}.outputs`] };
  if (place) return { root: place.path, names: ["outputs"] };
  if (isInMemory(storeUrl)) return null;
  // A remote database: keep outputs with this user's data, separate from other databases'. The address may contain a
  // password, so the folder's name is a digest.
  const given = env["XDG_DATA_HOME"] ?? "";
  const home = homeFolder();
  const root = isAbsolute(given) ? given : home && join(home, ".local", "share");
  const digest = createHash("sha256").update(storeUrl).digest("hex").slice(0, 16);
  return root === null ? null : { root, names: ["holdfast-outputs", digest] };
}

/**
 * The real path of a session's outputs folder, created if missing, writable only by this user. Null as for
 * `outputsFolder`. Throws CommandError PATH_UNSAFE if it or a folder above it is a link or another user's.
 */
export function sessionOutputs(storeUrl: string, session: string): string | null {
  const place = placeOf(storeUrl);
  if (place === null) return null;
  if (!ID.test(session)) throw new Error(`not an id of a session: ${JSON.stringify(session.slice(0, 60))}`);
  return makeOwnFolder(place.root, [...place.names, session]);
}

/** The same if it is there, and only this user can write to it. Creates nothing. */
export function existingOutputs(storeUrl: string, session: string): string | null {
  const place = placeOf(storeUrl);
  const own = place && ID.test(session) ? findOwnFolder(place.root, [...place.names, session]) : null;
  return typeof own === "string" ? own : null;
}

/** Called when a session goes to the trash: its outputs stay as long as it does. */
export function touchOutputs(storeUrl: string, session: string, now: Date = new Date()): void {
  const own = existingOutputs(storeUrl, session);
  if (own !== null) lutimesSync(own, now, now);
}

export interface Sweep {
  readonly isThere: (session: string) => Promise<boolean>;
  /** Sessions deleted for good. */
  readonly removed: ReadonlySet<string>;
  /**
   * In milliseconds. Outputs of other missing sessions are removed if their folder is unchanged since then: a session
   * in the trash can still be restored.
   */
  readonly before: number;
}

export interface SweepResult {
  readonly sessions: number;
  readonly bytes: number;
  /** What was skipped because it is a link or another user's, in words. */
  readonly refused: readonly string[];
}

/**
 * Removes the outputs of deleted sessions. Only touches real folders that only this user can write to, never the target
 * of a link.
 */
export async function sweepOutputs(storeUrl: string, { isThere, removed, before }: Sweep): Promise<SweepResult> {
  const place = placeOf(storeUrl);
  const all = place && findOwnFolder(place.root, place.names);
  if (all === null) return { sessions: 0, bytes: 0, refused: [] };
  if (typeof all !== "string") return { sessions: 0, bytes: 0, refused: [all.why] };
  const refused: string[] = [];
  let sessions = 0;
  let bytes = 0;
  for (const name of readdirSync(all)) {
    if (!ID.test(name) || (await isThere(name))) continue;
    // Check again from the root, right before deleting.
    const own = findOwnFolder(place!.root, [...place!.names, name]);
    if (own === null) continue;
    if (typeof own !== "string") {
      refused.push(own.why);
      continue;
    }
    if (!removed.has(name) && lstatSync(own).mtimeMs > before) continue;
    bytes += sizeOf(own);
    rmSync(own, { recursive: true, force: true });
    sessions++;
  }
  return { sessions, bytes, refused };
}

/** Does not follow links. */
function sizeOf(folder: string): number {
  const size = (entry: Dirent): number => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? sizeOf(path) : (lstatSync(path, { throwIfNoEntry: false })?.size ?? 0);
  };
  return readdirSync(folder, { withFileTypes: true }).reduce((sum, entry) => sum + size(entry), 0);
}

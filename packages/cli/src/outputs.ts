import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { homeFolder } from "./home.ts";
import { onDisk } from "./store/address.ts";

const ID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * Where the whole outputs of tools are kept, of which the journal has what the model saw: beside the store, a folder for each session. Null if the store is gone with its process, or is elsewhere and this user has no home. `storeUrl` is `store.url`.
 * It need not exist.
 */
export function outputsFolder(
  storeUrl: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
): string | null {
  const place = onDisk(storeUrl);
  if (place) return place.kind === "sqlite" ? `${place.path}.outputs` : join(place.path, "outputs");
  if (/^memory:/i.test(storeUrl)) return null;
  // A database elsewhere: its outputs are this user's, and apart from those of other databases. The address may hold a password, so only its digest becomes a name.
  const given = env["XDG_DATA_HOME"] ?? "";
  const home = homeFolder();
  const data = isAbsolute(given) ? given : home && join(home, ".local", "share");
  return data && join(data, "holdfast-outputs", createHash("sha256").update(storeUrl).digest("hex").slice(0, 16));
}

/** The folder of a session's outputs, made if it is not there: for this user alone. Null as for `outputsFolder`. */
export function sessionOutputs(storeUrl: string, session: string): string | null {
  const folder = outputsFolder(storeUrl);
  if (folder === null) return null;
  if (!ID.test(session)) throw new Error(`not an id of a session: ${JSON.stringify(session.slice(0, 60))}`);
  const own = join(folder, session);
  mkdirSync(own, { recursive: true, mode: 0o700 });
  return own;
}

/** A session goes to the trash: its outputs are to stay as long as it does there. */
export function touchOutputs(storeUrl: string, session: string, now: Date = new Date()): void {
  const folder = outputsFolder(storeUrl);
  const own = folder === null ? null : join(folder, session);
  if (own !== null && existsSync(own)) utimesSync(own, now, now);
}

export interface Sweep {
  readonly isThere: (session: string) => Promise<boolean>;
  /** Sessions that are known to be gone for good. */
  readonly removed: ReadonlySet<string>;
  /** Outputs of other sessions that are not there go if their folder has not changed since: a session in the trash can still be brought back. In milliseconds. */
  readonly before: number;
}

/** Removes the outputs of sessions that are gone. */
export async function sweepOutputs(
  storeUrl: string,
  { isThere, removed, before }: Sweep,
): Promise<{ readonly sessions: number; readonly bytes: number }> {
  const folder = outputsFolder(storeUrl);
  let sessions = 0;
  let bytes = 0;
  for (const name of folder === null ? [] : namesIn(folder)) {
    const own = join(folder!, name);
    if (!ID.test(name) || (await isThere(name))) continue;
    if (!removed.has(name) && (statSync(own, { throwIfNoEntry: false })?.mtimeMs ?? 0) > before) continue;
    bytes += sizeOf(own);
    rmSync(own, { recursive: true, force: true });
    sessions++;
  }
  return { sessions, bytes };
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

function sizeOf(folder: string): number {
  let bytes = 0;
  for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    bytes += statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0;
  }
  return bytes;
}

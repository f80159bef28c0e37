import { createHash } from "node:crypto";
import { realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { posix, win32 } from "node:path";
import { homeFolder } from "../home.ts";
import { onDisk } from "../store/address.ts";

export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: string;
  readonly home: () => string;
}

export const here: Surroundings = { env: process.env, platform: process.platform, home: homedir };

/** Where the platform keeps what programs remember of a user; null if the user has no home. */
export function stateFolder({ env, platform, home }: Surroundings = here): string | null {
  const path = platform === "win32" ? win32 : posix;
  const given = env[platform === "win32" ? "LOCALAPPDATA" : "XDG_STATE_HOME"] ?? "";
  if (path.isAbsolute(given)) return given;
  const found = homeFolder(home);
  const rest = platform === "win32" ? ["AppData", "Local"] : [".local", "state"];
  return found === null ? null : path.join(found, ...rest);
}

/**
 * Tells this store apart from every other, also from one that is put in its place: of one on the disk, its real path
 * and its inode. (Not the device: its
 * number may change with every mount, and the user would lose what they allowed.) Of a database, its address without
 * the password. Null if the store is gone with its process. `storeUrl` is `store.url`.
 */
export function storeIdentity(storeUrl: string): string | null {
  if (/^memory:/i.test(storeUrl)) return null;
  const place = onDisk(storeUrl);
  if (!place) return digest(["database", withoutPassword(storeUrl)]);
  const path = realpathSync(place.path);
  return digest(["disk", place.kind, path, String(statSync(path, { bigint: true }).ino)]);
}

/** A digest of it would let others try passwords out; and a new password makes no other database. */
function withoutPassword(address: string): string {
  const url = URL.parse(address);
  if (!url) return address;
  url.password = "";
  for (const name of [...url.searchParams.keys()])
    if (/pass|secret|token|key/i.test(name)) url.searchParams.delete(name);
  url.searchParams.sort();
  return url.href;
}

function digest(facts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 32);
}

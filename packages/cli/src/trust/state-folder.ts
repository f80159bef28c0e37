import { createHash } from "node:crypto";
import { realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { posix, win32 } from "node:path";
import { shownAddress } from "holdfast/address";
import { homeFolder } from "../home.ts";
import { isInMemory, onDisk } from "../store/address.ts";

export interface UserEnvironment {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: string;
  readonly home: () => string;
}

export const here: UserEnvironment = { env: process.env, platform: process.platform, home: homedir };

/** The platform's folder for program state; null if the user has no home. */
export function stateFolder({ env, platform, home }: UserEnvironment = here): string | null {
  const path = platform === "win32" ? win32 : posix;
  const given = env[platform === "win32" ? "LOCALAPPDATA" : "XDG_STATE_HOME"] ?? "";
  if (path.isAbsolute(given)) return given;
  const found = homeFolder(home);
  const rest = platform === "win32" ? ["AppData", "Local"] : [".local", "state"];
  return found === null ? null : path.join(found, ...rest);
}

/**
 * Identifies this store, even against one put in its place. On disk: real path and inode, but not the device, whose
 * number may change with every mount, so that users would lose what they allowed. For a database: the address without
 * the password. Null for a store in memory. `storeUrl` is `store.url`.
 */
export function storeIdentity(storeUrl: string): string | null {
  if (isInMemory(storeUrl)) return null;
  const place = onDisk(storeUrl);
  if (!place) return digest(["database", withoutPassword(storeUrl)]);
  const path = realpathSync(place.path);
  return digest(["disk", place.kind, path, String(statSync(path, { bigint: true }).ino)]);
}

/** A digest of the password would let others guess it; and a new password does not mean a different database. */
function withoutPassword(address: string): string {
  const url = URL.parse(address);
  // What is shown hides too much rather than too little: two databases can look alike.
  if (!url) return shownAddress(address);
  url.password = "";
  const isSecret = (name: string): boolean => shownAddress(`?${encodeURIComponent(name)}=x`).endsWith("…");
  for (const name of [...url.searchParams.keys()]) if (isSecret(name)) url.searchParams.delete(name);
  url.searchParams.sort();
  return url.href;
}

function digest(facts: readonly string[]): string {
  return createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 32);
}

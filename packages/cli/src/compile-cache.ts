import { lstatSync, mkdirSync, statSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { dirname, join } from "node:path";
import { makeOwnFolder, whyNotOwn } from "./own-folder.ts";

/**
 * Makes Node cache compiled code, which cuts startup time by a fifth. Node runs what it finds in the cache, so it is in
 * a folder that nobody else can write to, whatever the umask; Node's default is the temporary folder. If there can be
 * no such folder, there is no cache, and no error.
 */
export function keepCompiled({ env, platform }: Pick<NodeJS.Process, "env" | "platform">): void {
  const home = env["HOME"] || env["USERPROFILE"];
  // A relative home would create a cache in every folder.
  if (env["NODE_COMPILE_CACHE"] || !home || !/^(?:[a-z]:)?[\\/]/i.test(home)) return;
  const caches =
    platform === "win32"
      ? env["LOCALAPPDATA"] || `${home}/AppData/Local`
      : platform === "darwin"
        ? `${home}/Library/Caches`
        : env["XDG_CACHE_HOME"]?.startsWith("/")
          ? env["XDG_CACHE_HOME"]
          : `${home}/.cache`;
  const folder = cacheFolder(caches);
  if (folder !== null) enableCompileCache(folder);
}

function cacheFolder(caches: string): string | null {
  try {
    const own = makeOwnFolder(caches, ["holdfast"]);
    // Earlier versions kept it in "compiled", with the permissions of the umask: others may have written there.
    const folder = join(own, "code");
    if (!lstatSync(folder, { throwIfNoEntry: false })) mkdirSync(folder, { mode: 0o700 });
    const found = lstatSync(folder);
    // Node makes folders of its own in it, as open as the umask says.
    const isClosed = !process.getuid || (found.mode & 0o077) === 0;
    return isClosed && whyNotOwn(found) === null && isSafeBelow(own) ? folder : null;
  } catch (error) {
    // Not writable, another user's, or just made by another process: not worth an error.
    if (error instanceof Error) return null;
    throw error;
  }
}

/** Whether no other user can move this folder away and put another one in its place. */
function isSafeBelow(folder: string): boolean {
  const user = process.getuid?.();
  if (user === undefined) return true;
  // In a container, the system's own folders may not belong to user 0.
  const trusted = [user, 0, statSync("/").uid];
  for (let path = folder; path !== dirname(path); path = dirname(path)) {
    const { uid, mode } = statSync(dirname(path));
    const isSticky = (mode & 0o1000) !== 0;
    if (!trusted.includes(uid) || ((mode & 0o022) !== 0 && !isSticky)) return false;
  }
  return true;
}

import { posix, win32 } from "node:path";
import { HoldfastError } from "../errors.ts";

/**
 * The default store: HOLDFAST_STORE, or else a folder in the user's data directory (XDG on Linux and similar systems,
 * Application Support on macOS, LOCALAPPDATA on Windows). Throws STORE_URL_INVALID if the user has no home. `home` is
 * called only if needed: `os.homedir` throws where there is none.
 */
export function defaultAddress(
  env: Readonly<Record<string, string | undefined>>,
  platform: string,
  home: () => string,
): string {
  if (env["HOLDFAST_STORE"]) return env["HOLDFAST_STORE"];
  const path = platform === "win32" ? win32 : posix;
  const given = env[platform === "win32" ? "LOCALAPPDATA" : "XDG_DATA_HOME"] ?? "";
  switch (platform) {
    case "darwin":
      return path.join(homeFolder(home, path.isAbsolute), "Library", "Application Support", "Holdfast");
    case "win32":
      if (path.isAbsolute(given)) return path.join(given, "Holdfast");
      return path.join(homeFolder(home, path.isAbsolute), "AppData", "Local", "Holdfast");
    default:
      // XDG Base Directory Specification: a relative path is invalid and must be ignored.
      if (path.isAbsolute(given)) return path.join(given, "holdfast");
      return path.join(homeFolder(home, path.isAbsolute), ".local", "share", "holdfast");
  }
}

function homeFolder(home: () => string, isAbsolute: (path: string) => boolean): string {
  let found = "";
  let cause: unknown;
  try {
    found = home();
  } catch (error) {
    cause = error;
  }
  if (isAbsolute(found)) return found;
  const message =
    "No store was opened: none was named, and this user has no home folder to keep one in. Nothing was touched. " +
    'Set HOLDFAST_STORE to a folder, to "sqlite:" and a file, or to "memory:", or pass such an address.';
  throw new HoldfastError("STORE_URL_INVALID", message, { address: "", home: found.slice(0, 80) }, cause);
}

import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { CommandError, EXIT } from "../exit.ts";
import { homeFolder } from "../home.ts";
import { busyFile, locked, PATIENCE_MS, realFile, replaceFile } from "../shared-file.ts";

export type Editor = "zed" | "jetbrains";

/** No settings are longer than this. */
const BYTES_MAX = 4 * 1024 * 1024;
const BOM = "\u{feff}";

/** The editor's settings file, which may not exist. Throws CommandError USAGE if there is no home folder. */
export function settingsPath(
  editor: Editor,
  env: NodeJS.ProcessEnv = process.env,
  platform: NodeJS.Platform = process.platform,
  home: string | null = homeFolder(),
): string {
  if (home === null)
    throw new CommandError(
      EXIT.usage,
      "USAGE",
      "There is no home folder. Name the settings file with --file. Nothing was touched.",
    );
  if (editor === "jetbrains") return join(home, ".jetbrains", "acp.json");
  if (platform === "win32") return join(env["APPDATA"] || join(home, "AppData", "Roaming"), "Zed", "settings.json");
  if (platform === "darwin") return join(home, ".config", "zed", "settings.json");
  const usual = join(env["XDG_CONFIG_HOME"] || join(home, ".config"), "zed", "settings.json");
  const flatpak = join(home, ".var", "app", "dev.zed.Zed", "config", "zed", "settings.json");
  return !existsSync(usual) && existsSync(flatpak) ? flatpak : usual;
}

export interface SettingsFile {
  /** The file itself, if the name was a link. */
  readonly path: string;
  /** Empty if there is no file. */
  readonly text: string;
  readonly mode: number | null;
}

/** Throws CommandError CONFIG_INVALID and PATH_UNSAFE, and system errors. */
export function readSettings(named: string): SettingsFile {
  const path = realPath(named);
  let file: number;
  try {
    // Without waiting for a writer, if it is a pipe.
    file = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return { path, text: "", mode: null };
    throw error;
  }
  try {
    const found = fstatSync(file);
    const user = process.getuid?.();
    if (!found.isFile()) throw unsafe(path, "is not a regular file");
    if (user !== undefined && found.uid !== user) throw unsafe(path, `belongs to another user (${found.uid})`);
    if (found.size > BYTES_MAX) throw unsafe(path, `has ${found.size} bytes, which no settings file has`);
    const bytes = readFileSync(file);
    const text = bytes.toString("utf8");
    if (!Buffer.from(text).equals(bytes))
      throw new CommandError(EXIT.usage, "CONFIG_INVALID", `${path} is not UTF-8 text. Nothing was changed.`);
    return { path, text, mode: found.mode & 0o777 };
  } finally {
    closeSync(file);
  }
}

function realPath(named: string): string {
  try {
    return realFile(named);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT")
      throw unsafe(named, "is a link to a file that does not exist");
    throw error;
  }
}

/** What an editor puts in front of the text is no part of it. */
export function splitMark(text: string): { readonly mark: string; readonly body: string } {
  return text.startsWith(BOM) ? { mark: BOM, body: text.slice(BOM.length) } : { mark: "", body: text };
}

/**
 * Replaces the file as a whole, and keeps a copy of it beside it. Returns the copy's path; null if there was no file.
 * Throws CommandError CONFIG_BUSY if it has changed since it was read.
 */
export function writeSettings({ path, text: before, mode }: SettingsFile, text: string, now: Date): string | null {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  let backup: string | null = null;
  locked(path, PATIENCE_MS, () => {
    const assertSame = (): void => {
      // An editor takes no lock.
      if (readSettings(path).text !== before) throw busyFile(`${path} was changed by another program just now.`);
    };
    assertSame();
    if (mode !== null) backup = keepCopy(path, before, mode, now);
    replaceFile(path, text, assertSame);
    if (mode !== null && (statSync(path).mode & 0o777) !== mode) chmodSync(path, mode);
  });
  return backup;
}

function keepCopy(path: string, text: string, mode: number, now: Date): string {
  const stamp = now.toISOString().slice(0, 19).replaceAll(":", "-");
  for (let n = 1; ; n++) {
    const copy = `${path}.${stamp}${n === 1 ? "" : `-${n}`}.bak`;
    try {
      writeFileSync(copy, text, { flag: "wx", mode });
      return copy;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
  }
}

function unsafe(path: string, why: string): CommandError {
  return new CommandError(EXIT.store, "PATH_UNSAFE", `${path} ${why}. Nothing was changed.`);
}

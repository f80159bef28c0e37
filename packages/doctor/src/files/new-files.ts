import { randomBytes } from "node:crypto";
import { closeSync, constants, fsyncSync, linkSync, mkdirSync, openSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { Refused } from "./door.ts";

export interface GivenFile {
  readonly path: string;
  readonly text: string;
  /** If it is there already, it stays as it is, and that is well. */
  readonly mayExist?: boolean;
}

/**
 * Writes files that are not there yet, each whole or not at all, for this user only; all of them, or none. Never
 * replaces anything. Throws `Refused`.
 */
export function writeNewFiles(files: readonly GivenFile[]): void {
  const written: string[] = [];
  try {
    for (const { path, text, mayExist = false } of files) if (writeNew(path, text, mayExist)) written.push(path);
  } catch (error) {
    for (const path of written) rmSync(path, { force: true });
    throw error;
  }
}

function writeNew(path: string, text: string, mayExist: boolean): boolean {
  const folder = dirname(path);
  const temporary = join(folder, `.${basename(path).slice(0, 100)}.${randomBytes(6).toString("hex")}.tmp`);
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const file = openSync(temporary, "wx", 0o600);
    try {
      writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    // Unlike a rename, a link never replaces.
    linkSync(temporary, path);
    syncFolder(folder);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST" && mayExist) return false;
    const words = code === "EEXIST" ? "it is there already" : error instanceof Error ? error.message : String(error);
    throw new Refused(path, words, error);
  } finally {
    rmSync(temporary, { force: true });
  }
}

function syncFolder(folder: string): void {
  const descriptor = openSync(folder, constants.O_RDONLY);
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

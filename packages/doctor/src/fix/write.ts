import { randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmdirSync,
  rmSync,
  unlinkSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { Edit } from "../contract/plan.ts";
import { Refused } from "../files/door.ts";

const CHUNK_BYTES = 2 ** 20;
const TEMPORARY = /^\.holdfast-(\d+)-[0-9a-f]+\.tmp$/;

/** New content of a file, written beside its place and not yet in it. */
export interface Draft {
  readonly path: string;
  readonly temporary: string;
  /** There is no file in its place yet. */
  readonly isNew: boolean;
}

interface FileAttributes {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly atime?: Date;
  readonly mtime?: Date;
}

/** Writes the file with its edits to a hidden file beside it, with the mode, owner and times of the old one. */
export function draftEdits(path: string, size: number, edits: readonly Edit[]): Draft {
  const source = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  try {
    return draft(path, lstatSync(path), (write) => {
      let at = 0;
      for (const { offset, length, bytes } of edits) {
        copy(source, at, offset, write);
        write(bytes);
        at = offset + length;
      }
      copy(source, at, size, write);
    });
  } finally {
    closeSync(source);
  }
}

/** The same with the content of another file. */
export function draftCopy(path: string, from: string): Draft {
  const other = openSync(from, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  try {
    return draft(path, lstatSync(path), (write) => copy(other, 0, Number.POSITIVE_INFINITY, write));
  } finally {
    closeSync(other);
  }
}

/** A file that is not there yet, in a folder that is. It belongs to the owner of the folder. */
export function draftNew(path: string, bytes: Uint8Array, mode: number): Draft {
  if (isThere(path)) throw new Refused(path, "there is a file in this place already");
  const { uid, gid } = lstatSync(dirname(path));
  return { ...draft(path, { mode, uid, gid }, (write) => write(bytes)), isNew: true };
}

/** Puts the draft in its place: at once, or not at all. Of a new file, only if the place is still free. */
export function publish({ path, temporary, isNew }: Draft): void {
  if (isNew) {
    linkSync(temporary, path);
    unlinkSync(temporary);
  } else renameSync(temporary, path);
  syncFolder(dirname(path));
}

export function discard({ temporary }: Draft): void {
  rmSync(temporary, { force: true });
}

/** Removes what a doctor left in a folder that was killed while it wrote. */
export function removeLeftovers(folder: string): void {
  for (const name of readdirSync(folder)) {
    const writer = TEMPORARY.exec(name)?.[1];
    if (writer !== undefined && !isAlive(Number(writer))) rmSync(join(folder, name), { force: true });
  }
}

/** Moves a file or a folder to a place that is free, in a folder that is there. */
export function move(path: string, to: string): void {
  if (isThere(to)) throw new Refused(to, "there is something in this place already");
  renameSync(path, to);
  syncFolder(dirname(to));
  syncFolder(dirname(path));
}

/** Makes a folder and those above it, like the nearest one that is there; returns what it made, the innermost last. */
export function makeFolders(folder: string): string[] {
  if (isThere(folder)) return [];
  const made = makeFolders(dirname(folder));
  try {
    const above = lstatSync(dirname(folder));
    mkdirSync(folder);
    made.push(folder);
    if (process.geteuid?.() === 0) chownSync(folder, above.uid, above.gid);
    chmodSync(folder, above.mode & 0o777);
    syncFolder(dirname(folder));
    return made;
  } catch (error) {
    removeFolders(made);
    throw error;
  }
}

/** Removes the folders again that hold nothing. */
export function removeFolders(folders: readonly string[]): void {
  for (const folder of folders.toReversed()) {
    if (!isThere(folder) || readdirSync(folder).length > 0) return;
    rmdirSync(folder);
  }
}

export function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

function draft(path: string, like: FileAttributes, fill: (write: (bytes: Uint8Array) => void) => void): Draft {
  const name = `.holdfast-${process.pid}-${randomBytes(6).toString("hex")}.tmp`;
  const temporary = join(dirname(path), name);
  try {
    const target = openSync(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
    try {
      fill((bytes) => writeAll(target, bytes));
      if (process.geteuid?.() === 0) fchownSync(target, like.uid, like.gid);
      fchmodSync(target, like.mode & 0o7777);
      fsyncSync(target);
    } finally {
      closeSync(target);
    }
    // Agents list their sessions by this time: a repaired one stays in its place.
    if (like.atime && like.mtime) utimesSync(temporary, like.atime, like.mtime);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  return { path, temporary, isNew: false };
}

function copy(source: number, from: number, to: number, write: (bytes: Uint8Array) => void): void {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  for (let at = from; at < to; ) {
    const count = readSync(source, buffer, 0, Math.min(CHUNK_BYTES, to - at), at);
    if (count === 0) {
      if (to === Number.POSITIVE_INFINITY) return;
      throw new Error("the file was cut off while it was read");
    }
    write(buffer.subarray(0, count));
    at += count;
  }
}

function writeAll(target: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(target, bytes, at);
}

/** A rename is durable when its folder is. */
export function syncFolder(folder: string): void {
  syncFile(folder);
}

export function syncFile(path: string): void {
  const descriptor = openSync(path, constants.O_RDONLY);
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

export function setMode(path: string, mode: number): void {
  chmodSync(path, mode);
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

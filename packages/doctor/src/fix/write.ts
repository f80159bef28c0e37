import { randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fsyncSync,
  lstatSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { Edit } from "../contract/plan.ts";

const CHUNK_BYTES = 2 ** 20;

/** New content of a file that exists, written beside it and not yet in its place. */
export interface Draft {
  readonly path: string;
  readonly temporary: string;
}

/** Writes the file with its edits to a hidden file beside it, with the mode, owner and times of the old one. */
export function draftEdits(path: string, size: number, edits: readonly Edit[]): Draft {
  return draft(path, (write, source) => {
    let at = 0;
    for (const { offset, length, bytes } of edits) {
      copy(source, at, offset, write);
      write(bytes);
      at = offset + length;
    }
    copy(source, at, size, write);
  });
}

/** The same with the content of another file. */
export function draftCopy(path: string, from: string): Draft {
  const other = openSync(from, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  try {
    return draft(path, (write) => copy(other, 0, Number.POSITIVE_INFINITY, write));
  } finally {
    closeSync(other);
  }
}

/** Puts the draft in the place of the file: at once, or not at all. */
export function publish({ path, temporary }: Draft): void {
  renameSync(temporary, path);
  syncFolder(dirname(path));
}

export function discard({ temporary }: Draft): void {
  rmSync(temporary, { force: true });
}

type Write = (bytes: Uint8Array) => void;

function draft(path: string, fill: (write: Write, source: number) => void): Draft {
  const stat = lstatSync(path);
  const temporary = join(dirname(path), `.holdfast-${randomBytes(6).toString("hex")}.tmp`);
  const source = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  try {
    const target = openSync(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
    try {
      fill((bytes) => writeAll(target, bytes), source);
      if (process.geteuid?.() === 0) fchownSync(target, stat.uid, stat.gid);
      fchmodSync(target, stat.mode & 0o7777);
      fsyncSync(target);
    } finally {
      closeSync(target);
    }
    // Agents list their sessions by this time: a repaired one stays in its place.
    utimesSync(temporary, stat.atime, stat.mtime);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  } finally {
    closeSync(source);
  }
  return { path, temporary };
}

function copy(source: number, from: number, to: number, write: Write): void {
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
  const descriptor = openSync(folder, constants.O_RDONLY);
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

export function setMode(path: string, mode: number): void {
  chmodSync(path, mode);
}

/** Writes a new file for this user; fails if there is one. */
export function create(path: string, bytes: Uint8Array, mode: number, owner?: { uid: number; gid: number }): void {
  const target = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, mode);
  try {
    writeAll(target, bytes);
    fsyncSync(target);
  } finally {
    closeSync(target);
  }
  if (owner && process.geteuid?.() === 0) chownSync(path, owner.uid, owner.gid);
  syncFolder(dirname(path));
}

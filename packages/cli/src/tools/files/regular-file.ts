import { Buffer } from "node:buffer";
import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";

/**
 * Opening must not wait for the other end of a pipe that has come into the place of the file just now, nor follow a
 * link that has.
 */
const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0);
const CHUNK_BYTES = 256 * 1024;

/** A folder, a device, a pipe or a socket. Looked at before it is opened: to open some devices has effects. */
function assertRegular(found: Stats, shown: string): void {
  if (found.isDirectory()) throw Object.assign(new Error("is a folder"), { code: "EISDIR" });
  if (!found.isFile()) throw new Error(`${shown} is not a regular file but a device, pipe or socket. It was not read.`);
}

export async function openRegular(path: string, shown: string): Promise<FileHandle> {
  assertRegular(await stat(path), shown);
  const file = await open(path, FLAGS);
  try {
    assertRegular(await file.stat(), shown);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

/**
 * All of a file; null if it is longer than this, whatever its size is said to be: files of the kernel have none, and
 * some have no end.
 */
export async function readWhole(path: string, shown: string, bytesMax: number): Promise<Buffer | null> {
  const file = await openRegular(path, shown);
  try {
    const chunks: Buffer[] = [];
    for (let length = 0; ; ) {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES);
      if (bytesRead === 0) return Buffer.concat(chunks, length);
      length += bytesRead;
      if (length > bytesMax) return null;
      chunks.push(buffer.subarray(0, bytesRead));
    }
  } finally {
    await file.close();
  }
}

/** The same inside the call, for a thread; null also if it is no file, or `isRefused`. Throws what the system says. */
export function readWholeSync(path: string, bytesMax: number, isRefused: (found: Stats) => boolean): Buffer | null {
  const before = statSync(path);
  if (!before.isFile() || before.size > bytesMax || isRefused(before)) return null;
  const file = openSync(path, FLAGS);
  try {
    if (!fstatSync(file).isFile()) return null;
    const bytes = Buffer.allocUnsafe(Math.min(bytesMax, Math.max(before.size, CHUNK_BYTES)) + 1);
    const chunks: Buffer[] = [];
    for (let length = 0; ; ) {
      const count = readSync(file, bytes, 0, Math.min(bytes.length, bytesMax + 1 - length), null);
      if (count === 0) return Buffer.concat(chunks, length);
      length += count;
      if (length > bytesMax) return null;
      chunks.push(Buffer.from(bytes.subarray(0, count)));
    }
  } finally {
    closeSync(file);
  }
}

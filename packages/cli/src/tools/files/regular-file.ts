import { Buffer } from "node:buffer";
import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";

/** If the file has just been replaced, opening must not block on a pipe or follow a link. */
const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | (constants.O_NOFOLLOW ?? 0);
const CHUNK_BYTES = 256 * 1024;

/** Refuses a folder, device, pipe or socket. Checked before opening too, because opening some devices has effects. */
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
 * Reads a whole file; null if it is longer than `bytesMax`. Ignores the reported size: kernel files report none, and
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

/** The synchronous version, for a worker thread. Also null if it is not a file or is refused. Throws system errors. */
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

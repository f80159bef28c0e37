import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { isFull } from "../../src/disk/failure.ts";

/** Takes all the space that is left in a file system, but `spare` bytes, and gives it back. */
export function ballast(folder: string, spare = 0): { drop(): void } {
  const path = join(folder, "ballast");
  const file = openSync(path, "w");
  const spareFile = join(folder, "spare");
  const spared = openSync(spareFile, "w");
  if (spare > 0) writeSync(spared, Buffer.alloc(spare, 1));
  for (const size of [256 * 1024, 4096, 1]) fill(file, Buffer.alloc(size, 1));
  closeSync(file);
  closeSync(spared);
  rmSync(spareFile);
  return { drop: () => rmSync(path) };
}

function fill(file: number, bytes: Buffer): void {
  try {
    for (;;) if (writeSync(file, bytes) < bytes.length) return;
  } catch (error) {
    if (!isFull(error)) throw error;
  }
}

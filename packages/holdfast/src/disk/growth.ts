import { errnoOf } from "../errors.ts";
import type { Disk } from "./disk.ts";
import { putAll } from "./put-all.ts";

const TRIAL_BYTES = 64 * 1024;

/**
 * The error if a file as long as this one cannot grow (no space, a quota, a maximum file size), or null. Tried with
 * another file: SQLite does not say.
 */
export function growthFailure(disk: Disk, path: string): unknown {
  const trial = `${path}-growth`;
  try {
    if (disk.stat(trial)) disk.remove(trial);
    disk.open(trial, "create").close();
    const file = disk.open(trial, "update");
    try {
      let at = disk.stat(path)?.size ?? 0;
      putAll(new Uint8Array(TRIAL_BYTES).fill(1), (rest) => {
        const written = file.writeAt(rest, at);
        at += written;
        return written;
      });
    } finally {
      file.close();
      disk.remove(trial);
    }
    return null;
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return error;
  }
}

import type { Disk, DiskStat } from "../disk/disk.ts";
import { tolerate } from "../disk/failure.ts";
import { putAll } from "../disk/put-all.ts";
import { newId } from "../journal/id.ts";

/** Small files of JSON beside a lock. They are optional: a full disk may prevent writing them. */

const NOTE_BYTES_MAX = 4096;
const TEMPORARY = ".tmp";

/** Whole or not at all. Returns the identity of the file; null if it could not be written. */
export function writeNote(disk: Disk, path: string, content: object): string | null {
  const temporary = temporaryName(path);
  return tolerate<string | null>(() => {
    const file = disk.open(temporary, "create");
    let written: string;
    try {
      putAll(Buffer.from(`${JSON.stringify(content)}\n`), (rest) => file.write(rest));
      written = identity(file.stat());
    } finally {
      file.close();
    }
    disk.rename(temporary, path);
    return written;
  }, null);
}

/** Empty if the file is missing or unreadable. */
export function findNote(disk: Disk, path: string): object {
  return tolerate(() => readNote(disk, path), {});
}

/** Empty if it holds no object. Throws the system's errors. */
export function readNote(disk: Disk, path: string): object {
  const file = disk.open(path, "read");
  try {
    const bytes = Buffer.alloc(NOTE_BYTES_MAX);
    const length = file.read(bytes, 0, bytes.length, 0);
    const found: unknown = JSON.parse(bytes.toString("utf8", 0, length));
    return typeof found === "object" && found !== null ? found : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  } finally {
    file.close();
  }
}

/** Contains the time, because a file that is moved here keeps its old modification time. */
export function temporaryName(path: string): string {
  return `${path}.${newId().replaceAll("-", "")}${TEMPORARY}`;
}

/** When a temporary file was made; NaN for any other name. */
export function timeIn(name: string): number {
  return Number.parseInt(/\.([0-9a-f]{12})7[0-9a-f]{19}\.tmp$/.exec(name)?.[1] ?? "", 16);
}

export function identity(stat: DiskStat): string {
  return `${stat.dev}:${stat.ino}`;
}

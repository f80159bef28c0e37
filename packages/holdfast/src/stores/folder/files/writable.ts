import { join } from "node:path";
import type { Disk } from "../../../disk/disk.ts";
import { HoldfastError } from "../../../errors.ts";
import { SEGMENT_BYTES_MAX } from "../../../journal/record.ts";
import { assertEpochFormat } from "./epoch.ts";
import { listSegments } from "./segment.ts";

/**
 * Before anything is touched: refuses a session that can be read, but not be written to, because its newest segment is
 * none that a writer of this version left. Throws FORMAT_NEWER, JOURNAL_UNREADABLE.
 */
export async function assertWritable(disk: Disk, folder: string, id: string): Promise<void> {
  const newest = listSegments(disk, folder).at(-1);
  if (!newest) return;
  if (newest.packed) throw packedAtItsEnd(id, newest.name);
  const bytes = disk.stat(join(folder, newest.name))?.size ?? 0;
  // What is behind a tail does not count, and is not copied.
  if (bytes > SEGMENT_BYTES_MAX && !newest.tail) throw tooLargeToHeal(id, newest.name, bytes);
  await assertEpochFormat(disk, folder);
}

/**
 * No writer makes such a file. What stands behind its end would have to be copied before the session can go on, and may
 * be anything.
 */
function tooLargeToHeal(id: string, name: string, bytes: number): HoldfastError {
  const message =
    `The newest segment of session ${id} (${name}) has ${bytes} bytes, and none that Holdfast writes has more than ${SEGMENT_BYTES_MAX}: somebody has changed it, so it cannot be written to. ` +
    "Nothing was touched, and reading works. Put it back from a backup, or cut off what does not belong to it.";
  return new HoldfastError("JOURNAL_UNREADABLE", message, { session: id, segment: name, bytes });
}

/** Only older epochs are packed: the plain segment was lost, or is in a backup. */
function packedAtItsEnd(id: string, name: string): HoldfastError {
  const message =
    `The newest segment of session ${id} is packed (${name}), so it cannot be written to. Nothing was touched, and reading works. ` +
    "Put the plain segment back: `zstdcat` makes it out of the packed one.";
  return new HoldfastError("JOURNAL_UNREADABLE", message, { session: id, segment: name });
}

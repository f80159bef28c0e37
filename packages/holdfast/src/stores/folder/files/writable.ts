import { join } from "node:path";
import type { Disk } from "../../../disk/disk.ts";
import { HoldfastError } from "../../../errors.ts";
import { SEGMENT_BYTES_MAX } from "../../../journal/record.ts";
import { assertEpochFormat } from "./read-epoch.ts";
import { listSegments } from "./segment.ts";

/**
 * Before anything is touched, refuses a session that can be read but not written, because no writer of this version
 * leaves such a newest segment. Throws FORMAT_NEWER, JOURNAL_UNREADABLE.
 */
export async function assertWritable(disk: Disk, folder: string, id: string): Promise<void> {
  const newest = listSegments(disk, folder).at(-1);
  if (!newest) return;
  if (newest.packed) throw packedAtItsEnd(id, newest.name);
  const bytes = disk.stat(join(folder, newest.name))?.size ?? 0;
  // Bytes after a tail do not count and are not copied.
  if (bytes > SEGMENT_BYTES_MAX && !newest.tail) throw tooLargeToHeal(id, newest.name, bytes);
  await assertEpochFormat(disk, folder);
}

/**
 * No writer makes such a file. The bytes beyond its end would have to be copied before the session can continue, and
 * may be anything.
 */
function tooLargeToHeal(id: string, name: string, bytes: number): HoldfastError {
  const message =
    `The newest segment of session ${id} (${name}) has ${bytes} bytes, but Holdfast never writes more than ${SEGMENT_BYTES_MAX}: someone has changed it, so it cannot be written to. ` +
    "Nothing was touched, and reading works. Restore it from a backup, or cut off what does not belong to it.";
  return new HoldfastError("JOURNAL_UNREADABLE", message, { session: id, segment: name, bytes });
}

/** Only older epochs are packed: the plain segment was lost, or is in a backup. */
function packedAtItsEnd(id: string, name: string): HoldfastError {
  const message =
    `The newest segment of session ${id} is packed (${name}), so it cannot be written to. Nothing was touched, and reading works. ` +
    "Restore the plain segment: `zstdcat` unpacks it from the packed one.";
  return new HoldfastError("JOURNAL_UNREADABLE", message, { session: id, segment: name });
}

import type { DiskFile } from "holdfast/disk";

/** A file with some of its calls replaced. It has no `syncIfFast` unless that is given, so every sync is a call. */
export function fileWith(file: DiskFile, calls: Partial<DiskFile>): DiskFile {
  return {
    path: file.path,
    read: (into, offset, length, position) => file.read(into, offset, length, position),
    write: (bytes) => file.write(bytes),
    writeAt: (bytes, position) => file.writeAt(bytes, position),
    stat: () => file.stat(),
    truncate: (size) => file.truncate(size),
    sync: () => file.sync(),
    syncNow: () => file.syncNow(),
    close: () => file.close(),
    ...calls,
  };
}

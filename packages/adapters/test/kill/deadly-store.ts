import type { Store, StoreOptions } from "holdfast";
import { type DiskFile, nodeDisk } from "holdfast/disk";
import { openFolderStore, openStoreWith } from "holdfast/store";

/** When the process kills itself. */
export interface Deadline {
  readonly folder: string;
  /** SIGKILL right after this write to the journal, counted from 1; 0: no kill. */
  readonly killAfter: number;
  /** Which writes count: those of streamed words, whose number depends on the weather, or all others. */
  readonly counts: "drafts" | "records";
}

/** A store in a folder that kills its process with a write to a journal. */
export function openDeadly({ folder, killAfter, counts }: Deadline, options: StoreOptions = {}): Promise<Store> {
  let left = killAfter;
  const isCounted = (bytes: Uint8Array): boolean => {
    const lines = Buffer.from(bytes).toString("utf8").split("\n").filter(Boolean);
    return lines.every((line) => line.includes('"kind":"draft"')) === (counts === "drafts");
  };
  const deadly = (file: DiskFile): DiskFile => ({
    path: file.path,
    read: (into, offset, length, position) => file.read(into, offset, length, position),
    write: (bytes) => {
      const written = file.write(bytes);
      if (isCounted(bytes) && --left === 0) process.kill(process.pid, "SIGKILL");
      return written;
    },
    writeAt: (bytes, position) => file.writeAt(bytes, position),
    stat: () => file.stat(),
    truncate: (size) => file.truncate(size),
    sync: () => file.sync(),
    syncNow: () => file.syncNow(),
    close: () => file.close(),
  });
  const disk = {
    ...nodeDisk,
    open: (path: string, mode: Parameters<typeof nodeDisk.open>[1]) => {
      const file = nodeDisk.open(path, mode);
      return /sessions.*\.jsonl/.test(path) ? deadly(file) : file;
    },
  };
  return openStoreWith((given) => openFolderStore(folder, { ...given, disk }), { recordsToolStarts: true, ...options });
}

import type { Store } from "holdfast";
import { type DiskFile, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";

/** A store in a folder on a disk where the nth operation on a journal fails. The test chooses n. */
export class FailingDisk {
  /** Counts down at each write and sync of a journal; the one that reaches 0 fails. Never, if it begins at 0. */
  countdown = 0;
  failed = 0;

  readonly disk: typeof nodeDisk = {
    ...nodeDisk,
    open: (path, mode) => {
      const file = nodeDisk.open(path, mode);
      return /sessions.*\.jsonl/.test(path) ? this.#handled(file) : file;
    },
  };

  open(folder: string): Promise<Store> {
    const { disk } = this;
    return openStoreWith((options) => openFolderStore(folder, { ...options, disk }), { recordsToolStarts: true });
  }

  #tick(code: string): void {
    if (this.countdown === 0 || --this.countdown > 0) return;
    this.failed++;
    throw Object.assign(new Error(`${code}: failed on purpose`), { code });
  }

  #handled(file: DiskFile): DiskFile {
    return {
      path: file.path,
      read: (into, offset, length, position) => file.read(into, offset, length, position),
      write: (bytes) => {
        this.#tick("ENOSPC");
        return file.write(bytes);
      },
      writeAt: (bytes, position) => file.writeAt(bytes, position),
      stat: () => file.stat(),
      truncate: (size) => file.truncate(size),
      sync: async () => {
        this.#tick("EIO");
        await file.sync();
      },
      syncNow: () => {
        this.#tick("EIO");
        file.syncNow();
      },
      close: () => file.close(),
    };
  }
}

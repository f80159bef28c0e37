import { type Disk, type DiskFile, nodeDisk } from "holdfast/disk";
import { fileWith } from "../../../file-with.ts";

/** The real disk, with a hand on the syncs of the log of an SQLite database. */
export class HandledDisk {
  /** Fail, as a disk does that has lost the pages: once told, the kernel has forgotten about it. */
  failing = false;
  /** Syncs wait here if it is set. */
  gate: Promise<void> | null = null;
  syncs = 0;
  /** Syncs that have begun and not ended. */
  running = 0;
  /** Descriptors that were closed while a sync of theirs was under way. */
  closedTooSoon = 0;
  /** Bytes of the log that were written once more in place. */
  rewritten = 0;
  /** Files that were written only to try the disk. */
  trials = 0;

  readonly disk: Disk = {
    ...nodeDisk,
    open: (path, mode) => {
      const file = nodeDisk.open(path, mode);
      if (path.endsWith("-trial")) this.trials++;
      return path.endsWith("-wal") || path.endsWith("-trial") ? this.#handled(file) : file;
    },
  };

  #handled(file: DiskFile): DiskFile {
    let running = 0;
    const assertWorking = (): void => {
      this.syncs++;
      if (this.failing) throw Object.assign(new Error("EIO: i/o error, fdatasync"), { code: "EIO" });
    };
    return fileWith(file, {
      writeAt: (bytes, position) => {
        this.rewritten += bytes.length;
        return file.writeAt(bytes, position);
      },
      sync: async () => {
        this.running++;
        running++;
        try {
          await this.gate;
          assertWorking();
          await file.sync();
        } finally {
          running--;
          this.running--;
        }
      },
      syncNow: () => {
        assertWorking();
        file.syncNow();
      },
      close: () => {
        if (running > 0) this.closedTooSoon++;
        file.close();
      },
    });
  }
}

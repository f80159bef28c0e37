import { type Disk, type DiskFile, nodeDisk } from "holdfast/disk";
import { fileWith } from "../../file-with.ts";

/** The real disk, on which the nth write or sync of a journal fails. The test chooses n. */
export class FailingDisk {
  /** Counts down at each operation that can fail; the one that reaches 0 fails. Never, if it begins at 0. */
  countdown = 0;
  failed = 0;
  readonly #fails: "write" | "sync";

  constructor(fails: "write" | "sync") {
    this.#fails = fails;
  }

  readonly disk: Disk = {
    ...nodeDisk,
    open: (path, mode) => {
      const file = nodeDisk.open(path, mode);
      return /sessions.*\.jsonl/.test(path) ? this.#handled(file) : file;
    },
  };

  #tick(what: "write" | "sync"): void {
    if (what !== this.#fails || this.countdown === 0 || --this.countdown > 0) return;
    this.failed++;
    const code = what === "write" ? "ENOSPC" : "EIO";
    throw Object.assign(new Error(`${code}: ${what} failed on purpose`), { code });
  }

  #handled(file: DiskFile): DiskFile {
    return fileWith(file, {
      write: (bytes) => {
        this.#tick("write");
        return file.write(bytes);
      },
      sync: async () => {
        this.#tick("sync");
        await file.sync();
      },
      syncNow: () => {
        this.#tick("sync");
        file.syncNow();
      },
    });
  }
}

import { readFileSync } from "node:fs";
import { setImmediate as turnOfLoop } from "node:timers/promises";
import type { Store, StoreOptions } from "holdfast";
import { nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";

/** A disk whose syncs take many turns of the event loop. It knows what a power cut would leave of the journals. */
export class LazyDisk {
  readonly #synced = new Map<string, string>();

  readonly #disk: typeof nodeDisk = {
    ...nodeDisk,
    open: (path, mode) => {
      const file = nodeDisk.open(path, mode);
      if (!/sessions.*\.jsonl/.test(path)) return file;
      const keep = (): void => void this.#synced.set(path, readFileSync(path, "utf8"));
      return {
        path: file.path,
        read: (into, offset, length, position) => file.read(into, offset, length, position),
        write: (bytes) => file.write(bytes),
        writeAt: (bytes, position) => file.writeAt(bytes, position),
        stat: () => file.stat(),
        truncate: (size) => file.truncate(size),
        sync: async () => {
          for (let turns = 0; turns < 50; turns++) await turnOfLoop();
          await file.sync();
          keep();
        },
        syncNow: () => {
          file.syncNow();
          keep();
        },
        close: () => file.close(),
      };
    },
  };

  open(folder: string, options: StoreOptions = {}): Promise<Store> {
    const disk = this.#disk;
    return openStoreWith((given) => openFolderStore(folder, { ...given, disk }), {
      recordsToolStarts: true,
      ...options,
    });
  }

  /** The journals, in the order in which they were begun. */
  get left(): string {
    return [...this.#synced.values()].join("").replaceAll("\n", " ");
  }
}

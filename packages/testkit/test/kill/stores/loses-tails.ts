import { join } from "node:path";
import { type Disk, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import type { StoreModule } from "../../../src/kill/stores.ts";

/** A store that does not find the file where the end of a segment was written when its writer had been killed. */
export const openStore: StoreModule["openStore"] = (place, options) =>
  openFolderStore(join(place, "store"), { ...options, disk: withoutTails(options.disk ?? nodeDisk) });

const isTail = (path: string): boolean => /\.jsonl\.tail-\d+$/.test(path);

function withoutTails(disk: Disk): Disk {
  return {
    ...disk,
    list: (path) => disk.list(path).filter((name) => !isTail(name)),
    stat: (path) => (isTail(path) ? null : disk.stat(path)),
  };
}

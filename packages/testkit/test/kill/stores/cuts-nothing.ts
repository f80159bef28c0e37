import { join } from "node:path";
import { openFolderStore } from "holdfast";
import { type Disk, type DiskFile, nodeDisk } from "holdfast/disk";
import type { StoreModule } from "../../../src/kill/stores.ts";

/** A store that leaves a torn end in place, and appends behind it. */
export const openStore: StoreModule["openStore"] = (place, options) =>
  openFolderStore(join(place, "store"), { ...options, disk: uncutting(options.disk ?? nodeDisk) });

function uncutting(disk: Disk): Disk {
  return {
    ...disk,
    open(path, mode) {
      const file = disk.open(path, mode);
      const kept: Partial<DiskFile> = { truncate: () => undefined };
      return new Proxy(file, {
        get: (_, name) => {
          const value = kept[name as keyof DiskFile] ?? Reflect.get(file, name, file);
          return typeof value === "function" ? value.bind(file) : value;
        },
      });
    },
  };
}

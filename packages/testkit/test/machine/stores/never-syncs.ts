import { join } from "node:path";
import { type Disk, type DiskFile, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import type { StoreModule } from "../../../src/kill/stores.ts";

/** A store that acknowledges without waiting for the disk: SIGKILL takes nothing from it, a power cut does. */
export const openStore: StoreModule["openStore"] = (place, options) =>
  openFolderStore(join(place, "store"), { ...options, disk: hasty(options.disk ?? nodeDisk) });

function hasty(disk: Disk): Disk {
  return { ...disk, syncFolder: () => undefined, open: (path, mode) => new HastyFile(disk.open(path, mode)) };
}

class HastyFile implements DiskFile {
  readonly path: string;
  readonly #file: DiskFile;

  constructor(file: DiskFile) {
    this.path = file.path;
    this.#file = file;
  }
  async sync(): Promise<void> {}
  syncNow(): void {}
  read(into: Uint8Array, offset: number, length: number, position: number): number {
    return this.#file.read(into, offset, length, position);
  }
  write(bytes: Uint8Array): number {
    return this.#file.write(bytes);
  }
  writeAt(bytes: Uint8Array, position: number): number {
    return this.#file.writeAt(bytes, position);
  }
  stat(): ReturnType<DiskFile["stat"]> {
    return this.#file.stat();
  }
  truncate(size: number): void {
    this.#file.truncate(size);
  }
  close(): void {
    this.#file.close();
  }
}

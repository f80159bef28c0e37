import { join } from "node:path";
import { openFolderStore } from "holdfast";
import { type Disk, type DiskFile, nodeDisk } from "holdfast/disk";
import type { StoreModule } from "../../../src/kill/stores.ts";

/** A store whose writes stay in the process until the next sync, as a stream's do: SIGKILL takes them. */
export const openStore: StoreModule["openStore"] = (place, options) =>
  openFolderStore(join(place, "store"), { ...options, disk: buffering(options.disk ?? nodeDisk) });

function buffering(disk: Disk): Disk {
  return {
    ...disk,
    open: (path, mode) => (mode === "append" ? new BufferedFile(disk.open(path, mode)) : disk.open(path, mode)),
  };
}

class BufferedFile implements DiskFile {
  readonly path: string;
  readonly #file: DiskFile;
  #held: Uint8Array[] = [];

  constructor(file: DiskFile) {
    this.path = file.path;
    this.#file = file;
  }
  write(bytes: Uint8Array): number {
    this.#held.push(Uint8Array.from(bytes));
    return bytes.length;
  }
  #release(): void {
    for (const bytes of this.#held.splice(0)) this.#file.write(bytes);
  }
  sync(): Promise<void> {
    this.#release();
    return this.#file.sync();
  }
  syncNow(): void {
    this.#release();
    this.#file.syncNow();
  }
  close(): void {
    this.#release();
    this.#file.close();
  }
  read(into: Uint8Array, offset: number, length: number, position: number): number {
    return this.#file.read(into, offset, length, position);
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
}

import { join } from "node:path";
import { type Disk, type DiskFile, nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import type { StoreModule } from "../../../src/kill/stores.ts";

/** A store whose writes stay in the process until the next sync, as a stream's do: SIGKILL takes them. */
export const openStore: StoreModule["openStore"] = (place, options) =>
  openFolderStore(join(place, "store"), { ...options, disk: buffering(options.disk ?? nodeDisk) });

function buffering(disk: Disk): Disk {
  const buffered = new Map<string, BufferedFile>();
  return {
    ...disk,
    open: (path, mode) => {
      const file = disk.open(path, mode);
      if (mode !== "append") return file;
      const held = new BufferedFile(file);
      buffered.set(path, held);
      return held;
    },
    // It believes in its own buffer.
    stat: (path) => {
      const found = disk.stat(path);
      return found && { ...found, size: found.size + (buffered.get(path)?.heldBytes ?? 0) };
    },
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
  get heldBytes(): number {
    return this.#held.reduce((sum, bytes) => sum + bytes.length, 0);
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

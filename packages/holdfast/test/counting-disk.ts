import { type Disk, type DiskFile, nodeDisk } from "holdfast/disk";
import { fileWith } from "./file-with.ts";

/**
 * The real disk, with a count of what was asked of it: what a promise about cost is proven with, instead of a clock.
 */
export class CountingDisk {
  /** Bytes read, by the file's path. */
  readonly read = new Map<string, number>();
  /** Calls, by the method's name. */
  readonly calls = new Map<string, number>();
  /** The paths of files that are open now. */
  readonly open: string[] = [];

  readonly disk: Disk = {
    ...counted(nodeDisk, (name) => this.#count(name)),
    open: (path, mode) => {
      this.#count("open");
      const file = nodeDisk.open(path, mode);
      this.open.push(path);
      return this.#file(file);
    },
  };

  bytesRead(): number {
    return [...this.read.values()].reduce((sum, bytes) => sum + bytes, 0);
  }

  reset(): void {
    this.read.clear();
    this.calls.clear();
  }

  #file(file: DiskFile): DiskFile {
    return fileWith(file, {
      read: (into, offset, length, position) => {
        const bytes = file.read(into, offset, length, position);
        this.read.set(file.path, (this.read.get(file.path) ?? 0) + bytes);
        return bytes;
      },
      write: (bytes) => {
        this.#count("write");
        return file.write(bytes);
      },
      writeAt: (bytes, position) => {
        this.#count("writeAt");
        return file.writeAt(bytes, position);
      },
      sync: () => {
        this.#count("sync");
        return file.sync();
      },
      syncNow: () => {
        this.#count("sync");
        file.syncNow();
      },
      close: () => {
        file.close();
        this.open.splice(this.open.indexOf(file.path), 1);
      },
    });
  }

  #count(name: string): void {
    this.calls.set(name, (this.calls.get(name) ?? 0) + 1);
  }
}

function counted(disk: Disk, count: (name: string) => void): Disk {
  const names = Object.keys(disk) as (keyof Disk)[];
  const entries = names.map((name) => {
    const method = disk[name] as (...parameters: unknown[]) => unknown;
    return [
      name,
      (...parameters: unknown[]) => {
        count(name);
        return method(...parameters);
      },
    ];
  });
  return Object.fromEntries(entries) as Disk;
}

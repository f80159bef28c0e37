import { type Disk, type DiskFile, nodeDisk } from "holdfast/disk";

/** The real disk, of which any one call can fail; it knows which files are open. */
export class AnyCallFails {
  /** How many calls from now on succeed. */
  left = Number.POSITIVE_INFINITY;
  /** The call that failed, and its path. */
  failed: string | null = null;
  readonly #errno: string;
  /** The paths of files that are open now. */
  readonly open: string[] = [];

  constructor(errno: string) {
    this.#errno = errno;
  }

  readonly disk: Disk = {
    ...nodeDisk,
    open: (path, mode) => {
      this.#call("open", path);
      const file = nodeDisk.open(path, mode);
      this.open.push(path);
      return this.#file(file);
    },
    stat: (path) => this.#call("stat", path) ?? nodeDisk.stat(path),
    list: (path) => this.#call("list", path) ?? nodeDisk.list(path),
    makeFolder: (path) => this.#call("makeFolder", path) ?? nodeDisk.makeFolder(path),
    rename: (from, to) => this.#call("rename", from) ?? nodeDisk.rename(from, to),
    link: (from, to) => this.#call("link", from) ?? nodeDisk.link(from, to),
    remove: (path) => this.#call("remove", path) ?? nodeDisk.remove(path),
    removeFolder: (path) => this.#call("removeFolder", path) ?? nodeDisk.removeFolder(path),
    syncFolder: (path) => this.#call("syncFolder", path) ?? nodeDisk.syncFolder(path),
    // It comes a while after the session is open, and is no part of what is tested here.
    hardLock: () => "none" as const,
  };

  #file(file: DiskFile): DiskFile {
    const call = (name: string): undefined => this.#call(name, file.path);
    return {
      path: file.path,
      read: (...given) => call("read") ?? file.read(...given),
      write: (bytes) => call("write") ?? file.write(bytes),
      writeAt: (...given) => call("writeAt") ?? file.writeAt(...given),
      stat: () => call("file.stat") ?? file.stat(),
      truncate: (size) => call("truncate") ?? file.truncate(size),
      sync: async () => call("sync") ?? file.sync(),
      syncNow: () => call("syncNow") ?? file.syncNow(),
      close: () => {
        file.close();
        this.open.splice(this.open.indexOf(file.path), 1);
      },
    };
  }

  #call(name: string, path: string): undefined {
    if (this.left-- > 0) return;
    this.left = Number.POSITIVE_INFINITY;
    this.failed = `${name} ${path}`;
    throw Object.assign(new Error(`${this.#errno}: on purpose, ${name}`), { code: this.#errno, syscall: name });
  }
}

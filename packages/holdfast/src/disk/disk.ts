/**
 * The only access to a file system. The folder store touches a disk only through this interface, so that a simulated
 * disk can replace the real one (docs/RULES.md, S22), and so that tests can count its steps, fail them and kill the
 * process at them.
 *
 * Everything except `sync` happens inside the call. Errors are system errors with a `code` (`ENOSPC`, `EIO`, `ENOENT`,
 * …).
 */
export interface Disk {
  /**
   * - `read`: for reading;
   * - `append`: for `write` at the end, and reading; the file exists;
   * - `update`: for `writeAt`, `truncate` and reading; the file exists;
   * - `create`: a new file, 0600, for `write` at the end; EEXIST if the name is taken, even by a dangling link.
   *
   * Every file of a store is opened here, so this is where files that cannot belong to a store are refused
   * (file-rules.ts): anything but a regular file is PATH_UNSAFE, and another user's file is STORE_FORBIDDEN. Never
   * waits: a FIFO without a writer is refused like the others.
   */
  open(path: string, mode: OpenMode): DiskFile;
  /** Describes the name itself, not the target of a symbolic link; null if nothing is there. */
  stat(path: string): DiskStat | null;
  /** The names in a folder, unordered. ENOENT, ENOTDIR. */
  list(path: string): string[];
  /** Creates one level, 0700. Returns false if the folder already exists. */
  makeFolder(path: string): boolean;
  rename(from: string, to: string): void;
  /**
   * Atomically gives a file a second name. EEXIST if the name is taken: of two competitors, one succeeds. EPERM,
   * ENOTSUP where files can have only one name.
   */
  link(from: string, to: string): void;
  /** Removes a file's name. */
  remove(path: string): void;
  /** Removes an empty folder. */
  removeFolder(path: string): void;
  /** Makes the names in a folder durable: creations, renames and removals. */
  syncFolder(path: string): void;
  /**
   * Takes an exclusive lock on an existing empty file, which ends with the process; null if the lock is taken. EBADF if
   * the file has content, EACCES if it is not writable. On POSIX systems, any code in this process that opens and
   * closes the file silently releases the lock (S13).
   */
  lock(path: string): DiskLock | null;
  /** Is the file locked, by this process or another? Interferes only for an instant, and needs no write permission. */
  isLocked(path: string): boolean;
  /**
   * Takes a lock that ends only with its release or with the process, on a file that is created if missing. It may take
   * a tenth of a second. `none` if the system has no such lock. A `shared` one is for looking whether it is taken: two
   * that look do not see each other.
   */
  hardLock(path: string, kind?: "shared"): DiskLock | "taken" | "none";
  /**
   * Calls back when something in the folder may have changed. Returns a function that stops it. May miss changes and
   * may repeat.
   */
  watch(path: string, onChange: () => void): () => void;
  /** The type of the network file system that holds the path (`nfs`), or null. */
  networkKind(path: string): string | null;
  /**
   * Names the current run of the operating system; null where it has no name. While it stays the same, no power cut has
   * undone a change that was not synced.
   */
  bootId(): string | null;
}

export type OpenMode = "read" | "append" | "update" | "create";

/** What a name can refer to. */
export type FileKind = "file" | "folder" | "link" | "fifo" | "socket" | "device" | "other";

export interface DiskStat {
  readonly kind: FileKind;
  readonly size: number;
  readonly dev: number;
  readonly ino: number;
  readonly mtimeMs: number;
  /** The owner; absent where files have none (Windows). */
  readonly owner?: number;
  /** The group and the permissions; absent where they do not exist. */
  readonly group?: number;
  readonly mode?: number;
  /** How many names (hard links) the file has. */
  readonly links: number;
}

export interface DiskFile {
  readonly path: string;
  /** Reads up to `length` bytes at `position` into `into` at `offset`; returns how many, 0 at the end. */
  read(into: Uint8Array, offset: number, length: number, position: number): number;
  /** Writes at the end; returns how many bytes were written, which can be fewer. */
  write(bytes: Uint8Array): number;
  writeAt(bytes: Uint8Array, position: number): number;
  /** Describes the open file, regardless of its current name. */
  stat(): DiskStat;
  truncate(size: number): void;
  /** fdatasync: content and size written before the call are durable when it resolves. */
  sync(): Promise<void>;
  /**
   * The same inside the call, if syncs of this file are fast. Returns false if it did nothing. For one caller that
   * waits, and nothing else: the event loop waits too.
   */
  syncIfFast?(): boolean;
  syncNow(): void;
  close(): void;
}

export interface DiskLock {
  release(): void;
}

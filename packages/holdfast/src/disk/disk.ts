/**
 * The one door to a file system. The folder store does nothing to a disk but through this interface, so that a simulated disk
 * can stand in for the real one (STORAGE.md, S22) and so that its steps can be counted, failed and killed at.
 *
 * Everything but `sync` happens inside the call. Errors are system errors with a `code` (`ENOSPC`, `EIO`, `ENOENT`, …).
 */
export interface Disk {
  /**
   * - `read`: for reading;
   * - `append`: for `write` at the end, and reading; the file exists;
   * - `update`: for `writeAt`, `truncate` and reading; the file exists;
   * - `create`: a new file, 0600, for `write` at the end; EEXIST if the name is taken, also by a dangling link.
   *
   * Every file of a store is opened here, so here it is decided what is no file of a store (file-rules.ts): anything but a regular file is PATH_UNSAFE,
   * one that belongs to another user is STORE_FORBIDDEN. Never waits: a FIFO that nobody writes to is refused like the others.
   */
  open(path: string, mode: OpenMode): DiskFile;
  /** Of the name itself, not of what a symbolic link points to; null if nothing is there. */
  stat(path: string): DiskStat | null;
  /** The names in a folder, in no order. ENOENT, ENOTDIR. */
  list(path: string): string[];
  /** One level, 0700. False if a folder of that name was there. */
  makeFolder(path: string): boolean;
  rename(from: string, to: string): void;
  /** A second name for a file, at once. EEXIST if the name is taken: of two who want it, one gets it. EPERM, ENOTSUP where files have one name. */
  link(from: string, to: string): void;
  /** Removes a file's name. */
  remove(path: string): void;
  /** Removes an empty folder. */
  removeFolder(path: string): void;
  /** Makes the names in a folder durable: creations, renames and removals. */
  syncFolder(path: string): void;
  /**
   * An exclusive lock on an existing empty file, which dies with the process; null if somebody else has it. EBADF if the file has content, EACCES if
   * it may not be written to. On POSIX systems any code of this process that opens and closes the file gives the lock away in silence (S13).
   */
  lock(path: string): DiskLock | null;
  /** Does somebody hold the lock of the file, in this process or another? Disturbs nobody but for an instant, and needs no right to write. */
  isLocked(path: string): boolean;
  /**
   * A lock that nothing but its release or the end of the process gives away, on a file that is made if it is not there. It may take a while, and must not
   * keep the process alive. Null if somebody else has it, or if the system has no such lock, or once `signal` says that it is no longer wanted.
   */
  hardLock(path: string, signal?: AbortSignal): Promise<DiskLock | null>;
  /** Does somebody hold the hard lock of the file? False where the system has no such lock. */
  isHardLocked(path: string): boolean;
  /** Calls back when something in the folder may have changed. Returns the way to stop it. May miss and may repeat. */
  watch(path: string, onChange: () => void): () => void;
  /** The kind of a network file system that holds the path (`nfs`), or null. */
  networkKind(path: string): string | null;
}

export type OpenMode = "read" | "append" | "update" | "create";

/** What a name can lead to. */
export type FileKind = "file" | "folder" | "link" | "fifo" | "socket" | "device" | "other";

export interface DiskStat {
  readonly kind: FileKind;
  readonly size: number;
  readonly dev: number;
  readonly ino: number;
  readonly mtimeMs: number;
  /** The user that it belongs to; missing where files belong to nobody (Windows). */
  readonly owner?: number;
  /** The group that it belongs to, and who may do what with it; missing where there are no such things. */
  readonly group?: number;
  readonly mode?: number;
  /** How many names the file has. */
  readonly links: number;
}

export interface DiskFile {
  readonly path: string;
  /** Reads up to `length` bytes at `position` into `into` at `offset`; returns how many, 0 at the end. */
  read(into: Uint8Array, offset: number, length: number, position: number): number;
  /** Writes at the end; returns how many bytes were written, which can be fewer. */
  write(bytes: Uint8Array): number;
  writeAt(bytes: Uint8Array, position: number): number;
  /** Of the open file, whatever its name is now. */
  stat(): DiskStat;
  truncate(size: number): void;
  /** fdatasync: the content and the size that were written before the call are durable when it resolves. */
  sync(): Promise<void>;
  syncNow(): void;
  close(): void;
}

export interface DiskLock {
  release(): void;
}

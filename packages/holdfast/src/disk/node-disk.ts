import * as fs from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { errnoOf } from "../errors.ts";
import type { Disk, DiskFile, DiskLock, DiskStat, FileKind, OpenMode } from "./disk.ts";
import { assertStoreFile } from "./file-rules.ts";
import { hardLock, isHardLocked } from "./hard-lock.ts";
import { FUSE, isNetworkMount, mountKind, NETWORK_KINDS } from "./network.ts";

const { O_RDONLY, O_RDWR, O_APPEND, O_CREAT, O_EXCL } = fs.constants;
/** Windows has no such flag; there `stat` before `open` is all that can be done. */
const O_NOFOLLOW = fs.constants.O_NOFOLLOW ?? 0;
/** Opening a FIFO waits for its other end, and while it waits not even a signal is heard. */
const O_NONBLOCK = fs.constants.O_NONBLOCK ?? 0;

const FLAGS: Record<OpenMode, number> = {
  read: O_RDONLY | O_NOFOLLOW,
  append: O_RDWR | O_APPEND | O_NOFOLLOW,
  update: O_RDWR | O_NOFOLLOW,
  create: O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW,
};

/** The real disk: the only module that imports node:fs. */
export const nodeDisk: Disk = {
  open(path, mode) {
    if (mode === "create") return new NodeFile(path, fs.openSync(path, FLAGS.create, 0o600));
    // Before: opening a device can set something off. After: another process may have put something else there in between.
    const before = fs.lstatSync(path, { throwIfNoEntry: false });
    if (before) assertStoreFile(path, toStat(before));
    const fd = openNow(path, FLAGS[mode]);
    try {
      assertStoreFile(path, toStat(fs.fstatSync(fd)));
    } catch (error) {
      fs.closeSync(fd);
      throw error;
    }
    return new NodeFile(path, fd);
  },

  stat(path) {
    const stat = fs.lstatSync(path, { throwIfNoEntry: false });
    return stat ? toStat(stat) : null;
  },

  list: (path) => fs.readdirSync(path),

  makeFolder(path) {
    try {
      fs.mkdirSync(path, 0o700);
      return true;
    } catch (error) {
      if (errnoOf(error) === "EEXIST" && fs.lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) return false;
      throw error;
    }
  },

  rename: (from, to) => fs.renameSync(from, to),
  link: (from, to) => fs.linkSync(from, to),
  remove: (path) => fs.unlinkSync(path),
  removeFolder: (path) => fs.rmdirSync(path),

  syncFolder(path) {
    let fd: number;
    try {
      fd = fs.openSync(path, O_RDONLY);
    } catch (error) {
      // Windows opens no folders, and its file systems order the changes of names by themselves.
      if (process.platform === "win32") return;
      throw error;
    }
    try {
      fs.fsyncSync(fd);
    } catch (error) {
      if (process.platform !== "win32") throw error;
    } finally {
      fs.closeSync(fd);
    }
  },

  lock,
  isLocked,
  hardLock,
  isHardLocked,

  watch(path, onChange) {
    const watcher = fs.watch(path, { persistent: false }, () => onChange());
    // The folder may go away (a deleted session); whoever watches polls as well, and finds out.
    watcher.on("error", () => onChange());
    return () => watcher.close();
  },

  networkKind(path) {
    if (process.platform !== "linux") return null;
    const { type } = fs.statfsSync(path);
    if (type !== FUSE) return NETWORK_KINDS.get(type) ?? null;
    const kind = mountKind(mounts(), fs.statSync(path).dev) ?? "fuse";
    return isNetworkMount(kind) ? kind : null;
  },
};

/** Does not wait for anybody. Where another program has a lease on the file (a server that exports it), the system asks for it back and says EAGAIN meanwhile: there is no harm in waiting for that. */
function openNow(path: string, flags: number): number {
  try {
    return fs.openSync(path, flags | O_NONBLOCK);
  } catch (error) {
    if (errnoOf(error) !== "EAGAIN") throw error;
    return fs.openSync(path, flags);
  }
}

/** Empty where it cannot be read: there is no `/proc` in every container. */
function mounts(): string {
  try {
    return fs.readFileSync("/proc/self/mountinfo", "utf8");
  } catch (error) {
    if (errnoOf(error) === undefined) throw error;
    return "";
  }
}

/**
 * The one path of a folder, whatever links lead to it, in the spelling of the file system. What is not there, or may not be looked at, is taken as it is named, below the real path of what is there: a
 * folder that was removed is still found by the sessions that worked in it.
 */
export function realPath(path: string): string {
  const whole = resolve(path);
  const rest: string[] = [];
  for (let there = whole; ; there = dirname(there)) {
    try {
      return join(fs.realpathSync.native(there), ...rest);
    } catch (error) {
      if (errnoOf(error) === undefined) throw error;
      if (dirname(there) === there) return whole;
      rest.unshift(basename(there));
    }
  }
}

/** Why this process may not write to a file, or make files in a folder (`EACCES`, `EROFS`); null if it may. */
export function whyNotWritable(path: string): string | null {
  try {
    fs.accessSync(path, fs.constants.W_OK);
    return null;
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === undefined) throw error;
    return errno;
  }
}

/**
 * Node has no flock, but SQLite locks files, and the kernel frees its locks with the process. An exclusive transaction on an empty
 * database writes nothing while it lasts (S13).
 */
function lock(path: string): DiskLock | null {
  // SQLite falls back to reading what it may not write to, and two readers would both have "the lock".
  fs.accessSync(path, fs.constants.W_OK);
  const database = transaction(path, "rw", "PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE");
  return database && { release: () => database.close() };
}

/** A shared lock is refused while somebody has the exclusive one. Those who look do not get in each other's way. */
function isLocked(path: string): boolean {
  const database = transaction(path, "ro", "BEGIN; SELECT count(*) FROM sqlite_schema");
  database?.close();
  return database === null;
}

/** Null if somebody else's lock forbids it. */
function transaction(path: string, mode: "rw" | "ro", statements: string): DatabaseSync | null {
  const url = pathToFileURL(path);
  url.searchParams.set("mode", mode);
  const database = new DatabaseSync(url, { timeout: 0, readOnly: mode === "ro" });
  try {
    database.exec(statements);
    return database;
  } catch (error) {
    database.close();
    const code = sqliteCode(error);
    if (code === SQLITE_BUSY) return null;
    if (code === SQLITE_NOTADB || code === SQLITE_CORRUPT) {
      throw Object.assign(new Error(`${path} has content`), { code: "EBADF", cause: error });
    }
    throw error;
  }
}

const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_NOTADB = 26;

/** The primary result code of an error of node:sqlite, or undefined. */
export function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("errcode" in error) || typeof error.errcode !== "number") return undefined;
  return error.errcode & 0xff;
}

class NodeFile implements DiskFile {
  readonly path: string;
  readonly #fd: number;

  constructor(path: string, fd: number) {
    this.path = path;
    this.#fd = fd;
  }

  read(into: Uint8Array, offset: number, length: number, position: number): number {
    return fs.readSync(this.#fd, into, offset, length, position);
  }
  write(bytes: Uint8Array): number {
    return fs.writeSync(this.#fd, bytes, 0, bytes.length);
  }
  writeAt(bytes: Uint8Array, position: number): number {
    return fs.writeSync(this.#fd, bytes, 0, bytes.length, position);
  }
  stat(): DiskStat {
    return toStat(fs.fstatSync(this.#fd));
  }
  truncate(size: number): void {
    fs.ftruncateSync(this.#fd, size);
  }
  sync(): Promise<void> {
    return new Promise((resolve, reject) => fs.fdatasync(this.#fd, (error) => (error ? reject(error) : resolve())));
  }
  syncNow(): void {
    fs.fdatasyncSync(this.#fd);
  }
  close(): void {
    fs.closeSync(this.#fd);
  }
}

function toStat(stat: fs.Stats): DiskStat {
  const { size, dev, ino, mtimeMs, nlink: links } = stat;
  const found = { kind: kindOf(stat), size, dev, ino, mtimeMs, links };
  return process.platform === "win32"
    ? found
    : { ...found, owner: stat.uid, group: stat.gid, mode: stat.mode & 0o7777 };
}

function kindOf(stat: fs.Stats): FileKind {
  if (stat.isFile()) return "file";
  if (stat.isDirectory()) return "folder";
  if (stat.isSymbolicLink()) return "link";
  if (stat.isFIFO()) return "fifo";
  if (stat.isSocket()) return "socket";
  return stat.isBlockDevice() || stat.isCharacterDevice() ? "device" : "other";
}

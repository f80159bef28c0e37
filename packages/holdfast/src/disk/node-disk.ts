import * as fs from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { errnoOf } from "../errors.ts";
import type { Disk, DiskFile, DiskLock, DiskStat, OpenMode } from "./disk.ts";
import { hardLock, isHardLocked } from "./hard-lock.ts";

const { O_RDONLY, O_RDWR, O_APPEND, O_CREAT, O_EXCL } = fs.constants;
/** Windows has no such flag; there `stat` before `open` is all that can be done. */
const O_NOFOLLOW = fs.constants.O_NOFOLLOW ?? 0;

const FLAGS: Record<OpenMode, number> = {
  read: O_RDONLY | O_NOFOLLOW,
  append: O_RDWR | O_APPEND | O_NOFOLLOW,
  update: O_RDWR | O_NOFOLLOW,
  create: O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW,
};

/** File systems that do not keep what POSIX says about locks and fsync (S14), by the number that statfs gives (Linux). */
const NETWORK_KINDS = new Map([
  [0x6969, "nfs"],
  [0x517b, "smb"],
  [0xff534d42, "cifs"],
  [0xfe534d42, "smb2"],
  [0x01021997, "9p"],
  [0x5346414f, "afs"],
  [0x00c36400, "ceph"],
  [0x0bd00bd0, "lustre"],
]);

/** The real disk: the only module that imports node:fs. */
export const nodeDisk: Disk = {
  open: (path, mode) => new NodeFile(path, fs.openSync(path, FLAGS[mode], 0o600)),

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
    return NETWORK_KINDS.get(fs.statfsSync(path).type) ?? null;
  },
};

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
  const kind = stat.isFile() ? "file" : stat.isDirectory() ? "folder" : stat.isSymbolicLink() ? "link" : "other";
  return { kind, size: stat.size, dev: stat.dev, ino: stat.ino, mtimeMs: stat.mtimeMs };
}

import * as fs from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { errnoOf } from "../errors.ts";
import { openWithoutWaiting } from "./database-file.ts";
import { descriptorFailure } from "./descriptors.ts";
import type { Disk, DiskFile, DiskLock, DiskStat, FileKind, OpenMode } from "./disk.ts";
import { tolerate } from "./failure.ts";
import { assertStoreFile } from "./file-rules.ts";
import { hardLock } from "./hard-lock.ts";
import { FUSE, isNetworkMount, mountKind, mountPoints, NETWORK_KINDS } from "./network-kinds.ts";
import { SQLITE, sqliteCode } from "./sqlite-error.ts";
import { SyncPace } from "./sync-pace.ts";

const { O_RDONLY, O_RDWR, O_APPEND, O_CREAT, O_EXCL } = fs.constants;
/** Asked once: every sync is followed by three of these. */
const IS_WINDOWS = process.platform === "win32";
/** Windows has no such flag; `stat` before `open` is the best available there. */
const O_NOFOLLOW = fs.constants.O_NOFOLLOW ?? 0;
/** Opening a FIFO waits for its other end, and meanwhile not even signals are handled. */
const O_NONBLOCK = fs.constants.O_NONBLOCK ?? 0;

const { S_IFMT, S_IFREG, S_IFDIR, S_IFLNK } = fs.constants;
const KINDS: ReadonlyMap<number, FileKind> = new Map([
  [S_IFREG, "file"],
  [S_IFDIR, "folder"],
  [S_IFLNK, "link"],
  // Windows has none of these.
  [fs.constants.S_IFIFO ?? Number.NaN, "fifo"],
  [fs.constants.S_IFSOCK ?? Number.NaN, "socket"],
  [fs.constants.S_IFBLK ?? Number.NaN, "device"],
  [fs.constants.S_IFCHR ?? Number.NaN, "device"],
]);

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
    // Check before: opening a device can trigger something. Check after: another process may have replaced the file in
    // between.
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
    // Usually it exists, and an error takes longer to make than a look.
    if (isFolder(path)) return false;
    try {
      fs.mkdirSync(path, 0o700);
      return true;
    } catch (error) {
      if (errnoOf(error) === "EEXIST" && isFolder(path)) return false;
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
      // Windows cannot open folders, and its file systems order name changes by themselves.
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

  watch(path, onChange) {
    const watcher = fs.watch(path, { persistent: false }, () => {
      onChange();
      setImmediate(release);
    });
    // Deno ignores `persistent`, and waits for the next event as if `unref` had not been called: a follower that is
    // still open would keep the process alive.
    const release = (): unknown => watcher.unref();
    release();
    // The folder may disappear (a deleted session); watchers also poll, so they find out.
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

  bootId() {
    bootId ??= readBootId();
    return bootId ?? null;
  },
};

function isFolder(path: string): boolean {
  return fs.lstatSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

let bootId: string | undefined;

/** Undefined if it cannot be read: macOS and Windows have no such file, and not every container has `/proc`. */
function readBootId(): string | undefined {
  if (process.platform !== "linux") return undefined;
  return tolerate<string | undefined>(
    () => fs.readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(),
    undefined,
  );
}

/**
 * Does not wait for other processes. If another program holds a lease on the file (a server that exports it), the
 * system requests it back and returns EAGAIN until then; waiting for that is harmless.
 */
function openNow(path: string, flags: number): number {
  try {
    return fs.openSync(path, flags | O_NONBLOCK);
  } catch (error) {
    if (errnoOf(error) !== "EAGAIN") throw error;
    return fs.openSync(path, flags);
  }
}

/** Empty if it cannot be read: not every container has `/proc`. */
function mounts(): string {
  return tolerate(() => fs.readFileSync("/proc/self/mountinfo", "utf8"), "");
}

/** Is something mounted exactly here? Known on Linux only. */
export function isMountPoint(path: string): boolean {
  const real = join(realPath(dirname(path)), basename(path));
  return mountPoints(mounts()).includes(real);
}

/**
 * The canonical path of a folder, with links resolved, in the file system's spelling. Parts that do not exist, or may
 * not be read, are kept as given below the real path of the rest: a folder that was removed still matches the sessions
 * that worked in it.
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

/** Why this process may not write to a file, or create files in a folder (`EACCES`, `EROFS`); null if it may. */
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
 * Node has no flock, but SQLite locks files, and the kernel releases its locks when the process ends. An exclusive
 * transaction on an empty database writes nothing while it lasts (S13).
 */
function lock(path: string): DiskLock | null {
  // SQLite falls back to reading a file it may not write to, and two readers would both hold "the lock".
  fs.accessSync(path, fs.constants.W_OK);
  const database = transaction(path, "rw", "PRAGMA journal_mode=MEMORY; BEGIN EXCLUSIVE");
  return database && { release: () => database.close() };
}

/** A shared lock is refused while the exclusive one is held. Probes do not block one another. */
function isLocked(path: string): boolean {
  const database = transaction(path, "ro", "BEGIN; SELECT count(*) FROM sqlite_schema");
  database?.close();
  return database === null;
}

/** Null if another lock forbids it. */
function transaction(path: string, mode: "rw" | "ro", statements: string): DatabaseSync | null {
  const url = pathToFileURL(path);
  url.searchParams.set("mode", mode);
  let database: DatabaseSync | null = null;
  try {
    database = openWithoutWaiting(url, mode === "ro");
    database.exec(statements);
    return database;
  } catch (error) {
    database?.close();
    const code = sqliteCode(error);
    if (code === SQLITE.BUSY) return null;
    if (code === SQLITE.NOTADB || code === SQLITE.CORRUPT) {
      throw Object.assign(new Error(`${path} has content`), { code: "EBADF", cause: error });
    }
    throw (code === SQLITE.CANTOPEN && descriptorFailure()) || error;
  }
}

const pace = new SyncPace();

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
    const start = performance.now();
    return new Promise((resolve, reject) => {
      fs.fdatasync(this.#fd, (error) => {
        pace.took(performance.now() - start, false);
        if (error) reject(error);
        else resolve();
      });
    });
  }
  syncIfFast(): boolean {
    const start = performance.now();
    if (!pace.mayBlock(this, start)) return false;
    fs.fdatasyncSync(this.#fd);
    pace.took(performance.now() - start, true);
    return true;
  }
  syncNow(): void {
    fs.fdatasyncSync(this.#fd);
  }
  close(): void {
    fs.closeSync(this.#fd);
  }
}

/** A list makes ten thousands of these: as one literal, and without the methods of `fs.Stats`. */
function toStat({ size, dev, ino, mtimeMs, nlink: links, mode, uid: owner, gid: group }: fs.Stats): DiskStat {
  const kind = KINDS.get(mode & S_IFMT) ?? "other";
  return IS_WINDOWS
    ? { kind, size, dev, ino, mtimeMs, links }
    : { kind, size, dev, ino, mtimeMs, links, owner, group, mode: mode & 0o7777 };
}

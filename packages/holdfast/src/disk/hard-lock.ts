import * as fs from "node:fs";
import { errnoOf } from "../errors.ts";
import type { DiskLock } from "./disk.ts";
import { tolerate } from "./failure.ts";

/**
 * Locks that belong to an open file rather than to the process: closing another descriptor of the same file does not
 * release them.
 *
 * - Linux: `flock(2)`. Node cannot call it, but the program `flock` (util-linux, BusyBox) locks a descriptor it
 *   inherits, and the lock stays with the open file after the program ends. Starting it blocks this process for 2 ms,
 *   20 on a busy machine, or 100 if the process is large.
 * - macOS and the BSDs: `O_EXLOCK` at open. Windows: libuv maps the same flag to a handle that nobody else can open.
 *
 * Where neither exists (a container without the program, a sandbox that forbids child processes), there is no hard
 * lock: leases then rely on the POSIX lock and the fence (stores/lease.ts), an SQLite store on SQLite's own lock.
 */

const { O_RDONLY, O_CREAT, O_NONBLOCK } = fs.constants;
const O_NOFOLLOW = fs.constants.O_NOFOLLOW ?? 0;
/** Not among Node's constants. BSD and macOS: sys/fcntl.h; Windows: libuv's UV_FS_O_EXLOCK. */
const O_EXLOCK = process.platform === "win32" ? 0x10000000 : 0x20;
/** Windows knows no shared one. */
const O_SHLOCK = process.platform === "win32" ? O_EXLOCK : 0x10;
const OPENS_LOCKED = new Set(["darwin", "freebsd", "openbsd", "netbsd", "win32"]);
const HELD_ELSEWHERE = new Set(["EAGAIN", "EWOULDBLOCK", "EBUSY"]);

/** File systems without such locks. */
const NO_LOCKS = new Set(["ENOTSUP", "EOPNOTSUPP"]);

/** Exit status of `flock -n` when the lock is taken. */
const BUSY = 1;
/** The program does not exist here: do not try again. */
let isMissing = false;
/** Loaded when a lock is requested: most programs that import the library never need it, and it costs milliseconds. */
const childProcess = () => process.getBuiltinModule("node:child_process");

/** Takes the lock. `none`: the system has no such lock, or this process may not start the program. */
export function hardLock(path: string, kind?: "shared"): DiskLock | "taken" | "none" {
  if (OPENS_LOCKED.has(process.platform)) return openLocked(path, kind ? O_SHLOCK : O_EXLOCK);
  if (process.platform !== "linux" || isMissing) return "none";
  const fd = openToLock(path);
  let isHeld = false;
  try {
    const status = flock(fd, kind ? "-s" : "-x");
    isHeld = status === 0 && isNamed(path, fd);
    if (isHeld) return { release: () => fs.closeSync(fd) };
    return status === BUSY || status === 0 ? "taken" : "none";
  } finally {
    if (!isHeld) fs.closeSync(fd);
  }
}

/** For reading: a descriptor for writing would prevent a read-only remount. */
function openToLock(path: string, flags = 0): number {
  return fs.openSync(path, O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | flags, 0o600);
}

function openLocked(path: string, flag: number): DiskLock | "taken" | "none" {
  try {
    const fd = openToLock(path, flag);
    return { release: () => fs.closeSync(fd) };
  } catch (error) {
    if (HELD_ELSEWHERE.has(errnoOf(error) ?? "")) return "taken";
    if (NO_LOCKS.has(errnoOf(error) ?? "")) return "none";
    throw error;
  }
}

/** The program's exit status; null if it could not run. */
function flock(fd: number, kind: "-x" | "-s"): number | null {
  // Node's permission model may forbid it.
  return tolerate<number | null>(() => {
    const stdio = ["ignore", "ignore", "ignore", fd] as const;
    const { error, status } = childProcess().spawnSync("flock", ["-n", kind, "3"], { stdio: [...stdio] });
    if (error && errnoOf(error) === "ENOENT") isMissing = true;
    return status;
  }, null);
}

/** A lock on a file that was removed while waiting protects nothing. */
function isNamed(path: string, fd: number): boolean {
  const named = fs.lstatSync(path, { throwIfNoEntry: false });
  const open = fs.fstatSync(fd);
  return named?.ino === open.ino && named.dev === open.dev && named.isFile();
}

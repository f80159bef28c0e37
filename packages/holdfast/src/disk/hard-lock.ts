import * as fs from "node:fs";
import { errnoOf } from "../errors.ts";
import type { DiskLock } from "./disk.ts";
import { tolerate } from "./failure.ts";

/**
 * Locks that belong to an open file rather than to the process: closing another descriptor of the same file does not
 * release them.
 *
 * - Linux: `flock(2)`. Node cannot call it, but the program `flock` (util-linux, BusyBox) locks a descriptor it
 *   inherits, and the lock stays with the open file after the program ends. The child costs 2 ms, or 20 on a busy
 *   machine, so the first append does not wait for it.
 * - macOS and the BSDs: `O_EXLOCK` at open. Windows: libuv maps the same flag to a handle that nobody else can open.
 *
 * Where neither exists (a container without the program, a sandbox that forbids child processes), there is no hard
 * lock: leases then rely on the POSIX lock and the fence (stores/lease.ts), an SQLite store on SQLite's own lock.
 */

const { O_RDWR, O_RDONLY, O_CREAT, O_NONBLOCK } = fs.constants;
const O_NOFOLLOW = fs.constants.O_NOFOLLOW ?? 0;
/** Not among Node's constants. BSD and macOS: sys/fcntl.h; Windows: libuv's UV_FS_O_EXLOCK. */
const O_SHLOCK = 0x10;
const O_EXLOCK = process.platform === "win32" ? 0x10000000 : 0x20;
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

/**
 * `signal`: the lock is no longer wanted. Aborting releases it synchronously, even if this process then blocks and
 * never learns that it held the lock.
 */
export async function hardLock(path: string, signal?: AbortSignal): Promise<DiskLock | null> {
  if (signal?.aborted) return null;
  if (process.platform !== "linux") {
    const lock = hardLockNow(path);
    return typeof lock === "string" ? null : lock;
  }
  const turn = lastTurn;
  const { promise, resolve: endTurn } = Promise.withResolvers<void>();
  lastTurn = promise;
  await turn;
  const since = performance.now();
  let blockedMs = 0;
  try {
    if (signal?.aborted || isMissing) return null;
    const lock = lockByChild(path, signal);
    blockedMs = performance.now() - since;
    return await lock;
  } finally {
    if (blockedMs === 0) endTurn();
    else setTimeout(endTurn, blockedMs * REST).unref();
  }
}

/**
 * Starting a child blocks this process for milliseconds, or a tenth of a second if the process is large. So only one
 * runs at a time, with a pause of this many times its duration before the next: a process that opens a thousand
 * sessions at once can keep working.
 */
const REST = 9;
let lastTurn: Promise<void> = Promise.resolve();

/**
 * The same inside the call, which takes milliseconds. `none`: the system has no such lock, or this process may not
 * start the program.
 */
export function hardLockNow(path: string): DiskLock | "taken" | "none" {
  if (OPENS_LOCKED.has(process.platform)) return openLocked(path);
  if (process.platform !== "linux") return "none";
  const fd = openToLock(path);
  let isHeld = false;
  try {
    const status = isMissing ? null : flockNow(fd, "-x");
    isHeld = status === 0 && isNamed(path, fd);
    if (isHeld) return { release: () => fs.closeSync(fd) };
    return status === BUSY || status === 0 ? "taken" : "none";
  } finally {
    if (!isHeld) fs.closeSync(fd);
  }
}

/** For reading: a descriptor for writing would prevent a read-only remount. */
function openToLock(path: string): number {
  return fs.openSync(path, O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600);
}

async function lockByChild(path: string, signal?: AbortSignal): Promise<DiskLock | null> {
  const fd = openToLock(path);
  let isOpen = true;
  const release = (): void => {
    if (isOpen) fs.closeSync(fd);
    isOpen = false;
  };
  let isHeld = false;
  try {
    const status = await flock(fd, release, signal);
    isHeld = isOpen && status === 0 && isNamed(path, fd);
  } finally {
    if (!isHeld) release();
  }
  return isHeld ? { release } : null;
}

/** Probes with a shared lock, which is released at once. */
export function isHardLocked(path: string): boolean {
  const canLock = OPENS_LOCKED.has(process.platform) || (process.platform === "linux" && !isMissing);
  if (!canLock || !fs.lstatSync(path, { throwIfNoEntry: false })?.isFile()) return false;
  if (process.platform === "linux") return isFlocked(path);
  try {
    fs.closeSync(fs.openSync(path, O_RDONLY | O_SHLOCK | O_NONBLOCK | O_NOFOLLOW));
    return false;
  } catch (error) {
    if (HELD_ELSEWHERE.has(errnoOf(error) ?? "")) return true;
    throw error;
  }
}

function openLocked(path: string): DiskLock | "taken" | "none" {
  try {
    const fd = fs.openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_EXLOCK, 0o600);
    return { release: () => fs.closeSync(fd) };
  } catch (error) {
    if (HELD_ELSEWHERE.has(errnoOf(error) ?? "")) return "taken";
    if (NO_LOCKS.has(errnoOf(error) ?? "")) return "none";
    throw error;
  }
}

/**
 * The program's exit status; null if it could not run. Throws some of the system's errors: no memory, not permitted.
 */
function flock(fd: number, release: () => void, signal?: AbortSignal): Promise<number | null> {
  return new Promise((resolve) => {
    const child = childProcess().spawn("flock", ["-n", "-x", "3"], { stdio: ["ignore", "ignore", "ignore", fd] });
    child.unref();
    const stop = (): void => {
      // The child holds the open file too.
      child.kill("SIGKILL");
      release();
    };
    signal?.addEventListener("abort", stop, { once: true });
    child.on("error", (error) => {
      signal?.removeEventListener("abort", stop);
      if (errnoOf(error) === "ENOENT") isMissing = true;
      resolve(null);
    });
    child.on("exit", (status) => {
      signal?.removeEventListener("abort", stop);
      resolve(status);
    });
  });
}

function isFlocked(path: string): boolean {
  const fd = fs.openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    return flockNow(fd, "-s") === BUSY;
  } finally {
    fs.closeSync(fd);
  }
}

/** The program's exit status; null if it could not run. */
function flockNow(fd: number, kind: "-x" | "-s"): number | null {
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

import * as fs from "node:fs";
import { errnoOf } from "../errors.ts";
import type { DiskLock } from "./disk.ts";

/**
 * Locks that belong to an open file, not to the process: closing another descriptor of the same file does not release them.
 *
 * - Linux: `flock(2)`. Node cannot call it, but the program `flock` (util-linux, BusyBox) locks a descriptor that it inherits, and the lock stays with
 *   the open file after that program has ended. The child costs 2 ms, on a busy machine 20, so nobody waits for it on the way to a first append.
 * - macOS and the BSDs: `O_EXLOCK` at open. Windows: libuv maps the same request to a handle that nobody else can open.
 *
 * Where neither exists (a container without the program, a sandbox that forbids child processes), there is no hard lock: leases then rest on the POSIX
 * lock and on the fence (stores/lease.ts).
 */

const { O_RDWR, O_RDONLY, O_CREAT, O_NONBLOCK } = fs.constants;
const O_NOFOLLOW = fs.constants.O_NOFOLLOW ?? 0;
/** Not among Node's constants. BSD and macOS: sys/fcntl.h; Windows: libuv's UV_FS_O_EXLOCK. */
const O_SHLOCK = 0x10;
const O_EXLOCK = process.platform === "win32" ? 0x10000000 : 0x20;
const OPENS_LOCKED = new Set(["darwin", "freebsd", "openbsd", "netbsd", "win32"]);
const HELD_ELSEWHERE = new Set(["EAGAIN", "EWOULDBLOCK", "EBUSY"]);

/** Exit status of `flock -n` when somebody else has the lock. */
const BUSY = 1;
/** The program does not exist here: it is not tried again. */
let isMissing = false;
/** Loaded when a lock is asked for: most programs that import the library never need it, and it costs milliseconds. */
const childProcess = () => process.getBuiltinModule("node:child_process");

/** `signal`: the lock is no longer wanted. It is given back inside that call, also if this process then blocks and never hears that it had it. */
export async function hardLock(path: string, signal?: AbortSignal): Promise<DiskLock | null> {
  if (signal?.aborted) return null;
  if (OPENS_LOCKED.has(process.platform)) return openLocked(path);
  if (process.platform !== "linux") return null;
  const turn = nextTurn();
  if (turn) await turn;
  const since = performance.now();
  let blockedMs = 0;
  try {
    if (signal?.aborted || isMissing) return null;
    const lock = lockByChild(path, signal);
    blockedMs = performance.now() - since;
    return await lock;
  } finally {
    endTurn(blockedMs * REST);
  }
}

async function lockByChild(path: string, signal?: AbortSignal): Promise<DiskLock | null> {
  // For reading: a descriptor for writing would keep the file system from being made read-only.
  const fd = fs.openSync(path, O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600);
  let isOpen = true;
  const release = (): void => {
    if (isOpen) fs.closeSync(fd);
    isOpen = false;
  };
  const status = await flock(fd, release, signal);
  if (isOpen && status === 0 && isNamed(path, fd)) return { release };
  release();
  return null;
}

/** Looks by asking for a shared lock, which is given back at once. */
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

function openLocked(path: string): DiskLock | null {
  try {
    const fd = fs.openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_EXLOCK, 0o600);
    return { release: () => fs.closeSync(fd) };
  } catch (error) {
    if (HELD_ELSEWHERE.has(errnoOf(error) ?? "")) return null;
    throw error;
  }
}

/**
 * To start a child blocks this process: for milliseconds, for a tenth of a second if the process is large. So there is one at a time, and this many times as long passes before the next one:
 * a process that opens a thousand sessions at once goes on with its work meanwhile.
 */
const REST = 9;
let isTurnTaken = false;
const waiting: (() => void)[] = [];

/** Null if it is ours at once. */
function nextTurn(): Promise<void> | null {
  if (isTurnTaken) return new Promise((resolve) => waiting.push(resolve));
  isTurnTaken = true;
  return null;
}

function endTurn(restMs: number): void {
  const next = (): void => {
    const resolve = waiting.shift();
    if (resolve) resolve();
    else isTurnTaken = false;
  };
  if (restMs === 0) next();
  else setTimeout(next, restMs).unref();
}

/** The exit status of the program; null if it could not be run. */
function flock(fd: number, release: () => void, signal?: AbortSignal): Promise<number | null> {
  return new Promise((resolve) => {
    const child = childProcess().spawn("flock", ["-n", "-x", "3"], { stdio: ["ignore", "ignore", "ignore", fd] });
    child.unref();
    const stop = (): void => {
      // It has the open file too.
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
    const stdio = ["ignore", "ignore", "ignore", fd] as const;
    const { error, status } = childProcess().spawnSync("flock", ["-n", "-s", "3"], { stdio: [...stdio] });
    if (error && errnoOf(error) === "ENOENT") isMissing = true;
    return status === BUSY;
  } finally {
    fs.closeSync(fd);
  }
}

/** A lock on a file that was removed while we waited keeps nobody out. */
function isNamed(path: string, fd: number): boolean {
  const named = fs.lstatSync(path, { throwIfNoEntry: false });
  const open = fs.fstatSync(fd);
  return named?.ino === open.ino && named.dev === open.dev && named.isFile();
}

import { randomBytes } from "node:crypto";
import {
  closeSync,
  fsyncSync,
  linkSync,
  lstatSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { CommandError, EXIT } from "./exit.ts";

/** How several processes change one of the user's own files: one after another, each as a whole. */

/** Replaces the file as a whole, durably. `check` runs right before; if it throws, nothing has changed. */
export function replaceFile(path: string, text: string, check: () => void): void {
  const temporary = `${path}.${randomBytes(6).toString("hex")}.tmp`;
  try {
    writeFileSync(temporary, text, { flag: "wx", mode: 0o600 });
    const file = openSync(temporary, "r+");
    try {
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    check();
    renameSync(temporary, path);
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** Many people keep their configuration elsewhere, and a link to it here. */
export function realFile(path: string): string {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ? realpathSync(path) : path;
}

/** A change takes milliseconds; a busy machine may take longer. */
export const PATIENCE_MS = 10_000;
const LOCK_POLL_MS = 20;
const PID_MAX = 0x7f_ff_ff_ff;

/** Runs `work` while no other process changes this file. A lock whose process died is removed. */
export function locked(path: string, patienceMs: number, work: () => void): void {
  const lock = `${path}.lock`;
  const end = Date.now() + patienceMs;
  for (;;) {
    try {
      writeFileSync(lock, String(process.pid), { flag: "wx", mode: 0o600 });
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      if (removeIfDead(lock)) continue;
      if (Date.now() > end) throw busyFile(`Another process is changing ${path} and holds ${lock}.`);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOCK_POLL_MS);
    }
  }
  try {
    work();
  } finally {
    rmSync(lock, { force: true });
  }
}

/** Whether the lock was removed because its process is dead. Moved away first: another process may do the same. */
function removeIfDead(lock: string): boolean {
  const holder = holderOf(lock);
  if (holder === null ? !isOld(lock) : isAlive(holder)) return false;
  const moved = `${lock}.${randomBytes(6).toString("hex")}`;
  try {
    renameSync(lock, moved);
    // It was another lock by then, of a process that is alive: give it back.
    if (holderOf(moved) !== holder) linkSync(moved, lock);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOENT" && code !== "EEXIST") throw error;
  } finally {
    rmSync(moved, { force: true });
  }
  return true;
}

/** Its process died before it wrote its pid. */
function isOld(lock: string): boolean {
  const found = statSync(lock, { throwIfNoEntry: false });
  return found !== undefined && Date.now() - found.mtimeMs > PATIENCE_MS;
}

/** The process that holds the lock; null if that is not known, or nobody does any more. */
function holderOf(lock: string): number | null {
  try {
    const pid = Number(readFileSync(lock, "utf8"));
    return Number.isInteger(pid) && pid > 0 && pid <= PID_MAX ? pid : null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}

export function busyFile(what: string): CommandError {
  return new CommandError(EXIT.busy, "CONFIG_BUSY", `${what} Nothing was changed. Try again.`);
}

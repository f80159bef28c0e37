import type { Disk, DiskFile } from "holdfast/disk";
import { tell } from "./pipe.ts";

/**
 * Disk steps at which a process can be killed. `create` is the opening of a new file, `sync` both kinds of fdatasync.
 */
export type DiskStep =
  | "makeFolder"
  | "create"
  | "write"
  | "writeAt"
  | "truncate"
  | "sync"
  | "rename"
  | "link"
  | "remove"
  | "syncFolder"
  | "lock";

/** A named step in the work of a store, seen from outside: through its disk. */
export interface KillPoint {
  readonly name: string;
  /** `during` a write: after part of its bytes; `during` a sync: while the kernel is working. */
  readonly when: "before" | "during" | "after";
  readonly step: DiskStep;
  /** A regular expression for the path (for a rename or link: the new name). */
  readonly path: string;
  /** The nth such step of the process. Default: the first. */
  readonly nth?: number;
  /** Only writes of at least this many bytes count. */
  readonly bytesMin?: number;
  /** How much of an interrupted write is done, from 0 to 1. Default: half. */
  readonly share?: number;
  /** Announces the step and continues, so that the kernel itself is caught in the middle of it. */
  readonly announce?: true;
}

/** A disk that pauses at a point forever: the reader of the pipe kills the process there. */
export function pausingDisk(disk: Disk, point: KillPoint): Disk {
  const gate = new Gate(point);
  return {
    open: (path, mode) => {
      const open = (): DiskFile => new PausingFile(disk.open(path, mode), gate);
      return mode === "create" ? gate.step("create", path, open) : open();
    },
    stat: (path) => disk.stat(path),
    list: (path) => disk.list(path),
    makeFolder: (path) => gate.step("makeFolder", path, () => disk.makeFolder(path)),
    rename: (from, to) => gate.step("rename", to, () => disk.rename(from, to)),
    link: (from, to) => gate.step("link", to, () => disk.link(from, to)),
    remove: (path) => gate.step("remove", path, () => disk.remove(path)),
    removeFolder: (path) => disk.removeFolder(path),
    syncFolder: (path) => gate.step("syncFolder", path, () => disk.syncFolder(path)),
    lock: (path) => gate.step("lock", path, () => disk.lock(path)),
    isLocked: (path) => disk.isLocked(path),
    hardLock: (path, kind) => gate.step("lock", path, () => disk.hardLock(path, kind)),
    watch: (path, onChange) => disk.watch(path, onChange),
    networkKind: (path) => disk.networkKind(path),
    bootId: () => disk.bootId(),
  };
}

class Gate {
  readonly #point: KillPoint;
  readonly #path: RegExp;
  #left: number;

  constructor(point: KillPoint) {
    this.#point = point;
    this.#path = new RegExp(point.path);
    this.#left = point.nth ?? 1;
  }

  /** Whether this is the step of the point. Counts it. */
  matches(step: DiskStep, path: string, bytes = 0): boolean {
    const { step: wanted, bytesMin = 0 } = this.#point;
    if (step !== wanted || bytes < bytesMin || !this.#path.test(path)) return false;
    return --this.#left === 0;
  }

  get when(): KillPoint["when"] {
    return this.#point.when;
  }

  /** How many bytes of a write are done before the end: at least one, and not all. */
  part(bytes: number): number {
    return Math.max(1, Math.min(bytes - 1, Math.floor(bytes * (this.#point.share ?? 0.5))));
  }

  step<T>(step: DiskStep, path: string, act: () => T): T {
    if (!this.matches(step, path)) return act();
    if (this.when === "before") this.stop();
    const done = act();
    if (this.when !== "before") this.stop();
    return done;
  }

  stop(): void {
    tell({ e: "at", point: this.#point.name });
    if (!this.#point.announce) standStill();
  }
}

class PausingFile implements DiskFile {
  readonly path: string;
  readonly #file: DiskFile;
  readonly #gate: Gate;

  constructor(file: DiskFile, gate: Gate) {
    this.path = file.path;
    this.#file = file;
    this.#gate = gate;
  }

  read(into: Uint8Array, offset: number, length: number, position: number): number {
    return this.#file.read(into, offset, length, position);
  }
  write(bytes: Uint8Array): number {
    return this.#write("write", bytes, (part) => this.#file.write(part));
  }
  writeAt(bytes: Uint8Array, position: number): number {
    return this.#write("writeAt", bytes, (part) => this.#file.writeAt(part, position));
  }
  stat(): ReturnType<DiskFile["stat"]> {
    return this.#file.stat();
  }
  truncate(size: number): void {
    this.#gate.step("truncate", this.path, () => this.#file.truncate(size));
  }
  async sync(): Promise<void> {
    if (!this.#gate.matches("sync", this.path)) return this.#file.sync();
    if (this.#gate.when === "before") this.#gate.stop();
    const running = this.#file.sync();
    if (this.#gate.when === "during") this.#gate.stop();
    await running;
    if (this.#gate.when === "after") this.#gate.stop();
  }
  syncNow(): void {
    this.#gate.step("sync", this.path, () => this.#file.syncNow());
  }
  close(): void {
    this.#file.close();
  }

  #write(step: "write" | "writeAt", bytes: Uint8Array, write: (part: Uint8Array) => number): number {
    if (!this.#gate.matches(step, this.path, bytes.length)) return write(bytes);
    if (this.#gate.when === "before") this.#gate.stop();
    if (this.#gate.when === "during") {
      write(bytes.subarray(0, this.#gate.part(bytes.length)));
      this.#gate.stop();
    }
    const written = write(bytes);
    if (this.#gate.when === "after") this.#gate.stop();
    return written;
  }
}

/** Blocks the whole process, timers included, until it is killed or the laboratory dies. */
function standStill(): never {
  const laboratory = process.ppid;
  const cell = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    Atomics.wait(cell, 0, 0, 250);
    if (process.ppid !== laboratory) process.exit(1);
  }
}

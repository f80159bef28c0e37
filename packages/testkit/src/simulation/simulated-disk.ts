import type { Disk, DiskLock, DiskStat, OpenMode } from "holdfast/disk";
import { FileContent } from "./file-content.ts";
import { type FileInode, type FolderInode, type Inode, newFile, newFolder, walk } from "./inode.ts";
import { Machine, type MachineOptions, type Process, systemError } from "./machine.ts";
import { type Action, labelOf, type Plan, type Step, writing } from "./plan.ts";
import { mixSeeds } from "./random.ts";
import { SimulatedFile } from "./simulated-file.ts";
import { type Survival, seededSurvival } from "./survival.ts";

/** Thrown by every call of a dead process. No program sees it: it stands for the code that did not run. */
export class Crashed extends Error {
  override readonly name = "Crashed";

  constructor(step: Step) {
    super(`the simulated process died at step ${step.index} (${labelOf(step)})`);
  }
}

export interface SimulatedDiskOptions extends MachineOptions {
  /** Removed from the beginning of paths in labels. Default: `/store`. */
  readonly root?: string;
}

/**
 * A disk in memory that can lose its power, under the real folder store. One object is one process's view of a machine.
 *
 * The model (docs/RULES.md, S22):
 *
 * - A file has durable pages of 4 KiB, dirty pages, and a size. Reads see the newest bytes.
 * - A power cut keeps, for each dirty page separately, the durable bytes (zeros beyond the durable size), the newest
 *   bytes, any content in between (the kernel writes back when it likes), or a mix of these by sectors of 512 bytes.
 * - The size is anything between the smallest and the largest since the durable one: an unsynced ftruncate may be
 *   undone, and a file may have its newest size over zeros.
 * - fsync makes durable what was written when it was issued. A write during a running fsync may or may not be included.
 *   A crash before its end promises nothing.
 * - A failed fsync leaves its pages readable and clean: the next fsync succeeds and writes nothing of them (except the
 *   size), and a crash, or memory pressure (`dropCache`), drops them. A page that is written again is dirty again, as a
 *   whole. But if all of it was beyond the durable size, writing in place does not help: fsync confirms it and zeros
 *   come back (measured on ext4, Linux 6.18). Only what is cut off and grows again has new blocks.
 * - fsync of a file does not cover its name. Of the unsynced creations, links, renames and removals in a folder, any
 *   subset is kept. A rename is one of them, and can be durable before the data of its file; it never loses the file.
 *   Between two folders, each folder's sync makes its own half durable: until the old one is synced, a file can be in
 *   both (a folder cannot).
 * - A failed sync of a folder leaves its changes pending: there are no pages to forget, and the next one can succeed.
 * - SIGKILL keeps all finished writes, in the cache, and a byte prefix of the one in flight.
 * - An inode keeps its number over renames and crashes. An open file keeps working after its name is gone or refers to
 *   another file.
 * - Locks belong to an inode and a process, end with either, and are released silently when the process closes any
 *   descriptor of that file (S13). There are no hard locks, so everything relies on the fence (stores/lease.ts).
 * - A positional write to an `append` handle appends (Linux), and an `append` handle cannot truncate (Windows).
 *
 * Every call is a numbered step; the plan is asked before it happens. There is no clock: a modification time is a step
 * number. Not in the model: stale blocks in place of zeros, bit rot, a disk that lies about a flush, reused inode
 * numbers.
 */
export class SimulatedDisk implements Disk {
  readonly #machine: Machine;
  readonly #root: string;
  readonly #process: Process;
  #diedAt: Step | null = null;
  /** Resolves when this process dies, with the step at which it did. A running `sync` then rejects with `Crashed`. */
  readonly crashed: Promise<Step>;

  constructor(options: SimulatedDiskOptions = {}, machine?: Machine) {
    this.#machine = machine ?? new Machine(options);
    this.#root = options.root ?? "/store";
    const crashed = Promise.withResolvers<Step>();
    this.crashed = crashed.promise;
    const die = (step: Step): void => {
      if (this.#process.dead) return;
      this.#process.dead = true;
      this.#diedAt = step;
      this.#machine.reap(this.#process);
      crashed.resolve(step);
    };
    this.#process = { id: this.#machine.processes.length + 1, dead: false, die };
    this.#machine.processes.push(this.#process);
  }

  /** The step at which this process died; null while it lives. */
  get diedAt(): Step | null {
    return this.#diedAt;
  }

  get trace(): readonly Step[] {
    return this.#machine.trace;
  }

  /** How many steps the machine has made: the index of the next one. */
  get steps(): number {
    return this.#machine.trace.length;
  }

  label(step: Step): string {
    return labelOf(step, this.#root);
  }

  set plan(plan: Plan | null) {
    this.#machine.plan = plan;
  }

  /** Called before each step takes effect. */
  set onStep(listener: ((step: Step) => void) | null) {
    this.#machine.onStep = listener;
  }

  /** Can be raised and lowered at any time. */
  set capacityBytes(bytes: number) {
    this.#machine.capacityBytes = bytes;
  }

  /** Another process on the same machine. */
  process(): SimulatedDisk {
    return new SimulatedDisk({ root: this.#root }, this.#machine);
  }

  /** Kills this process between two of its steps. The machine continues. */
  kill(): void {
    this.#process.die(this.#betweenSteps());
  }

  /** Cuts the power between two steps: every process is dead. */
  cutPower(): void {
    for (const process of this.#machine.processes) process.die(this.#betweenSteps());
  }

  /** A new process on a copy of the machine as it is now, with everything in its cache; locks are free. */
  afterKill(options: MachineOptions = {}): SimulatedDisk {
    return new SimulatedDisk({ root: this.#root }, this.#machine.copy(options));
  }

  /** The machine after a power cut now: one of the legal states, by a seed or by choice. This disk does not change. */
  afterCrash(choice: number | Survival, options: MachineOptions = {}): SimulatedDisk {
    const survival = typeof choice === "number" ? seededSurvival(choice) : choice;
    const seed = typeof choice === "number" ? mixSeeds(this.#machine.seed, choice) : this.#machine.seed;
    return new SimulatedDisk({ root: this.#root }, this.#machine.afterCrash(survival, { seed, ...options }));
  }

  /** Whether a power cut can leave only one state. */
  get isDurable(): boolean {
    for (const { inode } of walk(this.#machine.root)) {
      if (!(inode.kind === "file" ? inode.content.isDurable : inode.names.isDurable)) return false;
    }
    return true;
  }

  /** Resolves when no sync is running on the machine, so that no fault is still to be reported. */
  async quiet(): Promise<void> {
    while (this.#machine.syncsRunning > 0) await new Promise<void>((resolve) => setImmediate(resolve));
  }

  /** Memory pressure: drops what a failed fsync left in the cache. */
  dropCache(): void {
    for (const { inode } of walk(this.#machine.root)) if (inode.kind === "file") inode.content.dropCache();
  }

  /** Every file with its bytes, and every folder with null, without a step. */
  tree(): Map<string, Uint8Array | null> {
    const found = new Map<string, Uint8Array | null>();
    for (const { path, inode } of walk(this.#machine.root)) {
      found.set(path, inode.kind === "file" ? inode.content.bytes() : null);
    }
    return found;
  }

  /** Puts durable bytes into a file without a step, and creates the file if needed: damage, or an initial state. */
  plant(path: string, bytes: Uint8Array): void {
    const { folder, name } = this.#parent("plant", path);
    const inode = folder.names.get(name) ?? newFile(this.#machine.newIno(), this.#machine.now);
    if (inode.kind !== "file") throw systemError("EISDIR", "plant", path);
    inode.content = FileContent.durable(bytes);
    inode.mtimeMs = this.#machine.now;
    if (folder.names.get(name) !== undefined) return;
    folder.names.add(name, inode);
    folder.names.sync();
  }

  /** Does part of a write to a file, without a step: what the kernel had done of it when its process was killed. */
  partOfWrite(ino: number, position: number, bytes: Uint8Array): void {
    for (const { inode } of walk(this.#machine.root)) {
      if (inode.kind === "file" && inode.ino === ino) inode.content.write(bytes, position);
    }
  }

  open(path: string, mode: OpenMode): SimulatedFile {
    this.#step({ operation: mode === "create" ? "create" : "open", path });
    const { folder, name } = this.#parent("open", path);
    let inode = folder.names.get(name);
    if (mode === "create") {
      if (inode !== undefined) throw systemError("EEXIST", "open", path);
      inode = newFile(this.#machine.newIno(), this.#machine.now);
      folder.names.add(name, inode);
      this.#touched(folder);
    }
    if (inode === undefined) throw systemError("ENOENT", "open", path);
    if (inode.kind === "folder") throw systemError("EISDIR", "open", path);
    const file = inode;
    return new SimulatedFile({
      path,
      mode,
      file,
      machine: this.#machine,
      process: this.#process,
      step: (step) => this.#step({ path, ...step }),
      stat: () => this.#statOf(file),
      changed: () => this.#machine.changed(folder.ino),
      die: (step) => {
        this.#process.die(step);
        return new Crashed(step);
      },
    });
  }

  stat(path: string): DiskStat | null {
    this.#step({ operation: "stat", path });
    const inode = this.#find(path);
    return inode === null ? null : this.#statOf(inode);
  }

  list(path: string): string[] {
    this.#step({ operation: "list", path });
    return this.#folder("scandir", path).names.names;
  }

  makeFolder(path: string): boolean {
    this.#step({ operation: "makeFolder", path });
    const { folder, name } = this.#parent("mkdir", path);
    const there = folder.names.get(name);
    if (there?.kind === "folder") return false;
    if (there !== undefined) throw systemError("EEXIST", "mkdir", path);
    folder.names.add(name, newFolder(this.#machine.newIno(), this.#machine.now));
    this.#touched(folder);
    return true;
  }

  rename(from: string, to: string): void {
    this.#step({ operation: "rename", path: from, to });
    const source = this.#parent("rename", from);
    const target = this.#parent("rename", to);
    const inode = source.folder.names.get(source.name);
    if (inode === undefined) throw systemError("ENOENT", "rename", from);
    const replaced = target.folder.names.get(target.name);
    if (replaced === inode) return;
    if (replaced !== undefined) {
      if (inode.kind === "file" && replaced.kind === "folder") throw systemError("EISDIR", "rename", to);
      if (inode.kind === "folder" && replaced.kind === "file") throw systemError("ENOTDIR", "rename", to);
      if (replaced.kind === "folder" && replaced.names.names.length > 0) throw systemError("ENOTEMPTY", "rename", to);
    }
    source.folder.names.move(source.name, target.folder.names, target.name);
    this.#touched(source.folder);
    if (target.folder !== source.folder) this.#touched(target.folder);
  }

  link(from: string, to: string): void {
    this.#step({ operation: "link", path: from, to });
    const inode = this.#find(from);
    const target = this.#parent("link", to);
    if (inode === null) throw systemError("ENOENT", "link", from);
    if (inode.kind === "folder") throw systemError("EPERM", "link", from);
    if (target.folder.names.get(target.name) !== undefined) throw systemError("EEXIST", "link", to);
    target.folder.names.add(target.name, inode);
    this.#touched(target.folder);
  }

  remove(path: string): void {
    this.#step({ operation: "remove", path });
    const { folder, name } = this.#parent("unlink", path);
    const inode = folder.names.get(name);
    if (inode === undefined) throw systemError("ENOENT", "unlink", path);
    if (inode.kind === "folder") throw systemError("EISDIR", "unlink", path);
    folder.names.remove(name);
    this.#touched(folder);
  }

  removeFolder(path: string): void {
    this.#step({ operation: "removeFolder", path });
    const { folder, name } = this.#parent("rmdir", path);
    const inode = folder.names.get(name);
    if (inode === undefined) throw systemError("ENOENT", "rmdir", path);
    if (inode.kind === "file") throw systemError("ENOTDIR", "rmdir", path);
    if (inode.names.names.length > 0) throw systemError("ENOTEMPTY", "rmdir", path);
    folder.names.remove(name);
    this.#touched(folder);
  }

  syncFolder(path: string): void {
    this.#step({ operation: "syncFolder", path });
    this.#folder("fsync", path).names.sync();
  }

  lock(path: string): DiskLock | null {
    const inode = this.#lockable(path);
    const { locks } = this.#machine;
    if (locks.has(inode.ino)) return null;
    const holder: Process = this.#process;
    locks.set(inode.ino, holder);
    let released = false;
    return {
      release: () => {
        this.#step({ operation: "release", path });
        if (!released && locks.get(inode.ino) === holder) locks.delete(inode.ino);
        released = true;
      },
    };
  }

  isLocked(path: string): boolean {
    return this.#machine.locks.has(this.#lockable(path).ino);
  }

  hardLock(_path: string): "none" {
    return "none";
  }

  #lockable(path: string): FileInode {
    this.#step({ operation: "lock", path });
    const inode = this.#find(path);
    if (inode === null) throw systemError("ENOENT", "lock", path);
    if (inode.kind === "folder") throw systemError("EISDIR", "lock", path);
    if (inode.content.size > 0) throw systemError("EBADF", "lock", path);
    return inode;
  }

  watch(path: string, onChange: () => void): () => void {
    this.#step({ operation: "watch", path });
    const watcher = { folder: this.#folder("watch", path).ino, process: this.#process, onChange };
    this.#machine.watchers.add(watcher);
    return () => {
      this.#machine.watchers.delete(watcher);
    };
  }

  networkKind(path: string): string | null {
    this.#step({ operation: "networkKind", path });
    return null;
  }

  /** SQLite files are not on this disk, so nothing on it asks for the name. */
  bootId(): null {
    return null;
  }

  /** Counts the call, and lets the plan fail it or end the process. Returns what the call itself must act on. */
  #step(call: Omit<Step, "index" | "process">): Action | null {
    if (this.#diedAt !== null) throw new Crashed(this.#diedAt);
    const machine = this.#machine;
    const step: Step = { index: machine.trace.length, process: this.#process.id, ...call };
    machine.onStep?.(step);
    machine.trace.push(step);
    const action = machine.plan?.(step) ?? null;
    if (action === null) return null;
    if ("crash" in action) {
      if (action.crash === "power") for (const process of machine.processes) process.die(step);
      else if (action.bytes !== undefined && writing.has(call.operation)) return action;
      else this.#process.die(step);
      throw new Crashed(step);
    }
    if ("short" in action) return action;
    // A failing sync still has an effect: its file handles it.
    if (call.operation === "sync" || call.operation === "synced" || call.operation === "syncNow") return action;
    throw systemError(action.fail, call.operation, call.path);
  }

  #betweenSteps(): Step {
    return { index: this.steps, process: this.#process.id, operation: "close", path: "(between two steps)" };
  }

  #touched(folder: FolderInode): void {
    folder.mtimeMs = this.#machine.now;
    this.#machine.changed(folder.ino);
  }

  #statOf(inode: Inode): DiskStat {
    const size = inode.kind === "file" ? inode.content.size : 4096;
    return { kind: inode.kind, size, dev: 1, ino: inode.ino, mtimeMs: inode.mtimeMs, links: 1 };
  }

  /** Null if there is no such name; ENOTDIR if the path leads through a file. */
  #find(path: string): Inode | null {
    let inode: Inode = this.#machine.root;
    for (const name of namesIn(path)) {
      if (inode.kind !== "folder") throw systemError("ENOTDIR", "stat", path);
      const next = inode.names.get(name);
      if (next === undefined) return null;
      inode = next;
    }
    return inode;
  }

  #folder(operation: string, path: string): FolderInode {
    const inode = this.#find(path);
    if (inode === null) throw systemError("ENOENT", operation, path);
    if (inode.kind === "file") throw systemError("ENOTDIR", operation, path);
    return inode;
  }

  #parent(operation: string, path: string): { readonly folder: FolderInode; readonly name: string } {
    const names = namesIn(path);
    const name = names.pop();
    if (name === undefined) throw systemError("EBUSY", operation, path);
    return { folder: this.#folder(operation, names.join("/")), name };
  }
}

/** The names of an absolute path; a drive letter counts as the root. */
function namesIn(path: string): string[] {
  return path.split(/[\\/]/u).filter((name) => name !== "" && name !== "." && !/^[a-z]:$/iu.test(name));
}

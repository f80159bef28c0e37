import { constants } from "node:os";
import { copyTree, type FileInode, type FolderInode, type Inode, newFolder, treeAfterCrash, walk } from "./inode.ts";
import type { Plan, Step } from "./plan.ts";
import { mixSeeds, type Random, seededRandom } from "./random.ts";
import type { Survival } from "./survival.ts";

/** What a program sees of a failed call: a system error with a code, like those of node:fs. */
export function systemError(code: string, operation: string, path: string): NodeJS.ErrnoException {
  const error: NodeJS.ErrnoException = new Error(`${code}: simulated, ${operation} '${path}'`);
  error.code = code;
  const number = (constants.errno as Readonly<Record<string, number>>)[code];
  if (number !== undefined) error.errno = -number;
  error.syscall = operation;
  error.path = path;
  return error;
}

/** A process, as the machine knows it. */
export interface Process {
  readonly id: number;
  dead: boolean;
  /** The machine lost power, or the process was killed, at this step. */
  die(step: Step): void;
}

export interface MachineOptions {
  /** Decides when an asynchronous sync ends. */
  readonly seed?: number;
  readonly plan?: Plan | null;
  /** How many bytes all files may have together. */
  readonly capacityBytes?: number;
  /** Called before each step takes effect, to copy the disk. */
  readonly onStep?: ((step: Step) => void) | null;
}

/** One computer: a file system with its cache, the locks of its kernel, and its processes. */
export class Machine {
  readonly root: FolderInode;
  readonly seed: number;
  readonly random: Random;
  plan: Plan | null;
  onStep: ((step: Step) => void) | null;
  capacityBytes: number;
  readonly trace: Step[] = [];
  readonly processes: Process[] = [];
  /** By inode number: who holds the lock. */
  readonly locks: Map<number, Process> = new Map();
  readonly watchers: Set<{ readonly folder: number; readonly process: Process; readonly onChange: () => void }> =
    new Set();
  /** Open files without a name take space. */
  readonly openFiles: Set<{ readonly file: FileInode; readonly process: Process }> = new Set();
  syncsRunning = 0;
  #nextIno: number;

  constructor(options: MachineOptions = {}, root?: FolderInode) {
    this.root = root ?? newFolder(1, 0);
    this.seed = options.seed ?? 1;
    this.random = seededRandom(mixSeeds(this.seed, 0xd15c));
    this.plan = options.plan ?? null;
    this.onStep = options.onStep ?? null;
    this.capacityBytes = options.capacityBytes ?? Number.POSITIVE_INFINITY;
    this.#nextIno = Math.max(...[...walk(this.root)].map(({ inode }) => inode.ino)) + 1;
  }

  newIno(): number {
    return this.#nextIno++;
  }

  /** Without a real clock: later events have a later time. */
  get now(): number {
    return this.trace.length;
  }

  /** How many more bytes fit. */
  freeBytes(): number {
    if (this.capacityBytes === Number.POSITIVE_INFINITY) return this.capacityBytes;
    const files = new Set<Inode>([...this.openFiles].map((open) => open.file));
    for (const { inode } of walk(this.root)) files.add(inode);
    let used = 0;
    for (const inode of files) if (inode.kind === "file") used += inode.content.size;
    return Math.max(0, this.capacityBytes - used);
  }

  changed(folder: number): void {
    for (const watcher of this.watchers) {
      if (watcher.folder !== folder) continue;
      queueMicrotask(() => {
        if (!watcher.process.dead && this.watchers.has(watcher)) watcher.onChange();
      });
    }
  }

  /** Everything the kernel holds for a process ends with it. */
  reap(process: Process): void {
    for (const [ino, holder] of this.locks) if (holder === process) this.locks.delete(ino);
    for (const watcher of this.watchers) if (watcher.process === process) this.watchers.delete(watcher);
    for (const open of this.openFiles) if (open.process === process) this.openFiles.delete(open);
  }

  copy(options: MachineOptions): Machine {
    const copy = new Machine({ seed: this.seed, capacityBytes: this.capacityBytes, ...options }, copyTree(this.root));
    copy.#nextIno = this.#nextIno;
    return copy;
  }

  afterCrash(survival: Survival, options: MachineOptions): Machine {
    const after = new Machine(
      { seed: this.seed, capacityBytes: this.capacityBytes, ...options },
      treeAfterCrash(this.root, survival),
    );
    after.#nextIno = this.#nextIno;
    return after;
  }
}

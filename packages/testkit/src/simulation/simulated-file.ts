import type { DiskFile, DiskStat, OpenMode } from "holdfast/disk";
import type { Capture } from "./file-content.ts";
import type { FileInode } from "./inode.ts";
import { type Machine, type Process, systemError } from "./machine.ts";
import type { Action, Step } from "./plan.ts";

/** What an open file needs from its disk. */
export interface Opening {
  readonly path: string;
  readonly mode: OpenMode;
  readonly file: FileInode;
  readonly machine: Machine;
  readonly process: Process;
  step(call: Omit<Step, "index" | "process" | "path">): Action | null;
  stat(): DiskStat;
  changed(): void;
  /** Ends the process in the middle of a step; returns what to throw. */
  die(step: Step): Error;
}

/** A descriptor. It belongs to the file itself, whatever happens to the name. */
export class SimulatedFile implements DiskFile {
  readonly path: string;
  readonly #opening: Opening;
  #closed = false;

  constructor(opening: Opening) {
    this.#opening = opening;
    this.path = opening.path;
    opening.machine.openFiles.add(opening);
  }

  read(into: Uint8Array, offset: number, length: number, position: number): number {
    this.#opening.step({ operation: "read", bytes: length, position });
    this.#must("read", this.#opening.mode !== "create");
    return this.#opening.file.content.read(into, offset, length, position);
  }

  write(bytes: Uint8Array): number {
    return this.#put("write", bytes, this.#opening.file.content.size);
  }

  writeAt(bytes: Uint8Array, position: number): number {
    // Linux appends positional writes on O_APPEND (S9).
    const { mode, file } = this.#opening;
    return this.#put("writeAt", bytes, mode === "append" ? file.content.size : position);
  }

  stat(): DiskStat {
    this.#opening.step({ operation: "fileStat" });
    this.#must("fstat", true);
    return this.#opening.stat();
  }

  truncate(size: number): void {
    this.#opening.step({ operation: "truncate", bytes: size });
    this.#must("ftruncate", true);
    // Windows cannot truncate an append handle (S11); a store that relies on it would fail there.
    if (this.#opening.mode !== "update") throw systemError("EPERM", "ftruncate", this.path);
    this.#opening.file.content.truncate(size);
    this.#written();
  }

  async sync(): Promise<void> {
    const action = this.#opening.step({ operation: "sync" });
    this.#must("fdatasync", true);
    const { machine, file } = this.#opening;
    const capture = file.content.capture();
    machine.syncsRunning += 1;
    await this.#later();
    machine.syncsRunning -= 1;
    const atEnd = this.#opening.step({ operation: "synced" });
    // A descriptor that was closed in between may belong to another file by now (S10).
    this.#must("fdatasync", true);
    this.#end(action ?? atEnd, capture);
  }

  syncNow(): void {
    const action = this.#opening.step({ operation: "syncNow" });
    this.#must("fdatasync", true);
    this.#end(action, this.#opening.file.content.capture());
  }

  close(): void {
    this.#opening.step({ operation: "close" });
    this.#must("close", true);
    this.#closed = true;
    const { machine, file, process } = this.#opening;
    machine.openFiles.delete(this.#opening);
    // POSIX: closing any descriptor of a file silently releases the process's locks on it (S13).
    if (machine.locks.get(file.ino) === process) machine.locks.delete(file.ino);
  }

  #put(operation: "write" | "writeAt", bytes: Uint8Array, position: number): number {
    const { machine, file } = this.#opening;
    const action = this.#opening.step({ operation, bytes: bytes.length, position, ino: file.ino, content: bytes });
    this.#must(operation, this.#opening.mode !== "read");
    let count = bytes.length;
    if (action !== null && "short" in action) count = Math.min(count, action.short);
    if (action !== null && "crash" in action && action.crash === "kill") count = Math.min(count, action.bytes ?? 0);
    const growth = Math.max(0, position + count - file.content.size);
    const free = growth === 0 ? growth : machine.freeBytes();
    if (growth > free) count -= growth - free;
    if (count <= 0 && bytes.length > 0 && growth > free) throw systemError("ENOSPC", operation, this.path);
    file.content.write(bytes.subarray(0, count), position);
    if (count > 0) this.#written();
    if (action !== null && "crash" in action) throw this.#opening.die(machine.trace.at(-1)!);
    return count;
  }

  #end(action: Action | null, capture: Capture): void {
    const { content } = this.#opening.file;
    if (action === null || !("fail" in action)) {
      content.settle(capture);
      return;
    }
    content.lose(capture);
    throw systemError(action.fail, "fdatasync", this.path);
  }

  /** A sync ends in this turn of the event loop or in a later one: writes can come in between. */
  async #later(): Promise<void> {
    const turns = this.#opening.machine.random.below(4);
    await Promise.resolve();
    for (let turn = 0; turn < turns; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
  }

  #written(): void {
    const { file, machine } = this.#opening;
    file.mtimeMs = machine.now;
    this.#opening.changed();
  }

  #must(call: string, allowed: boolean): void {
    if (this.#closed || !allowed) throw systemError("EBADF", call, this.path);
  }
}

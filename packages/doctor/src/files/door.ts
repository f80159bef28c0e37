import { closeSync, constants, fstatSync, lstatSync, mkdtempSync, opendirSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expandZstd } from "./expand.ts";
import { SourceFile } from "./source-file.ts";

/**
 * The only way to what others wrote. It opens regular files of this user and nothing else, follows no link below the
 * path that the user named, waits for nothing (a FIFO), and writes only to a temporary folder of its own.
 */

export interface DoorLimits {
  /** Entries of one folder. */
  readonly entriesMax: number;
  /** Bytes that a compressed file may hold. */
  readonly expandedBytesMax: number;
}

const LIMITS: DoorLimits = { entriesMax: 200_000, expandedBytesMax: 64 * 2 ** 30 };

/** A file or folder that is not opened, and why. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly path: string;
  constructor(path: string, why: string, cause?: unknown) {
    super(why, cause === undefined ? undefined : { cause });
    this.path = path;
  }
}

export interface FolderEntry {
  readonly name: string;
  readonly path: string;
  readonly kind: "file" | "folder";
}

export interface FileFacts {
  readonly size: number;
  readonly modifiedMs: number;
  /** Permission bits. */
  readonly mode: number;
  readonly inode: number;
}

/** A session that was kept, and where its agent had it. */
export interface KeptPlace {
  readonly agent: string;
  readonly id: string;
  readonly path: string;
  readonly parts: readonly string[];
}

export class Door implements Disposable {
  /** The door of the whole run: of one that was made by `inner`, the outermost. It holds what sessions share. */
  readonly run: Door;
  /** Of the run: where Holdfast keeps the files of a session, by its agent and id; null if it keeps none. */
  keptFolderOf: ((agent: string, session: string) => string | null) | null = null;
  /** The sessions of which it keeps files, where they were. */
  keptSessions: (() => readonly KeptPlace[]) | null = null;
  readonly #limits: DoorLimits;
  readonly #onRefused: ((refused: Refused) => void) | null;
  readonly #open = new Set<Disposable>();
  readonly #expanded = new Map<string, SourceFile>();
  #folder: string | null = null;
  #numbers = 0;

  /** `onRefused`: gets what a folder that cannot be listed is refused for, which then counts as empty. */
  constructor(
    limits: Partial<DoorLimits> = {},
    run: Door | null = null,
    onRefused: ((refused: Refused) => void) | null = null,
  ) {
    this.#limits = { ...LIMITS, ...limits };
    this.run = run ?? this;
    this.#onRefused = onRefused;
  }

  /** A door for a part of the work, such as one session: what it opens is closed with it. */
  inner(): Door {
    return new Door(this.#limits, this.run, this.#onRefused);
  }

  /** What is in a folder, by name; links, FIFOs and the like are left out. Empty if there is no such folder. */
  *list(folder: string): Generator<FolderEntry> {
    let entries: readonly FolderEntry[] = [];
    try {
      entries = this.#entriesOf(folder);
    } catch (error) {
      if (!(error instanceof Refused) || this.#onRefused === null) throw error;
      this.#onRefused(error);
    }
    yield* entries;
  }

  #entriesOf(folder: string): readonly FolderEntry[] {
    const entries: FolderEntry[] = [];
    try {
      // Asked of every session for a folder that few have: an error for each would cost more than the rest.
      if (!lstatSync(folder, { throwIfNoEntry: false })?.isDirectory()) return [];
      using dir = opendirSync(folder);
      for (let entry = dir.readSync(); entry !== null; entry = dir.readSync()) {
        const kind = entry.isFile() ? "file" : entry.isDirectory() ? "folder" : null;
        if (kind !== null) entries.push({ name: entry.name, path: join(folder, entry.name), kind });
        if (entries.length > this.#limits.entriesMax)
          throw new Refused(folder, `it has more than ${this.#limits.entriesMax} entries`);
      }
    } catch (error) {
      if (error instanceof Refused) throw error;
      if (isMissing(error)) return [];
      throw new Refused(folder, wordsOf(error), error);
    }
    // By code units: the same order on every machine.
    return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Null if there is nothing, or no regular file. */
  facts(path: string): FileFacts | null {
    try {
      const stat = lstatSync(path);
      return stat.isFile()
        ? { size: stat.size, modifiedMs: stat.mtimeMs, mode: stat.mode & 0o7777, inode: stat.ino }
        : null;
    } catch (error) {
      if (isMissing(error)) return null;
      throw new Refused(path, wordsOf(error), error);
    }
  }

  kindOf(path: string): "file" | "folder" | "other" | null {
    try {
      const stat = lstatSync(path);
      return stat.isFile() ? "file" : stat.isDirectory() ? "folder" : "other";
    } catch (error) {
      if (isMissing(error)) return null;
      throw new Refused(path, wordsOf(error), error);
    }
  }

  /** Opens a file for reading, as it is: a compressed one too. Throws `Refused`. */
  openRaw(path: string): SourceFile {
    let descriptor: number;
    try {
      const flags = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
      descriptor = openSync(path, flags);
    } catch (error) {
      throw new Refused(path, wordsOf(error), error);
    }
    const stat = fstatSync(descriptor);
    const user = process.geteuid?.();
    const isForeign = user !== undefined && user !== 0 && stat.uid !== user && stat.uid !== 0;
    if (!stat.isFile() || isForeign) {
      closeSync(descriptor);
      throw new Refused(path, isForeign ? "it belongs to another user" : "it is no regular file");
    }
    return this.keep(new SourceFile(path, descriptor, stat.size));
  }

  /** The same, expanded if it is compressed (Zstandard): `isCut` then says whether its end is missing. */
  async open(path: string): Promise<SourceFile> {
    const file = this.openRaw(path);
    if (!file.isZstd()) return file;
    const target = join(this.temporary(), `${this.nextNumber()}.expanded`);
    const expanded = await expandZstd(file, target, { bytesMax: this.#limits.expandedBytesMax });
    this.#expanded.set(path, expanded);
    return this.keep(expanded);
  }

  /** A file that was opened before, to read a place in it once more. */
  openAgain(path: string): SourceFile {
    return this.#expanded.get(path) ?? this.openRaw(path);
  }

  /** A file that the door closes with its own. */
  keep<T extends Disposable>(opened: T): T {
    this.#open.add(opened);
    return opened;
  }

  /** Closes what it keeps before its own end. */
  release(opened: Disposable): void {
    this.#open.delete(opened);
    opened[Symbol.dispose]();
  }

  /** For names in the temporary folder. */
  nextNumber(): number {
    return ++this.#numbers;
  }

  /** A folder that only this user can enter; it is gone when the door is closed. */
  temporary(): string {
    this.#folder ??= mkdtempSync(join(tmpdir(), "holdfast-doctor-"));
    return this.#folder;
  }

  [Symbol.dispose](): void {
    for (const file of this.#open) file[Symbol.dispose]();
    this.#open.clear();
    if (this.#folder !== null) rmSync(this.#folder, { recursive: true, force: true });
    this.#folder = null;
  }
}

function isMissing(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR", "ENAMETOOLONG"].includes(codeOf(error));
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

function wordsOf(error: unknown): string {
  const words: Readonly<Record<string, string>> = {
    ENOENT: "it is not there",
    EACCES: "permission denied",
    EPERM: "permission denied",
    ELOOP: "it is a symbolic link",
    EMFILE: "this process has too many files open",
    EIO: "the disk cannot read it",
    ENXIO: "it is a named pipe or a socket",
  };
  return words[codeOf(error)] ?? (error instanceof Error ? error.message : String(error));
}

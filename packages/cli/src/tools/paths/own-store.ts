import { lstatSync, readdirSync, type Stats, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { onDisk } from "../../store/address.ts";
import { isInside, realPath } from "./real-path.ts";

/**
 * The files of the agent's own store. Tools run in the process that has the store open, and closing any descriptor of a
 * locked file in that process releases the operating system's lock (S13, S21). So no tool opens these files, whatever
 * the rules allow. Plain data, so that it can be sent to a worker thread.
 */
export interface OwnStore {
  /** Everything in these folders belongs to the store, except `outputs`. */
  readonly folders: readonly string[];
  /** What the tools have printed. */
  readonly outputs: string;
  readonly files: readonly string[];
  /** Each file in these folders carries a lock. */
  readonly locks: readonly string[];
}

const SQLITE_ENDINGS = ["", "-wal", "-shm", "-journal"];

/** Null if the store is not on the disk. */
export function ownStore(storeUrl: string): OwnStore | null {
  const place = onDisk(storeUrl);
  if (!place) return null;
  const path = inTruth(place.path);
  if (place.kind === "folder") {
    const databases = ["catalog.sqlite", "search.sqlite"].flatMap((name) => SQLITE_ENDINGS.map((one) => name + one));
    return {
      folders: [path],
      outputs: join(path, "outputs"),
      files: databases.map((name) => join(path, name)),
      locks: [join(path, "leases")],
    };
  }
  const databases = [path, `${path}-search`].flatMap((name) => SQLITE_ENDINGS.map((one) => name + one));
  return {
    folders: [],
    outputs: `${path}.outputs`,
    files: [...databases, `${path}-lock`, `${path}-holder`],
    locks: [],
  };
}

function inTruth(path: string): string {
  try {
    return realPath("/", path);
  } catch (error) {
    if (error instanceof Error) return path;
    throw error;
  }
}

/**
 * Refuses a real path that belongs to the store: by its name, by its identity (the file system may ignore case, or show
 * a folder in two places), or by another name of the same file.
 */
export function assertNotOwn(own: OwnStore | null | undefined, path: string, shown: string): void {
  if (!own || !isOwn(own, path)) return;
  throw new Error(`${shown} belongs to the agent's own store, which tools may not touch. Nothing was done.`);
}

export function isOwn(own: OwnStore, path: string): boolean {
  if (isNamed(own, path)) return true;
  // If `outputs` is a link, what it leads to is not tool output.
  const outputs = isLink(own.outputs) ? null : identityOf(own.outputs);
  const folders = identitiesOf(own.folders);
  for (let here = path; ; here = dirname(here)) {
    const identity = identityOf(here);
    // Tool output is allowed, unless it is a second name of one of the store's files.
    if (identity !== null && identity === outputs) break;
    if (identity !== null && folders.has(identity)) return true;
    if (here === dirname(here)) break;
  }
  const found = statOf(path);
  return found !== null && new OwnFiles(own).has(found);
}

/** The same check for an entry that a walk finds in a folder outside the store. */
export function isOwnEntry(own: OwnStore, path: string, isFolder: boolean): boolean {
  if (isNamed(own, path)) return true;
  const identity = isFolder ? identityOf(path) : null;
  return identity !== null && identitiesOf(own.folders).has(identity);
}

function isNamed({ folders, files, outputs }: OwnStore, path: string): boolean {
  if (isInside(outputs, path)) return false;
  return files.includes(path) || folders.some((folder) => isInside(folder, path));
}

/** The store's files, by identity. A file outside the store that has only one name cannot be one of its locks. */
export class OwnFiles {
  readonly #own: OwnStore;
  readonly #files: ReadonlySet<string>;
  #locks: ReadonlySet<string> | null = null;

  constructor(own: OwnStore) {
    this.#own = own;
    this.#files = identitiesOf(own.files);
  }

  has(found: Stats): boolean {
    const identity = `${found.dev}:${found.ino}`;
    if (this.#files.has(identity)) return true;
    if (found.nlink < 2) return false;
    this.#locks ??= identitiesOf(
      this.#own.locks.flatMap((folder) => namesIn(folder).map((name) => join(folder, name))),
    );
    return this.#locks.has(identity);
  }
}

function identitiesOf(paths: readonly string[]): ReadonlySet<string> {
  return new Set(paths.map(identityOf).filter((identity) => identity !== null));
}

function identityOf(path: string): string | null {
  const found = statOf(path);
  return found && `${found.dev}:${found.ino}`;
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch (error) {
    if (error instanceof Error) return false;
    throw error;
  }
}

/** Null if the file does not exist or cannot be examined: then it cannot be opened either. */
function statOf(path: string): Stats | null {
  try {
    return statSync(path);
  } catch (error) {
    if (error instanceof Error) return null;
    throw error;
  }
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (error instanceof Error) return [];
    throw error;
  }
}

import { type FSWatcher, lstatSync, watch } from "node:fs";
import { basename, dirname, join } from "node:path";
import { type Door, Refused } from "../files/door.ts";

/** Tells what changes below folders, by the system's own events: nothing is asked while nothing happens. */

const DEPTH_MAX = 12;
/** Linux allows 8,192 for each user at least. */
const FOLDERS_MAX = 6_000;

export interface FolderListeners {
  /** Something at this path changed, came or went. */
  readonly onChange: (path: string) => void;
  /** From now on only looking helps. Said once. */
  readonly onLimit: (words: string) => void;
}

export class FolderEvents implements Disposable {
  readonly #door: Door;
  readonly #listeners: FolderListeners;
  readonly #watchers = new Map<string, FSWatcher>();
  /** For folders that are not there yet: of the last one on the way to them that is. */
  readonly #awaited = new Map<string, FSWatcher>();
  #isLimited = false;

  constructor(door: Door, listeners: FolderListeners) {
    this.#door = door;
    this.#listeners = listeners;
  }

  /** Whether some folders are not followed. */
  get isLimited(): boolean {
    return this.#isLimited;
  }

  /** Follows a folder and those below it; a file, by its folder. What is followed already is left as it is. */
  follow(root: string): void {
    // Folders that come later are followed when they do.
    if (this.#watchers.has(root) && !this.#isLimited) return;
    try {
      if (this.#door.kindOf(root) === "folder") this.#add(root, 0);
      else if (this.#door.kindOf(root) === "file") this.#watch(dirname(root));
      else this.#await(root);
    } catch (error) {
      // One that may not be read is looked at by the sweep, which says why.
      if (!(error instanceof Refused)) throw error;
    }
  }

  /** Waits for the first program that makes this folder: nothing else beside it counts. */
  #await(root: string): void {
    if (this.#awaited.has(root)) return;
    let folder = dirname(root);
    let next = basename(root);
    while (statOf(folder) !== "folder" && folder !== dirname(folder)) {
      next = basename(folder);
      folder = dirname(folder);
    }
    try {
      const watcher = watch(folder, { persistent: false }, (_, name) => {
        if (name !== null && name !== next) return;
        watcher.close();
        this.#awaited.delete(root);
        this.follow(root);
        if (statOf(root) !== null) this.#listeners.onChange(root);
      });
      watcher.on("error", () => watcher.close());
      this.#awaited.set(root, watcher);
      // It may have come just before.
      if (statOf(join(folder, next)) !== "folder") return;
      watcher.close();
      this.#awaited.delete(root);
      this.follow(root);
    } catch (error) {
      if (!(error instanceof Error && "code" in error)) throw error;
    }
  }

  #add(folder: string, depth: number): void {
    if (depth > DEPTH_MAX || !this.#watch(folder)) return;
    for (const { path, kind } of this.#door.list(folder)) if (kind === "folder") this.#add(path, depth + 1);
  }

  /** False if it cannot be followed. */
  #watch(folder: string): boolean {
    if (this.#watchers.has(folder)) return true;
    if (this.#watchers.size >= FOLDERS_MAX) {
      this.#limit(`there are more than ${FOLDERS_MAX} folders`);
      return false;
    }
    try {
      const watcher = watch(folder, { persistent: false }, (_, name) => this.#changed(folder, name));
      watcher.on("error", () => this.#forget(folder));
      this.#watchers.set(folder, watcher);
      return true;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOSPC" || code === "EMFILE")
        this.#limit("the system's limit for followed folders is reached (fs.inotify.max_user_watches)");
      // Gone meanwhile, or not to be read.
      return false;
    }
  }

  #changed(folder: string, name: string | null): void {
    if (name === null) {
      this.#listeners.onChange(folder);
      return;
    }
    const path = join(folder, name);
    const found = statOf(path);
    if (found === "folder" && !this.#watchers.has(path)) this.follow(path);
    // Its own events stop with it; a folder of the same name is another one.
    if (found === null) this.#forget(path);
    if (statOf(folder) === null) this.#forget(folder);
    this.#listeners.onChange(path);
  }

  #forget(folder: string): void {
    this.#watchers.get(folder)?.close();
    this.#watchers.delete(folder);
  }

  #limit(words: string): void {
    if (!this.#isLimited) this.#listeners.onLimit(words);
    this.#isLimited = true;
  }

  [Symbol.dispose](): void {
    for (const watcher of [...this.#watchers.values(), ...this.#awaited.values()]) watcher.close();
    this.#watchers.clear();
    this.#awaited.clear();
  }
}

function statOf(path: string): "folder" | "other" | null {
  try {
    return lstatSync(path).isDirectory() ? "folder" : "other";
  } catch (error) {
    if (error instanceof Error && "code" in error) return null;
    throw error;
  }
}

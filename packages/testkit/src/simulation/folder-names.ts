import type { NameChange, Survival } from "./survival.ts";

/** All that names need to know of an inode. */
interface Kind {
  readonly kind: "file" | "folder";
}

/** One entry that was created, removed or moved, and may not be durable. A move between folders is pending in both. */
interface Change<I extends Kind> extends NameChange {
  readonly inode: I;
  readonly from: FolderNames<I> | null;
  readonly fromName: string;
  readonly to: FolderNames<I> | null;
  /** The folders that were synced since. */
  readonly syncedIn: Set<FolderNames<I>>;
}

/** The fate of a change in a crash. A move is one step of the file system's journal: it never loses the file. */
type Fate = "whole" | "arrived" | "undone";

/** The names in one folder, as the cache and the disk know them (S22). */
export class FolderNames<I extends Kind> {
  #current = new Map<string, I>();
  #durable = new Map<string, I>();
  #pending: Change<I>[] = [];

  get(name: string): I | undefined {
    return this.#current.get(name);
  }

  get names(): string[] {
    return [...this.#current.keys()];
  }

  get inodes(): Iterable<I> {
    return this.#current.values();
  }

  get isDurable(): boolean {
    return this.#pending.length === 0;
  }

  add(name: string, inode: I): void {
    this.#current.set(name, inode);
    this.#pending.push(change("add", name, inode, null, name, this));
  }

  remove(name: string): void {
    const inode = this.#current.get(name)!;
    this.#current.delete(name);
    this.#pending.push(change("remove", name, inode, this, name, null));
  }

  /** Replaces whatever has that name in the other folder. */
  move(name: string, to: FolderNames<I>, toName: string): void {
    const inode = this.#current.get(name)!;
    this.#current.delete(name);
    to.#current.set(toName, inode);
    const moved = change("move", toName, inode, this, name, to);
    this.#pending.push(moved);
    if (to !== this) to.#pending.push(moved);
  }

  sync(): void {
    for (const pending of this.#pending) pending.syncedIn.add(this);
    this.#pending = [];
    this.#durable = new Map(this.#current);
  }

  /**
   * The names after a power cut, with the inodes from before. `fates` is shared by all folders, so that a move has one
   * fate.
   */
  afterCrash(survival: Survival, fates: Map<object, Fate>): ReadonlyMap<string, I> {
    const names = new Map(this.#durable);
    for (const pending of this.#pending) {
      const fate = fates.get(pending) ?? decide(pending, survival);
      fates.set(pending, fate);
      if (fate === "undone") continue;
      if (pending.from === this && fate === "whole" && names.get(pending.fromName) === pending.inode) {
        names.delete(pending.fromName);
      }
      if (pending.to === this) names.set(pending.name, pending.inode);
    }
    return names;
  }

  /** The same names and pending changes over other inodes and folders: `twin` returns the copy of each. */
  copyInto(copy: FolderNames<I>, twin: (inode: I) => I, twins: NameTwins<I>): void {
    copy.#current = new Map([...this.#current].map(([name, inode]) => [name, twin(inode)]));
    copy.#durable = new Map([...this.#durable].map(([name, inode]) => [name, twin(inode)]));
    copy.#pending = this.#pending.map((pending) => {
      const known = twins.changes.get(pending);
      if (known !== undefined) return known as Change<I>;
      const folder = (names: FolderNames<I> | null): FolderNames<I> | null =>
        names === null ? null : twins.folder(names);
      const twinned: Change<I> = {
        ...pending,
        inode: twin(pending.inode),
        from: folder(pending.from),
        to: folder(pending.to),
        syncedIn: new Set([...pending.syncedIn].map((names) => twins.folder(names))),
      };
      twins.changes.set(pending, twinned);
      return twinned;
    });
  }

  /** Sets durable names directly. */
  settle(names: ReadonlyMap<string, I>): void {
    this.#current = new Map(names);
    this.#durable = new Map(names);
    this.#pending = [];
  }

  /** Every inode that a name refers to now, or may refer to after a crash. */
  get reachable(): Iterable<I> {
    return new Set([
      ...this.#current.values(),
      ...this.#durable.values(),
      ...this.#pending.map((pending) => pending.inode),
    ]);
  }
}

/** What copies of several folders must agree on. */
export interface NameTwins<I extends Kind> {
  folder(names: FolderNames<I>): FolderNames<I>;
  readonly changes: Map<object, object>;
}

function change<I extends Kind>(
  kind: NameChange["kind"],
  name: string,
  inode: I,
  from: FolderNames<I> | null,
  fromName: string,
  to: FolderNames<I> | null,
): Change<I> {
  return { kind, name, inode, from, fromName, to, syncedIn: new Set() };
}

function decide<I extends Kind>(pending: Change<I>, survival: Survival): Fate {
  const { from, to, syncedIn } = pending;
  // The removal is durable, so the arrival is: the file cannot be nowhere.
  if (from !== null && from !== to && syncedIn.has(from)) return "whole";
  if (to !== null && from !== to && syncedIn.has(to)) {
    // The arrival is durable. A file may keep its old name as well until that folder is synced; a folder always has
    // exactly one name.
    return pending.inode.kind === "folder" || survival.name(pending) ? "whole" : "arrived";
  }
  return survival.name(pending) ? "whole" : "undone";
}

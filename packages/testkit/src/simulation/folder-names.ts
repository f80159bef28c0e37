import type { Inode } from "./inode.ts";
import type { NameChange, Survival } from "./survival.ts";

/** One entry that was created, removed or moved, and may not be durable. A move between folders is pending in both. */
interface Change extends NameChange {
  readonly inode: Inode;
  readonly from: FolderNames | null;
  readonly fromName: string;
  readonly to: FolderNames | null;
  /** The folders that were synced since. */
  readonly syncedIn: Set<FolderNames>;
}

/** The fate of a change in a crash. A move is one step of the file system's journal: it never loses the file. */
type Fate = "whole" | "arrived" | "undone";

/** The names in one folder, as the cache and the disk know them (S22). */
export class FolderNames {
  #current = new Map<string, Inode>();
  #durable = new Map<string, Inode>();
  #pending: Change[] = [];

  get(name: string): Inode | undefined {
    return this.#current.get(name);
  }

  get names(): string[] {
    return [...this.#current.keys()];
  }

  get inodes(): Iterable<Inode> {
    return this.#current.values();
  }

  get isDurable(): boolean {
    return this.#pending.length === 0;
  }

  add(name: string, inode: Inode): void {
    this.#current.set(name, inode);
    this.#pending.push(change("add", name, inode, null, name, this));
  }

  remove(name: string): void {
    const inode = this.#current.get(name)!;
    this.#current.delete(name);
    this.#pending.push(change("remove", name, inode, this, name, null));
  }

  /** Replaces whatever has that name in the other folder. */
  move(name: string, to: FolderNames, toName: string): void {
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
  afterCrash(survival: Survival, fates: Map<object, Fate>): ReadonlyMap<string, Inode> {
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
  copyInto(copy: FolderNames, twin: (inode: Inode) => Inode, twins: NameTwins): void {
    copy.#current = new Map([...this.#current].map(([name, inode]) => [name, twin(inode)]));
    copy.#durable = new Map([...this.#durable].map(([name, inode]) => [name, twin(inode)]));
    copy.#pending = this.#pending.map((pending) => {
      const known = twins.changes.get(pending);
      if (known !== undefined) return known as Change;
      const folder = (names: FolderNames | null): FolderNames | null => (names === null ? null : twins.folder(names));
      const twinned: Change = {
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
  settle(names: ReadonlyMap<string, Inode>): void {
    this.#current = new Map(names);
    this.#durable = new Map(names);
    this.#pending = [];
  }

  /** Every inode that a name refers to now, or may refer to after a crash. */
  get reachable(): Iterable<Inode> {
    return new Set([
      ...this.#current.values(),
      ...this.#durable.values(),
      ...this.#pending.map((pending) => pending.inode),
    ]);
  }
}

/** What copies of several folders must agree on. */
export interface NameTwins {
  folder(names: FolderNames): FolderNames;
  readonly changes: Map<object, object>;
}

function change(
  kind: NameChange["kind"],
  name: string,
  inode: Inode,
  from: FolderNames | null,
  fromName: string,
  to: FolderNames | null,
): Change {
  return { kind, name, inode, from, fromName, to, syncedIn: new Set() };
}

function decide(pending: Change, survival: Survival): Fate {
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

import { randomBytes } from "node:crypto";
import { lstatSync } from "node:fs";
import { dirname } from "node:path";
import type { Change, Plan } from "../contract/plan.ts";
import { stateOf } from "../files/database.ts";
import { type Door, Refused } from "../files/door.ts";
import { type Backup, type BackupStep, backUp, dropBackup, hashOf, modeOf, placeAfter, takeBack } from "./backups.ts";
import {
  type Draft,
  discard,
  draftCopy,
  draftEdits,
  draftNew,
  isThere,
  makeFolders,
  move,
  publish,
  removeFolders,
  removeLeftovers,
  setMode,
} from "./write.ts";

/**
 * Carries a plan out: permissions first, then content, then places. New content is written beside the files, where it
 * can be judged; each file is then replaced at once. A backup, made before, says what is done: after a crash in
 * between, `undo` and another fix both find their way.
 */
export class Executor {
  readonly #changes: readonly Change[];
  readonly #door: Door;
  /** What the files of the plan were before it was made. */
  readonly #stamps: ReadonlyMap<string, string>;
  readonly #drafts: Draft[] = [];
  readonly #folders = new Map<string, readonly string[]>();

  constructor({ changes }: Plan, stamps: ReadonlyMap<string, string>, door: Door) {
    const order = ["mode", "edit", "replace", "create", "move"];
    this.#changes = changes.toSorted((a, b) => order.indexOf(a.type) - order.indexOf(b.type));
    this.#stamps = stamps;
    this.#door = door;
  }

  /** Writes the new content beside the files. Throws `Refused` if something is not as the plan found it. */
  draft(): void {
    for (const change of this.#changes) this.#assertPossible(change);
    for (const folder of new Set(this.#changes.map(({ path }) => dirname(path))))
      if (isThere(folder)) removeLeftovers(folder);
    for (const change of this.#changes) {
      if (change.type === "edit") this.#drafts.push(draftEdits(change.path, change.size, change.edits));
      else if (change.type === "replace") this.#drafts.push(draftCopy(change.path, change.from));
      else if (change.type === "create") {
        this.#folders.set(change.path, makeFolders(dirname(change.path)));
        this.#drafts.push(draftNew(change.path, change.bytes, change.mode));
      }
    }
    for (const change of this.#changes)
      if (change.type === "mode" && this.drafted(change.path) !== change.path)
        setMode(this.drafted(change.path), change.mode);
  }

  /** Where the new content of a file is until `publish`; the file itself if it has none. */
  drafted(path: string): string {
    return this.#drafts.find((draft) => draft.path === path)?.temporary ?? path;
  }

  /** Where a file is when everything is done. */
  placed(path: string): string {
    return this.#changes.reduce((at, change) => (change.type === "move" ? placeAfter(at, change) : at), path);
  }

  /** Keeps the old state in `backups`, then does everything. Whatever fails is taken back. */
  publish(backups: string, facts: Pick<Backup, "agent" | "session">): Backup {
    const at = new Date().toISOString();
    const id = `${at.replaceAll(/[^0-9]/g, "").slice(0, 14)}-${randomBytes(4).toString("hex")}`;
    const backup: Backup = { id, ...facts, at, steps: this.#changes.map((change, index) => this.#step(change, index)) };
    backUp(backups, backup);
    try {
      for (const change of this.#changes) this.#assertPossible(change);
      for (const change of this.#changes) this.#apply(change);
    } catch (error) {
      cancel(backups, backup);
      throw error;
    }
    return backup;
  }

  discard(): void {
    for (const draft of this.#drafts) discard(draft);
    for (const folders of this.#folders.values()) removeFolders(folders);
  }

  #step(change: Change, index: number): BackupStep {
    const { type, path } = change;
    if (type === "mode") return { type, path, before: modeOf(path), after: change.mode };
    if (type === "move") return { type: "moved", path, to: change.to, folders: foldersToMake(dirname(change.to)) };
    const sha256 = hashOf(this.drafted(path));
    if (type === "create") return { type: "created", path, sha256, folders: this.#folders.get(path) ?? [] };
    return { type: "content", path, name: String(index), sha256Before: hashOf(path), sha256 };
  }

  #apply(change: Change): void {
    if (change.type === "mode") setMode(change.path, change.mode);
    else if (change.type === "move") {
      const folders = makeFolders(dirname(change.to));
      try {
        move(change.path, change.to);
      } catch (error) {
        removeFolders(folders);
        throw error;
      }
    } else publish(this.#drafts.find(({ path }) => path === change.path)!);
  }

  #assertPossible(change: Change): void {
    const { type, path } = change;
    if (type === "create") {
      if (isThere(path)) throw new Refused(path, "there is a file in this place already");
      return;
    }
    const kind = this.#door.kindOf(path);
    const isMovable = type === "move" && kind === "folder";
    if (kind !== "file" && !isMovable) throw new Refused(path, "it is no regular file any more");
    assertOwn(path);
    if (type === "move" && isThere(change.to)) throw new Refused(change.to, "there is something in this place already");
    const stamp = this.#stamps.get(path);
    if ((type === "edit" || type === "replace") && this.#door.facts(path)?.size !== change.size) throw written(path);
    if (stamp !== undefined && stampOf(path) !== stamp) throw written(path);
    // Others may write to a database that sessions share, and at first only to its log.
    if (type === "replace" && change.state !== undefined && stateOf(path, this.#door) !== change.state)
      throw written(path);
  }
}

/** Of a fix that came to nothing: the files are as they were, and no backup is left. */
export function cancel(backups: string, backup: Backup): void {
  try {
    takeBack(backups, backup);
  } catch (error) {
    const path = backup.steps[0]!.path;
    throw new Refused(path, `the repair stopped halfway; what it replaced is in the backup ${backup.id}`, error);
  }
  dropBackup(backups, backup);
}

const written = (path: string): Refused => new Refused(path, "the agent wrote to it meanwhile; run the command again");

/** Changes whenever a file is written, replaced, or given other permissions. */
export function stampOf(path: string): string | null {
  const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  return stat ? [stat.dev, stat.ino, stat.size, stat.mtimeNs, stat.mode].join(":") : null;
}

function assertOwn(path: string): void {
  const user = process.geteuid?.();
  const { uid } = lstatSync(path);
  if (user !== undefined && user !== 0 && uid !== user) throw new Refused(path, "it belongs to another user");
}

function foldersToMake(folder: string): string[] {
  return isThere(folder) ? [] : [...foldersToMake(dirname(folder)), folder];
}

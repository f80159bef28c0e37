import { createHash } from "node:crypto";
import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative } from "node:path";
import { fieldsOf, listIn, textIn } from "../contract/shapes.ts";
import { type Door, Refused } from "../files/door.ts";
import { userOf } from "./open-files.ts";
import {
  discard,
  draftCopy,
  draftNew,
  isThere,
  move,
  publish,
  removeFolders,
  removeLeftovers,
  setMode,
  syncFile,
  syncFolder,
} from "./write.ts";

/** What a fix does, so that it can be undone: a folder for each, in the user's own place. */

/** One act of a fix, in the order in which they are done. `folders`: those that it made. */
export type BackupStep =
  | {
      readonly type: "content";
      readonly path: string;
      /** The name of the old content in the backup. */
      readonly name: string;
      /** Of the old content and of the new: undo touches nothing that was changed since. */
      readonly sha256Before: string;
      readonly sha256: string;
    }
  | { readonly type: "created"; readonly path: string; readonly sha256: string; readonly folders: readonly string[] }
  | { readonly type: "moved"; readonly path: string; readonly to: string; readonly folders: readonly string[] }
  | { readonly type: "mode"; readonly path: string; readonly before: number; readonly after: number };

export interface Backup {
  readonly id: string;
  readonly agent: string;
  readonly session: string;
  readonly at: string;
  readonly steps: readonly BackupStep[];
}

const MANIFEST = "backup.json";
/** It is there when the fix was undone; what it replaced stays. */
const UNDONE = "undone";

/** Copies the old content of the files into a new folder, with a list of what will be done. */
export function backUp(folder: string, backup: Backup): void {
  const place = join(folder, backup.id);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  mkdirSync(place, { mode: 0o700 });
  try {
    for (const step of backup.steps) {
      if (step.type !== "content") continue;
      const copy = join(place, step.name);
      copyFileSync(step.path, copy, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
      setMode(copy, 0o600);
      syncFile(copy);
    }
    // Last and at once: a backup without it belongs to a fix that never happened.
    publish(draftNew(join(place, MANIFEST), Buffer.from(`${JSON.stringify(backup, null, 2)}\n`), 0o600));
    syncFolder(folder);
  } catch (error) {
    rmSync(place, { recursive: true, force: true });
    throw error;
  }
}

/** A fix that came to nothing. */
export function dropBackup(folder: string, { id }: Backup): void {
  rmSync(join(folder, id), { recursive: true, force: true });
}

export const isUndone = (folder: string, { id }: Backup): boolean => existsSync(join(folder, id, UNDONE));

/** The latest first. */
export function listBackups(folder: string, door: Door): Backup[] {
  return [...door.list(folder)]
    .filter(({ path, kind }) => kind === "folder" && existsSync(join(path, MANIFEST)))
    .map(({ path }) => readManifest(path))
    .filter((backup) => backup !== null)
    .toSorted((a, b) => (a.at < b.at ? 1 : -1));
}

/**
 * Brings back what a fix changed, also one that was killed halfway. Throws `Refused`, with nothing changed, if
 * something is neither as the fix found it nor as the fix left it, or if a process has the session open.
 */
export function undo(folder: string, backup: Backup): void {
  const paths = backup.steps.flatMap((step) => (step.type === "moved" ? [step.path, step.to] : [step.path]));
  const user = userOf(paths, backup.session);
  if (user !== null) throw new Refused(paths[0]!, `${user}; end the agent first`);
  takeBack(folder, backup);
}

/** The same for a fix that has just been made. */
export function takeBack(folder: string, backup: Backup): void {
  const place = join(folder, backup.id);
  const done = stepsDone(backup);
  for (const step of done) {
    if (step.type !== "content") continue;
    if (hashOf(join(place, step.name)) !== step.sha256Before) throw new Refused(step.path, "its backup is damaged");
    // What an agent says goes to the log of a database first: SQLite would carry it over into the old file.
    const log = `${step.path}-wal`;
    const isOurs = backup.steps.some(({ path }) => path === log);
    if (!isOurs && (lstatSync(log, { throwIfNoEntry: false })?.size ?? 0) > 0) throw new Refused(step.path, CHANGED);
  }
  for (const step of done.toReversed()) undoStep(place, step);
  writeFileSync(join(place, UNDONE), "");
}

/** The steps that were done, and not undone yet. */
function stepsDone({ steps }: Backup): BackupStep[] {
  const done: BackupStep[] = [];
  // What was moved later lies in another place now.
  const moves: { readonly path: string; readonly to: string }[] = [];
  for (const step of steps.toReversed()) {
    const path = moves.reduceRight((at, each) => placeAfter(at, each), step.path);
    if (!isDone(step, path)) continue;
    done.unshift(step);
    if (step.type === "moved") moves.push(step);
  }
  return done;
}

function isDone(step: BackupStep, path: string): boolean {
  switch (step.type) {
    case "moved":
      if (isThere(step.path) === isThere(step.to)) throw new Refused(step.to, CHANGED);
      return isThere(step.to);
    case "mode":
      return isThere(path) && modeOf(path) === step.after;
    case "created":
      if (!isThere(path)) return false;
      if (hashOf(path) !== step.sha256) throw new Refused(path, CHANGED);
      return true;
    case "content": {
      if (!isThere(path)) throw new Refused(path, "it is not there any more; the backup is");
      const hash = hashOf(path);
      if (hash !== step.sha256 && hash !== step.sha256Before) throw new Refused(path, CHANGED);
      return hash === step.sha256;
    }
  }
}

const CHANGED = "it was changed since the fix; the backup is still there";

function undoStep(place: string, step: BackupStep): void {
  if (step.type === "mode") setMode(step.path, step.before);
  else if (step.type === "moved") {
    move(step.to, step.path);
    removeFolders(step.folders);
  } else if (step.type === "created") {
    rmSync(step.path);
    syncFolder(dirname(step.path));
    removeFolders(step.folders);
  } else {
    removeLeftovers(dirname(step.path));
    const draft = draftCopy(step.path, join(place, step.name));
    try {
      publish(draft);
    } finally {
      discard(draft);
    }
  }
}

/** Where something is after a move of itself or of a folder above it. */
export function placeAfter(path: string, moved: { readonly path: string; readonly to: string }): string {
  const way = relative(moved.path, path);
  return way === "" ? moved.to : way.startsWith("..") ? path : join(moved.to, way);
}

export function hashOf(path: string): string {
  const hash = createHash("sha256");
  const file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  try {
    const buffer = Buffer.allocUnsafe(2 ** 20);
    for (let count = readSync(file, buffer); count > 0; count = readSync(file, buffer))
      hash.update(buffer.subarray(0, count));
  } finally {
    closeSync(file);
  }
  return hash.digest("hex");
}

export const modeOf = (path: string): number => lstatSync(path).mode & 0o7777;

/** Null if it is none: somebody may have put anything into the folder. */
function readManifest(place: string): Backup | null {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(join(place, MANIFEST), "utf8"));
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
  const { id, agent, session, at, steps } = fieldsOf(value);
  const parts = [id, agent, session, at].map(textIn);
  const isBackup = !parts.includes(null) && listIn(steps).length > 0 && id === relative(dirname(place), place);
  return isBackup ? (value as Backup) : null;
}

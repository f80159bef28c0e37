import { createHash } from "node:crypto";
import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { fieldsOf, listIn, textIn } from "../contract/shapes.ts";
import { type Door, Refused } from "../files/door.ts";
import { create, discard, draftCopy, publish, setMode, syncFolder } from "./write.ts";

/** What a fix replaced, so that it can be undone: a folder for each, in the user's own place. */

interface BackupFile {
  readonly path: string;
  /** Its name in the backup; null if the fix made the file. */
  readonly name: string | null;
  readonly mode: number;
  /** Of the content that the fix wrote: undo touches nothing that was changed since. */
  readonly sha256: string;
}

export interface Backup {
  readonly id: string;
  readonly agent: string;
  readonly session: string;
  readonly at: string;
  readonly files: readonly BackupFile[];
}

const MANIFEST = "backup.json";

/** Copies the files into a new folder, before anything is written. Returns its path. */
export function backUp(folder: string, id: string, paths: readonly string[]): string {
  const place = join(folder, id);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  mkdirSync(place, { mode: 0o700 });
  for (const [index, path] of paths.entries()) {
    copyFileSync(path, join(place, String(index)), constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
    setMode(join(place, String(index)), 0o600);
  }
  syncFolder(place);
  return place;
}

/** The manifest is written last: a backup without one belongs to a fix that never happened. */
export function finishBackup(place: string, backup: Backup): void {
  create(join(place, MANIFEST), Buffer.from(`${JSON.stringify(backup, null, 2)}\n`), 0o600);
}

export function listBackups(folder: string, door: Door): Backup[] {
  return [...door.list(folder)]
    .filter(({ path, kind }) => kind === "folder" && existsSync(join(path, MANIFEST)))
    .map(({ path }) => readManifest(path))
    .filter((backup) => backup !== null)
    .toSorted((a, b) => (a.at < b.at ? 1 : -1));
}

/** Brings back what a fix replaced. Throws `Refused` if a file is another by now. */
export function undo(folder: string, backup: Backup): void {
  for (const { path, sha256 } of backup.files) {
    if (!existsSync(path)) throw new Refused(path, "it is not there any more");
    if (hashOf(path) !== sha256) throw new Refused(path, "it was changed since the fix; the backup is still there");
  }
  const drafts = backup.files.flatMap(({ path, name }) =>
    name === null ? [] : [draftCopy(path, join(folder, backup.id, name))],
  );
  try {
    for (const draft of drafts) publish(draft);
  } finally {
    for (const draft of drafts) discard(draft);
  }
  for (const { path, mode, name } of backup.files) if (name !== null) setMode(path, mode);
}

export function hashOf(path: string): string {
  const hash = createHash("sha256");
  const file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  try {
    const buffer = Buffer.allocUnsafe(2 ** 20);
    for (let count = readSync(file, buffer); count > 0; count = readSync(file, buffer))
      hash.update(buffer.subarray(0, count));
  } finally {
    closeSync(file);
  }
  return hash.digest("hex");
}

export const modeOf = (path: string): number => statSync(path).mode & 0o7777;

function readManifest(place: string): Backup | null {
  const value = JSON.parse(readFileSync(join(place, MANIFEST), "utf8")) as unknown;
  const { id, agent, session, at, files } = fieldsOf(value);
  const parts = [id, agent, session, at].map(textIn);
  return parts.includes(null) || listIn(files).length === 0 ? null : (value as Backup);
}

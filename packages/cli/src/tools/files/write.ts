import { Buffer } from "node:buffer";
import type { Stats } from "node:fs";
import { type FileHandle, mkdir, open, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { assertNotOwn } from "../paths/own-store.ts";
import { assertReal, realPath, shownPath } from "../paths/real-path.ts";
import { describeSystemError } from "../results/system-errors.ts";
import type { FileContext, Watch } from "./context.ts";
import { isWrittenByEditor, writeInEditor } from "./editor-file.ts";
import { sweepTemporary, temporaryFor } from "./temporary-files.ts";

interface WriteInput {
  readonly path: string;
  readonly content: string;
}

export async function writeFile(
  context: Pick<FileContext, "cwd" | "own" | "editor">,
  input: WriteInput,
  watch?: Watch,
  signal?: AbortSignal,
): Promise<string> {
  return changeFile(context, input.path, async (path, shown) => {
    await mkdir(dirname(path), { recursive: true });
    const bytes = Buffer.from(input.content, "utf8");
    const check = async (): Promise<void> => watch?.check();
    let isNew: boolean;
    if (await isWrittenByEditor(context, path, input.content)) {
      isNew = (await fileAt(path)) === null;
      await writeInEditor(context, path, input.content, { check, signal });
    } else isNew = await replaceFile(path, bytes, check);
    await watch?.changed();
    return `${isNew ? "Created" : "Replaced"} ${shown} (${bytes.length} bytes).`;
  });
}

/** Changes a file that is not the store's own, by its real path, when nothing else of this agent changes it. */
export async function changeFile(
  { cwd, own }: Pick<FileContext, "cwd" | "own">,
  given: string,
  change: (path: string, shown: string) => Promise<string>,
): Promise<string> {
  const path = realPath(cwd, given);
  const shown = shownPath(cwd, path);
  assertNotOwn(own, path, shown);
  try {
    return await oneAtATime(path, () => change(path, shown));
  } catch (error) {
    throw describeSystemError(error, shown);
  }
}

const queues = new Map<string, Promise<unknown>>();

/** The model may request several changes to one file at once. Running them in order lets each see the one before. */
async function oneAtATime<T>(path: string, work: () => Promise<T>): Promise<T> {
  const before = queues.get(path);
  const mine = before ? before.then(work, work) : work();
  queues.set(path, mine);
  try {
    return await mine;
  } finally {
    if (queues.get(path) === mine) queues.delete(path);
  }
}

/**
 * Replaces a file atomically: readers see the old bytes or the new ones, even after a crash. Returns whether the file
 * is new. `check` gets the current file right before the rename, and may throw. `path` is a real path: if part of it
 * has become a link since, nothing is written.
 */
export async function replaceFile(
  path: string,
  bytes: Uint8Array,
  check: (now: Stats | null) => void | Promise<void> = () => {},
): Promise<boolean> {
  assertReal(path);
  const before = await fileAt(path);
  const mode = before && before.mode & 0o7777;
  await sweepTemporary(dirname(path));
  const temporary = temporaryFor(path);
  let file: FileHandle | null = await open(temporary, "wx", mode ?? 0o666);
  try {
    await file.writeFile(bytes);
    if (before) await keepOwner(file, before);
    // After chown, which clears some mode bits.
    if (mode !== null) await file.chmod(mode);
    // Before the rename: otherwise a power cut could leave the name pointing at an empty file.
    await file.sync();
    await file.close();
    file = null;
    await check(await fileAt(path));
    assertReal(path);
    await rename(temporary, path);
  } catch (error) {
    await file?.close();
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
  return before === null;
}

/** A file that root replaces stays its owner's. Other users cannot change the owner, and need not. */
async function keepOwner(file: FileHandle, { uid, gid }: Stats): Promise<void> {
  const made = await file.stat();
  if (made.uid === uid && made.gid === gid) return;
  await file.chown(uid, gid).catch((error: unknown) => {
    if (!hasCode(error, "EPERM", "ENOSYS", "EINVAL")) throw error;
  });
}

/** The new name must survive a power cut, because the record of the write does. */
async function syncFolder(path: string): Promise<void> {
  if (process.platform === "win32") return;
  const folder = await open(path, "r").catch((error: unknown) => {
    // A folder that may be written but not read.
    if (hasCode(error, "EACCES")) return null;
    throw error;
  });
  try {
    await folder?.sync();
  } catch (error) {
    // Some file systems do not support syncing a folder.
    if (!hasCode(error, "EINVAL", "ENOTSUP", "EBADF")) throw error;
  } finally {
    await folder?.close();
  }
}

function hasCode(error: unknown, ...codes: string[]): boolean {
  return error instanceof Error && "code" in error && codes.includes(String(error.code));
}

/** Null if there is no such file. */
async function fileAt(path: string): Promise<Stats | null> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) throw Object.assign(new Error("is a folder"), { code: "EISDIR" });
    if (!found.isFile()) throw new Error("It is a device, pipe or socket. It was not written to.");
    return found;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return null;
    throw error;
  }
}

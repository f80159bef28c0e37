import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { type FileHandle, mkdir, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { ToolContext } from "./context.ts";
import { inWords } from "./failure.ts";
import { realPath, shownPath } from "./real-path.ts";

interface WriteInput {
  readonly path: string;
  readonly content: string;
}

export async function writeFile({ cwd }: Pick<ToolContext, "cwd">, input: WriteInput): Promise<string> {
  const path = realPath(cwd, input.path);
  const shown = shownPath(cwd, path);
  try {
    return await oneAtATime(path, async () => {
      await mkdir(dirname(path), { recursive: true });
      const isNew = await replaceFile(path, Buffer.from(input.content, "utf8"));
      const { length } = Buffer.from(input.content, "utf8");
      return `${isNew ? "Made" : "Replaced"} ${shown} (${length} bytes).`;
    });
  } catch (error) {
    throw inWords(error, shown);
  }
}

const queues = new Map<string, Promise<unknown>>();

/** The model may call for several changes of one file in one breath: each sees what the one before it made. */
export async function oneAtATime<T>(path: string, work: () => Promise<T>): Promise<T> {
  const before = queues.get(path);
  const mine = before ? before.then(work, work) : work();
  queues.set(path, mine);
  try {
    return await mine;
  } finally {
    if (queues.get(path) === mine) queues.delete(path);
  }
}

/** Whoever reads it sees the old bytes or the new ones, also after a crash. Answers whether there was none. */
export async function replaceFile(path: string, bytes: Uint8Array): Promise<boolean> {
  const mode = await modeOf(path);
  const temporary = temporaryFor(path);
  // One that a killed agent left behind.
  await rm(temporary, { force: true });
  let file: FileHandle | null = await open(temporary, "wx", mode ?? 0o666);
  try {
    await file.writeFile(bytes);
    if (mode !== null) await file.chmod(mode);
    // Before the rename, else a power cut could leave the name with nothing behind it.
    await file.sync();
    await file.close();
    file = null;
    await rename(temporary, path);
  } catch (error) {
    await file?.close();
    await rm(temporary, { force: true });
    throw error;
  }
  return mode === null;
}

/** The same each time: what a killed agent left is taken up by the next write to this file. */
function temporaryFor(path: string): string {
  const name = createHash("sha256").update(basename(path)).digest("hex").slice(0, 12);
  return join(dirname(path), `.holdfast-${name}.tmp`);
}

export const TEMPORARY = /^\.holdfast-[0-9a-f]{12}\.tmp$/u;

/** Null if there is no such file. */
async function modeOf(path: string): Promise<number | null> {
  try {
    const found = await stat(path);
    if (found.isDirectory()) throw Object.assign(new Error("is a folder"), { code: "EISDIR" });
    if (!found.isFile()) throw new Error("It is a device, a pipe or a socket, and was not written to.");
    return found.mode & 0o7777;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}

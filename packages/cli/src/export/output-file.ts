import { randomBytes } from "node:crypto";
import { type FileHandle, link, lstat, open, rename, stat, unlink } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { CommandError, EXIT } from "../exit.ts";

/** Writes are collected up to about this size. */
const CHUNK_CHARS = 1 << 20;

/**
 * Writes a file completely or not at all, readable by this user only (C24): first under another name, which is renamed
 * at the end. Replaces an existing file only with `force`. Throws CommandError OUTPUT_EXISTS, OUTPUT_FAILED.
 */
export async function writeOutput(
  path: string,
  chunks: Iterable<string> | AsyncIterable<string>,
  { force = false }: { readonly force?: boolean } = {},
): Promise<void> {
  const target = resolve(path);
  // Fails early. The link at the end decides for certain.
  const found = await whatIs(target);
  if (found === "no file") throw noFile(path);
  if (!force && found !== null) throw exists(path);
  const temporary = join(dirname(target), `.${basename(target).slice(0, 100)}.${randomBytes(6).toString("hex")}.tmp`);
  try {
    const file = await open(temporary, "wx", 0o600);
    try {
      // Independent of the umask.
      await file.chmod(0o600);
      await writeAll(file, chunks);
      await file.sync();
    } finally {
      await file.close();
    }
    if (force) await rename(temporary, target);
    else await takeName(temporary, target, path);
  } catch (error) {
    await unlink(temporary).catch((gone: NodeJS.ErrnoException) => {
      if (gone.code !== "ENOENT" && gone.code !== "ENOTDIR") throw gone;
    });
    throw explainFailure(error, path);
  }
}

async function writeAll(file: FileHandle, chunks: Iterable<string> | AsyncIterable<string>): Promise<void> {
  let waiting: string[] = [];
  let chars = 0;
  const flush = async (): Promise<void> => {
    await file.writeFile(waiting.join(""));
    waiting = [];
    chars = 0;
  };
  for await (const chunk of chunks) {
    waiting.push(chunk);
    chars += chunk.length;
    if (chars >= CHUNK_CHARS) await flush();
  }
  if (chars > 0) await flush();
}

/** If the name is taken in the meantime, that file stays: unlike a rename, a link never replaces. */
async function takeName(temporary: string, target: string, path: string): Promise<void> {
  try {
    await link(temporary, target);
    await unlink(temporary);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") throw exists(path);
    // File systems without hard links: an empty file reserves the name, and the rename replaces it.
    if (code !== "EPERM" && code !== "ENOTSUP" && code !== "EOPNOTSUPP" && code !== "ENOSYS") throw error;
    const reserved = await open(target, "wx", 0o600).catch((taken: NodeJS.ErrnoException) => {
      throw taken.code === "EEXIST" ? exists(path) : taken;
    });
    await reserved.close();
    await rename(temporary, target);
  }
}

/** `no file`: a folder, a device, a pipe, or a link to one (/dev/stdout). Those are never replaced. */
async function whatIs(target: string): Promise<"file" | "no file" | null> {
  try {
    const found = await lstat(target);
    if (!found.isSymbolicLink()) return found.isFile() ? "file" : "no file";
  } catch (error) {
    if (isMissing(error)) return null;
    throw explainFailure(error, target);
  }
  try {
    return (await stat(target)).isFile() ? "file" : "no file";
  } catch (error) {
    // A dangling link: the link itself would be replaced.
    if (isMissing(error)) return "file";
    throw explainFailure(error, target);
  }
}

function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOENT" || code === "ENOTDIR";
}

function noFile(path: string): CommandError {
  const message = `${path} exists and is not a regular file. It was not touched, and --force does not replace it. Give another name, or none to write to standard output.`;
  return new CommandError(EXIT.usage, "OUTPUT_EXISTS", message);
}

function exists(path: string): CommandError {
  return new CommandError(
    EXIT.usage,
    "OUTPUT_EXISTS",
    `${path} already exists and was not touched. Give another name, or --force to replace it.`,
  );
}

/** Describes a system error about the file. Store errors are returned unchanged. */
function explainFailure(error: unknown, path: string): unknown {
  if (!(error instanceof Error) || !("syscall" in error)) return error;
  const message = `${path} could not be written: ${error.message}. No file was left behind, and the session was not touched.`;
  return new CommandError(EXIT.failed, "OUTPUT_FAILED", message, error);
}

import { Buffer } from "node:buffer";
import type { Stats } from "node:fs";
import { stat } from "node:fs/promises";
import { join, relative } from "node:path";
import { assertReal, isInside, realPath } from "../paths/real-path.ts";
import { outcomeUnknown, wasStopped } from "../results/outcome-words.ts";
import type { FileContext } from "./context.ts";
import { openRegular } from "./regular-file.ts";
import { notText } from "./text-file.ts";

type Editing = Pick<FileContext, "cwd" | "editor">;

/** Larger texts are read and written on disk: a message that is too long for one of both ends ends the connection. */
const EDITOR_BYTES_MAX = 4 * 1024 * 1024;

/** As much of a file as tells whether it is text. */
const BEGINNING_BYTES = 8192;

/** `failed`: the editor was asked, and did not give the text. */
export type HeldText = { readonly text: string } | { readonly failed: string };

/**
 * The text of a file as the editor has it. Null if the editor is not asked: it offers no files, or the file is outside
 * the working folder, large, or not text.
 */
export async function heldText(context: Editing, path: string, signal?: AbortSignal): Promise<HeldText | null> {
  const read = context.editor?.read;
  const known = editorPath(context.cwd, path);
  if (!read || known === null || !(await mayBeText(path))) return null;
  try {
    return { text: await read(known, signal) };
  } catch (error) {
    if (signal?.aborted) throw error;
    return { failed: messageOf(error) };
  }
}

/** Whether the editor writes this file. It then also keeps its own copy up to date. */
export async function isWrittenByEditor({ cwd, editor }: Editing, path: string, text: string): Promise<boolean> {
  if (!editor?.write || editorPath(cwd, path) === null) return false;
  if (Buffer.byteLength(text, "utf8") > EDITOR_BYTES_MAX) return false;
  const found = await statOf(path);
  return found === null || found.isFile();
}

/** Writes through the editor. `check` runs right before, and may throw; `path` is a real path. */
export async function writeInEditor(
  { cwd, editor }: Editing,
  path: string,
  text: string,
  { check, signal }: { readonly check: () => Promise<void>; readonly signal: AbortSignal | undefined },
): Promise<void> {
  await check();
  assertReal(path);
  if (signal?.aborted) throw new Error("It was stopped before the file was written. Nothing was changed.");
  try {
    await editor!.write!(editorPath(cwd, path)!, text, signal);
  } catch (error) {
    throw signal?.aborted
      ? wasStopped()
      : outcomeUnknown(`the editor did not confirm that it wrote the file (${messageOf(error)})`);
  }
}

/**
 * The name by which the editor knows a file: in the working folder as it was given, which may contain links. Null for a
 * file elsewhere, which does not belong to the editor's project.
 */
function editorPath(cwd: string, path: string): string | null {
  const folder = realPath(cwd, ".");
  return path !== folder && isInside(folder, path) ? join(cwd, relative(folder, path)) : null;
}

/** A file that is only in the editor may be text. */
async function mayBeText(path: string): Promise<boolean> {
  const found = await statOf(path);
  if (found === null) return true;
  if (!found.isFile() || found.size > EDITOR_BYTES_MAX) return false;
  const file = await openRegular(path, path);
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(BEGINNING_BYTES), 0, BEGINNING_BYTES);
    return notText(buffer.subarray(0, bytesRead)) === null;
  } finally {
    await file.close();
  }
}

async function statOf(path: string): Promise<Stats | null> {
  return stat(path).catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  });
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

import { Buffer } from "node:buffer";
import { stat } from "node:fs/promises";
import type { FileContext, Watch } from "./context.ts";
import { heldText, isWrittenByEditor, writeInEditor } from "./editor-file.ts";
import { readWhole } from "./regular-file.ts";
import { decodedExactly, notText } from "./text-file.ts";
import { changeFile, replaceFile } from "./write.ts";

const BYTES_MAX = 64 * 1024 * 1024;

interface EditInput {
  readonly path: string;
  readonly old: string;
  readonly new: string;
  readonly all?: boolean | undefined;
}

export async function editFile(
  context: Pick<FileContext, "cwd" | "own" | "editor">,
  input: EditInput,
  watch?: Watch,
  signal?: AbortSignal,
): Promise<string> {
  return changeFile(context, input.path, async (path, shown) => {
    const inEditor = await editInEditor(context, { path, shown, input }, watch, signal);
    if (inEditor) return editedWords(shown, inEditor);
    const found = await stat(path);
    if (!found.isFile()) throw new Error(`${shown} is not a file. Nothing was changed.`);
    const bytes = found.size > BYTES_MAX ? null : await readWhole(path, shown, BYTES_MAX);
    if (bytes === null)
      throw new Error(
        `${shown} is too large to edit (the limit is ${BYTES_MAX / 1024 / 1024} MB). Nothing was changed.`,
      );
    const text = notText(bytes.subarray(0, 8192)) ? null : decodedExactly(bytes);
    if (text === null) throw new Error(`${shown} is not UTF-8 text. Nothing was changed.`);
    const edited = replaceText(text, input, shown);
    await replaceFile(path, Buffer.from(edited.text, "utf8"), async (now) => {
      // Do not overwrite another process's change.
      if (now?.ino !== found.ino || now.mtimeMs !== found.mtimeMs || now.size !== found.size)
        throw changedMeanwhile(shown, "by another process");
      await watch?.check();
    });
    await watch?.changed();
    return editedWords(shown, edited);
  });
}

type Edited = ReturnType<typeof replaceText>;

/**
 * Null if the file must be edited on disk. An editor that offers only one of reading and writing is not used: its text
 * could differ from the one that the edit is applied to.
 */
async function editInEditor(
  context: Pick<FileContext, "cwd" | "editor">,
  { path, shown, input }: { readonly path: string; readonly shown: string; readonly input: EditInput },
  watch: Watch | undefined,
  signal: AbortSignal | undefined,
): Promise<Edited | null> {
  if (!context.editor?.read || !context.editor.write) return null;
  const held = await heldText(context, path, signal);
  if (held === null) return null;
  if ("failed" in held) {
    // If it is not on disk either, that is the reason.
    await stat(path);
    // On disk, the edit could overwrite changes that are not saved yet.
    throw new Error(`The editor did not give the text of ${shown} (${held.failed}). Nothing was changed.`);
  }
  const edited = replaceText(held.text, input, shown);
  if (!(await isWrittenByEditor(context, path, edited.text)))
    throw new Error(`${shown} would become too large for the editor. Nothing was changed.`);
  const check = async (): Promise<void> => {
    await watch?.check();
    const now = await heldText(context, path, signal);
    if (!now || !("text" in now) || now.text !== held.text) throw changedMeanwhile(shown, "in the editor");
  };
  await writeInEditor(context, path, edited.text, { check, signal });
  await watch?.changed();
  return edited;
}

function changedMeanwhile(shown: string, how: string): Error {
  return new Error(`${shown} was changed ${how} during this edit. Nothing was changed. Read it again.`);
}

function editedWords(shown: string, { places, line }: Edited): string {
  return `Changed ${shown}: ${places === 1 ? "1 place" : `${places} places`}, starting at line ${line}.`;
}

/** Throws an error worded for the model: then nothing was changed. */
export function replaceText(
  text: string,
  { old, new: fresh, all = false }: Omit<EditInput, "path">,
  shown: string,
): { readonly text: string; readonly places: number; readonly line: number } {
  if (old === "") throw new Error("The old text is empty. Nothing was changed. Use write to create a file.");
  if (old === fresh) throw new Error("The old and the new text are the same. Nothing was changed.");
  // A model sees and writes plain line endings, even if the file has CRLF.
  const isForeign = !text.includes(old) && text.includes("\r\n") && !old.includes("\r\n");
  const from = isForeign ? old.replaceAll("\n", "\r\n") : old;
  const to = isForeign || isOfWindows(text) ? fresh.replaceAll(/\r?\n/gu, "\r\n") : fresh;
  const pieces = text.split(from);
  const places = pieces.length - 1;
  if (places === 0) throw new Error(notFound(text, from, to, shown));
  if (places > 1 && !all) {
    throw new Error(
      `The old text occurs ${places} times in ${shown}, at lines ${placesOf(pieces, from)}. Nothing was changed. Include more of the surrounding text, or use \`all\`.`,
    );
  }
  return { text: pieces.join(to), places, line: lineAt(pieces[0]!) };
}

/** Whether every line ends in CRLF. */
function isOfWindows(text: string): boolean {
  return text.includes("\r\n") && !/(?:^|[^\r])\n/u.test(text);
}

function notFound(text: string, old: string, fresh: string, shown: string): string {
  if (fresh.trim() !== "" && text.includes(fresh)) {
    return `The old text is not in ${shown}, but the new text is: the edit may have been applied already. Nothing was changed. Read the file before you continue.`;
  }
  const squeezed = (words: string): string => words.replaceAll(/\s+/gu, " ").trim();
  if (squeezed(old) !== "" && squeezed(text).includes(squeezed(old))) {
    return `The old text is not in ${shown} as given: whitespace or line endings differ. Nothing was changed. Read the file and give the exact text.`;
  }
  return `The old text is not in ${shown}. Nothing was changed. Read the file and give the exact text.`;
}

function placesOf(pieces: readonly string[], old: string): string {
  const at: number[] = [];
  let line = 1;
  for (const piece of pieces.slice(0, Math.min(pieces.length - 1, 10))) {
    line += lineAt(piece) - 1;
    at.push(line);
    line += lineAt(old) - 1;
  }
  return at.join(", ") + (pieces.length - 1 > at.length ? ", …" : "");
}

/** The line number of the text that follows. */
function lineAt(before: string): number {
  return before.split("\n").length;
}

import { type Dirent, statSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join, relative } from "node:path";
import type { Editor } from "./editor.ts";
import {
  type Candidate,
  candidatesIn,
  completeMention,
  droppedPath,
  lookFor,
  mentionAt,
  mentionOf,
} from "./file-mentions.ts";

/** Of a folder with more entries, only the first are candidates. */
const ENTRIES_MAX = 5_000;

/** Helps to write about files: completes `@path`, and turns a dropped file into one. */
export class Assistance {
  readonly #changed: () => void;
  /** What was found for a mention; kept while its folder stays the same. */
  #found: { readonly folder: string; readonly names: readonly string[] } | null = null;
  #looksIn: string | null = null;

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** Call it whenever the line has changed. */
  look(editor: Editor, cwd: string): void {
    const mention = mentionAt(editor);
    const folder = mention === null ? null : placeOf(lookFor(mention).folder, cwd);
    if (folder === this.#looksIn) return;
    this.#looksIn = folder;
    this.#found = null;
    if (folder === null) return;
    void namesIn(folder).then((names) => {
      if (this.#looksIn !== folder) return;
      this.#found = { folder, names };
      this.#changed();
    });
  }

  /** What the mention at the cursor could mean. */
  candidates(editor: Editor): readonly Candidate[] {
    const mention = this.#found && mentionAt(editor);
    return mention ? candidatesIn(mention, this.#found!.names) : [];
  }

  /** What Tab makes of the line; null if there is no file to complete. */
  complete(editor: Editor): Editor | null {
    const mention = mentionAt(editor);
    return mention && completeMention(editor, mention, this.candidates(editor));
  }

  /** The file that was dropped on the terminal, and how to mention it; null if the text is something else. */
  dropped(pasted: string, cwd: string): { readonly path: string; readonly mention: string } | null {
    const path = droppedPath(pasted);
    if (path === null || !isThere(path)) return null;
    const inside = relative(cwd, path);
    return { path, mention: mentionOf(inside === "" || inside.startsWith("..") || isAbsolute(inside) ? path : inside) };
  }
}

function placeOf(folder: string, cwd: string): string {
  if (folder.startsWith("~/")) return join(homedir(), folder.slice(2));
  return isAbsolute(folder) ? folder : join(cwd, folder);
}

/** The names in a folder; those of folders end with a slash. None if it cannot be read. */
async function namesIn(folder: string): Promise<string[]> {
  let entries: Dirent[];
  try {
    entries = await readdir(folder, { withFileTypes: true });
  } catch {
    return [];
  }
  return entries.slice(0, ENTRIES_MAX).map((entry) => (isFolder(entry, folder) ? `${entry.name}/` : entry.name));
}

function isFolder(entry: Dirent, folder: string): boolean {
  if (!entry.isSymbolicLink()) return entry.isDirectory();
  return statSync(join(folder, entry.name), { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function isThere(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    // Too long, or in a folder that may not be read.
    return false;
  }
}

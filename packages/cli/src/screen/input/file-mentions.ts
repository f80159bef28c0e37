import type { Editor } from "./editor.ts";

/** A file that is being named: `@src/in`, or `@"my notes/` if its name has spaces. */
export interface Mention {
  /** Where the `@` is. */
  readonly start: number;
  /** What was typed of its path. */
  readonly path: string;
}

/** The mention that the cursor is at the end of; null if there is none. */
export function mentionAt({ text, cursor }: Pick<Editor, "text" | "cursor">): Mention | null {
  const found = /(?:^|[\s(])@("[^"\n]*|[^\s"]*)$/u.exec(text.slice(0, cursor));
  if (found === null) return null;
  const typed = found[1]!;
  return { start: cursor - typed.length - 1, path: typed.startsWith('"') ? typed.slice(1) : typed };
}

/** The folder in which to look for a mention's completions, and how their names start. */
export function lookFor({ path }: Mention): { readonly folder: string; readonly begins: string } {
  const at = path.lastIndexOf("/") + 1;
  return { folder: path.slice(0, at), begins: path.slice(at) };
}

/** A file or folder that a mention could mean: its path as it would be typed. Folders end with a slash. */
export type Candidate = string;

/** The entries that a mention could mean. Hidden ones only if their dot was typed. */
export function candidatesIn(mention: Mention, names: readonly string[]): Candidate[] {
  const { folder, begins } = lookFor(mention);
  const wanted = begins.toLowerCase();
  return names
    .filter((name) => name.toLowerCase().startsWith(wanted) && (begins.startsWith(".") || !name.startsWith(".")))
    .sort((a, b) => a.localeCompare(b, "en"))
    .map((name) => folder + name);
}

/** What Tab makes of a mention: the beginning that all candidates share; one file in full, with a space behind it. */
export function completeMention(editor: Editor, mention: Mention, candidates: readonly Candidate[]): Editor {
  const [first] = candidates;
  if (first === undefined) return editor;
  let shared = first;
  for (const one of candidates)
    while (!one.toLowerCase().startsWith(shared.toLowerCase())) shared = shared.slice(0, -1);
  // Half of a surrogate pair is no beginning.
  shared = shared.replace(/[\ud800-\udbff]$/u, "");
  const isDone = candidates.length === 1 && !first.endsWith("/");
  const path = shared.length < mention.path.length ? mention.path : shared;
  const written = mentionOf(path, isDone) + (isDone ? " " : "");
  const text = editor.text.slice(0, mention.start) + written + editor.text.slice(editor.cursor);
  return { ...editor, text, cursor: mention.start + written.length };
}

/** `@path`, in quotation marks if it needs them; they stay open while it is being typed. */
export function mentionOf(path: string, isDone = true): string {
  if (!/[\s"]/u.test(path)) return `@${path}`;
  return `@"${path.replaceAll('"', "")}${isDone ? '"' : ""}`;
}

/**
 * The path that a terminal pastes when a file is dropped on it: in quotation marks, with backslashes, or as a `file:`
 * URL. Null if the text is no absolute path. Whether there is such a file is for the caller to find out.
 */
export function droppedPath(text: string): string | null {
  const one = text.trim();
  if (one === "" || one.includes("\n")) return null;
  const quoted = /^'([^']*)'$|^"([^"]*)"$/u.exec(one);
  const path = quoted ? (quoted[1] ?? quoted[2])! : one;
  if (path.startsWith("file://")) {
    try {
      return decodeURIComponent(new URL(path).pathname);
    } catch {
      return null;
    }
  }
  if (!path.startsWith("/")) return null;
  if (quoted) return path;
  // Unescaped white space means that it is a text which begins with a path.
  if (/(?<!\\)\s/u.test(path)) return null;
  return path.replace(/\\(.)/gu, "$1");
}

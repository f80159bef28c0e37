import type { PromptImage } from "../../host/host.ts";
import { graphemes, widthOf } from "../../terminal/index.ts";
import type { Item } from "../../transcript/item.ts";
import {
  CHIP_CHARACTERS,
  type Chip,
  cells,
  chipCharacter,
  expanded,
  imagesIn,
  isLong,
  labelled,
  pastedLabel,
} from "./chips.ts";
import type { Key } from "./keys.ts";

/** The text being written, and what was sent before. */
export interface Editor {
  readonly text: string;
  /** Offset in `text`, always on a grapheme boundary. */
  readonly cursor: number;
  /** What was sent, oldest first. */
  readonly history: readonly string[];
  /** The position in the history; its length means the text being written. */
  readonly at: number;
  /** The text that was being written when the history was entered. */
  readonly draft: string;
  /** Long texts that stand in the line as one character each. Only ever added to: the history has them too. */
  readonly chips: readonly Chip[];
}

export const EDITOR: Editor = { text: "", cursor: 0, history: [], at: 0, draft: "", chips: [] };

/** A label is longer only if a file's name is. */
const LABEL_MAX = 48;

export function withText(editor: Editor, text: string): Editor {
  const harmless = clean(text);
  return { ...editor, text: harmless, cursor: harmless.length };
}

/** The text with every chip in full: what is sent, and what another program edits. */
export function wholeText({ text, chips }: Editor): string {
  return expanded(text, chips);
}

/** Puts a long text at the cursor, as a chip with this label. */
export function withChip(editor: Editor, label: string, text: string, image?: PromptImage): Editor {
  const character = chipCharacter(editor.chips.length);
  if (character === null) return insert(editor, clean(text));
  const plain = label.replace(/[^ -~]/gu, "?").slice(0, LABEL_MAX);
  const chip: Chip = { label: plain, text: clean(text), ...(image ? { image } : {}) };
  return insert({ ...editor, chips: [...editor.chips, chip] }, character);
}

/** Puts an image at the cursor. The model gets it after the text. */
export function withImage(editor: Editor, image: PromptImage): Editor {
  return withChip(editor, `image ${image.name}`, "", image);
}

/** Puts the texts of chips into the line, to edit them. An image has none, and stays. */
function expandChips(editor: Editor): Editor {
  const text = editor.text.replace(CHIP_CHARACTERS, (one) =>
    imagesIn(one, editor.chips).length > 0 ? one : expanded(one, editor.chips),
  );
  return text === editor.text ? editor : { ...editor, text, cursor: text.length };
}

/** Puts text before what is in the line. */
export function withBefore(editor: Editor, text: string): Editor {
  const all = editor.text === "" ? clean(text) : `${clean(text)}\n${editor.text}`;
  return { ...editor, text: all, cursor: all.length };
}

/** Puts text at the cursor. */
export function withInserted(editor: Editor, text: string): Editor {
  return insert(editor, clean(text));
}

/** Puts earlier prompts before the history. */
export function withOlder(editor: Editor, older: readonly string[]): Editor {
  const history = [...older.map(clean), ...editor.history];
  return { ...editor, history, at: editor.at + older.length };
}

/** Makes the prompts of this conversation the history. */
export function withHistory(editor: Editor, items: readonly Item[]): Editor {
  const history = items.flatMap((item) => (item.kind === "prompt" ? [clean(item.text)] : [])).slice(-500);
  return { ...editor, history, at: history.length, draft: "" };
}

/** Clears the text and adds it to the history. */
export function markSent(editor: Editor): Editor {
  const last = editor.history.at(-1);
  const history = editor.text === last ? editor.history : [...editor.history, editor.text].slice(-500);
  return { ...editor, text: "", cursor: 0, history, at: history.length, draft: "" };
}

/** Applies a key to the text; null if the editor does not handle it. `columns` is the row width, for up and down. */
export function applyKey(editor: Editor, key: Key, columns: number): Editor | null {
  switch (key.name) {
    case "paste": {
      // Terminals send line ends as carriage returns.
      const text = clean(key.text);
      return isLong(text) ? withChip(editor, pastedLabel(text), text) : insert(editor, text);
    }
    case "text":
      return insert(editor, clean(key.text));
    case "expand":
      return expandChips(editor);
    case "newline":
      return insert(editor, "\n");
    case "backspace":
      return remove(editor, before(editor.text, editor.cursor), editor.cursor);
    case "delete":
      return remove(editor, editor.cursor, after(editor.text, editor.cursor));
    case "left":
      return { ...editor, cursor: before(editor.text, editor.cursor) };
    case "right":
      return { ...editor, cursor: after(editor.text, editor.cursor) };
    case "wordLeft":
      return { ...editor, cursor: wordBefore(editor.text, editor.cursor) };
    case "wordRight":
      return { ...editor, cursor: wordAfter(editor.text, editor.cursor) };
    case "home":
      return { ...editor, cursor: lineStart(editor.text, editor.cursor) };
    case "end":
      return { ...editor, cursor: lineEnd(editor.text, editor.cursor) };
    case "killToEnd": {
      const end = lineEnd(editor.text, editor.cursor);
      // At the end of a line, join the next one, as other editors do.
      return remove(editor, editor.cursor, end === editor.cursor ? end + 1 : end);
    }
    case "killToStart": {
      const start = lineStart(editor.text, editor.cursor);
      return remove(editor, start === editor.cursor ? Math.max(0, start - 1) : start, editor.cursor);
    }
    case "killWord":
      return remove(editor, wordBefore(editor.text, editor.cursor), editor.cursor);
    case "up":
      return vertical(editor, columns, -1) ?? fromHistory(editor, -1);
    case "down":
      return vertical(editor, columns, 1) ?? fromHistory(editor, 1);
    default:
      return null;
  }
}

/** A backslash before Enter means a new line. Returns the text with it, or null. */
export function continueLine(editor: Editor): Editor | null {
  if (editor.text[editor.cursor - 1] !== "\\") return null;
  const text = `${editor.text.slice(0, editor.cursor - 1)}\n${editor.text.slice(editor.cursor)}`;
  return { ...editor, text };
}

/** One row of the editor: a piece of the text, starting at `start`. */
export interface Row {
  readonly start: number;
  readonly text: string;
}

/** Splits text into rows of at most `columns`, anywhere: typed text is shown as it is. */
export function rowsOf(text: string, columns: number, chips: readonly Chip[] = []): Row[] {
  const rows: Row[] = [];
  let offset = 0;
  for (const one of text.split("\n")) {
    let start = offset;
    let piece = "";
    let width = 0;
    for (const [grapheme, own] of cells(one, chips)) {
      if (width + own > columns && piece !== "") {
        rows.push({ start, text: piece });
        start += piece.length;
        piece = "";
        width = 0;
      }
      piece += grapheme;
      width += own;
    }
    rows.push({ start, text: piece });
    offset += one.length + 1;
  }
  return rows;
}

/** The cursor's row and column. The end of a full row is at the start of the next one. */
export function cursorAt(
  rows: readonly Row[],
  cursor: number,
  columns: number,
  chips: readonly Chip[] = [],
): { row: number; column: number } {
  const row = Math.max(
    0,
    rows.findLastIndex(({ start }) => start <= cursor),
  );
  const { start, text } = rows[row]!;
  const column = widthOf(labelled(text.slice(0, cursor - start), chips));
  return column >= columns ? { row: row + 1, column: 0 } : { row, column };
}

function clean(text: string): string {
  // Control characters do not belong in a prompt. A tab becomes four spaces, so that its width is the same everywhere.
  return text
    .replace(/\r\n?/gu, "\n")
    .replaceAll("\t", "    ")
    .replace(/(?!\n)\p{Cc}/gu, "")
    .replace(CHIP_CHARACTERS, "");
}

function insert(editor: Editor, text: string): Editor {
  const all = editor.text.slice(0, editor.cursor) + text + editor.text.slice(editor.cursor);
  return { ...editor, text: all, cursor: editor.cursor + text.length, at: editor.history.length };
}

function remove(editor: Editor, from: number, to: number): Editor {
  if (from >= to) return editor;
  return { ...editor, text: editor.text.slice(0, from) + editor.text.slice(to), cursor: from };
}

function before(text: string, cursor: number): number {
  if (cursor <= 0) return 0;
  const start = text.lastIndexOf("\n", cursor - 1);
  if (start === cursor - 1) return start;
  let at = start + 1;
  let last = at;
  for (const [grapheme] of graphemes(text.slice(start + 1, cursor))) {
    last = at;
    at += grapheme.length;
  }
  return last;
}

function after(text: string, cursor: number): number {
  if (cursor >= text.length) return text.length;
  const [first] = graphemes(text.slice(cursor, lineEnd(text, cursor) || undefined) || "\n");
  return cursor + (text[cursor] === "\n" ? 1 : (first?.[0].length ?? 1));
}

function wordBefore(text: string, cursor: number): number {
  const before = text.slice(0, cursor).trimEnd();
  let at = before.length;
  while (at > 0 && !/\s/u.test(before[at - 1]!)) at -= 1;
  return at;
}

function wordAfter(text: string, cursor: number): number {
  const found = /^\s*\S+/u.exec(text.slice(cursor));
  return found === null ? text.length : cursor + found[0].length;
}

function lineStart(text: string, cursor: number): number {
  return cursor === 0 ? 0 : text.lastIndexOf("\n", cursor - 1) + 1;
}

function lineEnd(text: string, cursor: number): number {
  const end = text.indexOf("\n", cursor);
  return end === -1 ? text.length : end;
}

/** Moves to the row above or below, as close to the same column as possible; null if there is no such row. */
function vertical(editor: Editor, columns: number, by: 1 | -1): Editor | null {
  const { chips } = editor;
  const rows = rowsOf(editor.text, columns, chips);
  const { row, column } = cursorAt(rows, editor.cursor, columns, chips);
  const target = rows[row + by];
  if (target === undefined) return null;
  let cursor = target.start;
  let width = 0;
  for (const [grapheme, own] of cells(target.text, chips)) {
    if (width + own > column) break;
    width += own;
    cursor += grapheme.length;
  }
  return { ...editor, cursor };
}

function fromHistory(editor: Editor, by: 1 | -1): Editor | null {
  const at = editor.at + by;
  if (at < 0 || at > editor.history.length) return editor;
  const draft = editor.at === editor.history.length ? editor.text : editor.draft;
  const text = at === editor.history.length ? draft : editor.history[at]!;
  return { ...editor, text, cursor: text.length, at, draft };
}

import { type DiffRow, diffRowText, editOf } from "@holdfast/server/internal/edits";
import { shortId } from "../short-id.ts";
import { bytesWords } from "../terminal/bytes.ts";
import type { Paint, Style } from "../terminal/colour.ts";
import { plain, plainLine } from "../terminal/plain.ts";
import { wrapWords } from "../terminal/wrap-words.ts";
import type { CallItem, Item, ShownFile } from "./item.ts";
import { callStateWords, callWords } from "./words.ts";

/** How many lines of an output or a thought are shown by default. */
const LINES_MAX = 12;
const DIFF_LINES_MAX = 40;
/** A line can have megabytes, and a message fifty of them (C28). */
const CHARACTERS_MAX = 100_000;
/** Laying out more than this takes too long, and nobody reads it. */
const MARKDOWN_CHARACTERS_MAX = 1_000_000;
const INDENT = "  ";

export interface Layout {
  readonly paint: Paint;
  /** Shorten nothing. */
  readonly full: boolean;
  /** The width of the terminal; undefined if it is not one: then texts keep their lines. */
  readonly columns: number | undefined;
  /** Lays out Markdown; null to show it as it is. */
  readonly markdown: ((text: string, columns: number) => readonly string[]) | null;
}

/** A conversation as lines for a terminal, a pager or a file. */
export function* transcriptLines(items: readonly Item[], layout: Layout): Generator<string, void, undefined> {
  const { paint } = layout;
  let turn = 0;
  for (const item of items) {
    yield "";
    // `fork --at` takes this number.
    if (item.kind === "prompt" && item.turn !== turn) yield paint("faint", `turn ${item.turn}`);
    turn = item.turn;
    yield* itemLines(item, layout);
    for (const file of "files" in item ? (item.files ?? []) : []) yield* faint(`  ${fileWords(file)}`, layout);
    if (item.aside !== undefined) yield* faint(`  (${plainLine(item.aside)})`, layout);
  }
}

function* itemLines(item: Item, layout: Layout): Generator<string, void, undefined> {
  const { paint, columns, markdown } = layout;
  switch (item.kind) {
    case "prompt":
      yield* led(linesOf(item.text, layout), layout, "heading", "> ");
      return;
    case "answer": {
      const lines = linesOf(item.text, layout);
      if (markdown && columns !== undefined && item.text.length <= MARKDOWN_CHARACTERS_MAX)
        yield* markdown(lines.join("\n"), columns);
      else yield* lines.flatMap((line) => wrapWords(line, columns));
      if (item.incomplete) yield paint("warning", "… cut off here");
      return;
    }
    case "reasoning":
      yield* shortened(item.text, layout, "~ ");
      if (item.incomplete) yield paint("warning", "  … cut off here");
      return;
    case "call":
      yield* callLines(item, layout);
      return;
    case "note":
      yield* shortened(item.text, layout, "- ");
      return;
  }
}

function* callLines(item: CallItem, layout: Layout): Generator<string, void, undefined> {
  const { paint, full, columns } = layout;
  const isBad = item.state === "failed" || item.state === "unknown" || item.state === "denied";
  const state = callStateWords[item.state];
  // The state is the last thing in the last row.
  const rows = wrapWords(`* ${callWords(item)}  ${state}`, columns, INDENT.length);
  const last = rows.pop()!;
  for (const row of rows) yield paint("name", row);
  const isWhole = last.endsWith(state);
  const head = isWhole ? last.slice(0, -state.length) : last;
  yield `${paint("name", head.trimEnd())}${head.slice(head.trimEnd().length)}${isWhole ? paint(isBad ? "bad" : "faint", state) : ""}`;
  const edit = editOf(item);
  if (full && item.input !== undefined) {
    const rest = edit ? edit.rest : item.input;
    if (!edit || Object.keys(edit.rest).length > 0) yield* shortened(JSON.stringify(rest, null, 2), layout);
  }
  if (edit) yield* diffLines(edit.rows, layout);
  if (item.child !== undefined) yield* faint(`  sub-agent: session ${shortId(plainLine(item.child))}`, layout);
  if (item.output !== undefined && item.output !== "") yield* shortened(item.output, layout);
}

const DIFF_STYLES: Readonly<Record<DiffRow["kind"], Style>> = {
  same: "faint",
  removed: "bad",
  added: "good",
  gap: "faint",
};

/** The rows of a diff, indented, in colour. A long one is cut. */
export function* diffLines(
  rows: readonly DiffRow[],
  { paint, full, columns }: Omit<Layout, "markdown">,
): Generator<string, void, undefined> {
  const shown = full || rows.length <= DIFF_LINES_MAX ? rows : rows.slice(0, DIFF_LINES_MAX - 1);
  for (const row of shown) {
    const text = diffRowText({ ...row, text: expandTabs(cutText(plain(row.text).replaceAll("\n", " "), full)) });
    for (const line of wrapWords(`${INDENT}${text}`, columns, INDENT.length)) yield paint(DIFF_STYLES[row.kind], line);
  }
  const rest = rows.length - shown.length;
  if (rest > 0) yield paint("faint", `${INDENT}… ${rest} more ${rest === 1 ? "line" : "lines"} of the change`);
}

function* shortened(text: string, layout: Layout, mark = INDENT): Generator<string, void, undefined> {
  const lines = linesOf(text, layout);
  const shown = layout.full ? lines : lines.slice(0, LINES_MAX);
  yield* led(shown, layout, "faint", mark);
  const rest = lines.length - shown.length;
  if (rest > 0) yield* faint(`  … ${rest} more ${rest === 1 ? "line" : "lines"} (--full)`, layout);
}

/** Lines with a mark before the first, and an indent before the others. */
function* led(
  lines: readonly string[],
  { paint, columns }: Layout,
  style: Style,
  mark: string,
): Generator<string, void, undefined> {
  for (const [i, line] of lines.entries()) {
    const rows = wrapWords(`${INDENT}${columns === undefined ? line : expandTabs(line)}`, columns);
    for (const [j, row] of rows.entries())
      yield paint(style, i === 0 && j === 0 ? mark + row.slice(INDENT.length) : row);
  }
}

function* faint(line: string, { paint, columns }: Layout): Generator<string, void, undefined> {
  for (const row of wrapWords(line, columns, INDENT.length)) yield paint("faint", row);
}

function linesOf(text: string, { full }: Layout): string[] {
  const cut = cutText(text, full);
  const lines = plain(cut).trimEnd().split("\n");
  if (cut.length < text.length) lines.push(`… ${bytesWords(text.length - cut.length)} more (--full)`);
  return lines;
}

/** Does not cut a character in half. */
function cutText(text: string, full: boolean): string {
  if (full || text.length <= CHARACTERS_MAX) return text;
  const isHalf = /[\ud800-\udbff]/.test(text[CHARACTERS_MAX - 1]!) && /[\udc00-\udfff]/.test(text[CHARACTERS_MAX]!);
  return text.slice(0, CHARACTERS_MAX - (isHalf ? 1 : 0));
}

/** A tab has no width of its own, so it cannot be wrapped. */
function expandTabs(text: string): string {
  return text.replaceAll("\t", "    ");
}

/** A file in a message, on one line. */
export function fileWords({ name, mediaType, bytes, url }: ShownFile): string {
  const size = bytes === undefined ? "" : `, ${bytesWords(bytes)}`;
  return plainLine(`[${name ?? url ?? "file"}: ${mediaType}${size}]`);
}

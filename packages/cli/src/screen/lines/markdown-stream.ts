import type { Token, Tokens } from "marked";
import { BLANK, type Line, lineText, type Style } from "./line.ts";
import { blockLines, blocksOf, toReadable } from "./markdown.ts";

/** An unfinished line longer than this is processed without waiting for its end. */
const LINE_CHARS_MAX = 4_000;
/** A complete row of code no longer changes, so it need not wait for the end of its block. */
const CODE_LINES_MAX = 8;

/**
 * Markdown that is still being streamed, split into what is finished and what may still change. A block is finished
 * when the next one starts. A long block is finished piece by piece, so that the cost of a step does not grow with the
 * length of the answer. Immutable: each step returns the next value.
 */
export interface MarkdownStream {
  /** How many characters of the text have been processed. */
  readonly taken: number;
  /** Processed and readable, but not finished. */
  readonly pending: string;
  /** What the rest of a split block must start with to be parsed correctly. */
  readonly prefix: string;
  /** The next rows continue the last block: no blank line between them. */
  readonly joined: boolean;
  /** Whether any rows are finished. */
  readonly begun: boolean;
}

export const EMPTY_STREAM: MarkdownStream = { taken: 0, pending: "", prefix: "", joined: false, begun: false };

export interface StreamStep {
  readonly stream: MarkdownStream;
  /** Rows that no longer change. */
  readonly finished: readonly Line[];
  /** Rows that may still change. */
  readonly live: readonly Line[];
}

/** `text` is everything streamed so far; `rowsMax`, how many rows may stay unfinished. */
export function advanceStream(
  before: MarkdownStream,
  text: string,
  columns: number,
  rowsMax: number,
  style: Style = {},
): StreamStep {
  const taken = findTakenEnd(text, before.taken);
  let stream: MarkdownStream = {
    ...before,
    taken,
    pending: before.pending + toReadable(text.slice(before.taken, taken)),
  };
  const rest = toReadable(text.slice(taken));
  const finished: Line[] = [];
  const emit = (tokens: readonly Token[], joined: boolean): void => {
    const rows = rowsOf(tokens, stream, columns, style);
    if (rows.length === 0) return;
    for (const row of rows) finished.push(row);
    stream = { ...stream, begun: true, joined };
  };

  let tokens = blocksOf(stream.prefix + stream.pending + rest);
  const settled = tokens.slice(0, settledIn(tokens, stream.prefix.length + stream.pending.length));
  if (settled.length > 0) {
    emit(settled, false);
    stream = { ...stream, ...skip(stream, lengthOf(settled)), prefix: "", joined: false };
    tokens = tokens.slice(settled.length);
  }
  const open = tokens.find((token) => token.type !== "space");
  const lines = stream.pending.split("\n").length - 1;
  const linesMax = open?.type === "code" ? CODE_LINES_MAX : Math.max(4, rowsMax);
  if (open !== undefined && (lines > linesMax || stream.pending.length > LINE_CHARS_MAX)) {
    const piece = pieceOf(open, stream);
    if (piece !== null) {
      emit(blocksOf(piece.text), piece.joined);
      stream = { ...stream, ...skip(stream, piece.text.length), prefix: piece.prefix, joined: piece.joined };
      tokens = blocksOf(stream.prefix + stream.pending + rest);
    }
  }
  return { stream, finished, live: rowsOf(tokens, stream, columns, style) };
}

/** The rest of the text, as rows that no longer change. */
export function finishStream(
  before: MarkdownStream,
  text: string,
  columns: number,
  style: Style = {},
): readonly Line[] {
  const all = before.prefix + before.pending + toReadable(text.slice(before.taken));
  return rowsOf(blocksOf(all.trimEnd()), before, columns, style);
}

function findTakenEnd(text: string, from: number): number {
  const end = text.lastIndexOf("\n") + 1;
  const taken = Math.max(from, end);
  if (text.length - taken <= LINE_CHARS_MAX) return taken;
  const space = text.lastIndexOf(" ");
  return space > taken ? space + 1 : taken;
}

/** How many blocks can no longer change: not the last one, and none that reaches into an unfinished line. */
function settledIn(tokens: readonly Token[], length: number): number {
  const last = tokens.findLastIndex((token) => token.type !== "space");
  let end = 0;
  const beyond = tokens.findIndex(({ raw }) => {
    end += raw.length;
    return end > length;
  });
  return Math.max(0, beyond === -1 ? last : Math.min(last, beyond));
}

function lengthOf(tokens: readonly { readonly raw: string }[]): number {
  return tokens.reduce((sum, { raw }) => sum + raw.length, 0);
}

/** `length` includes the prefix, which was never pending. */
function skip(stream: MarkdownStream, length: number): { readonly pending: string } {
  return { pending: stream.pending.slice(Math.max(0, length - stream.prefix.length)) };
}

function rowsOf(tokens: readonly Token[], stream: MarkdownStream, columns: number, style: Style): Line[] {
  const first = tokens.findIndex((token) => token.type !== "space");
  // Only the end of a block whose code is already written.
  const emptied = stream.prefix !== "" && tokens[first]?.type === "code" && (tokens[first] as Tokens.Code).text === "";
  const shown = emptied ? tokens.slice(first + 1) : tokens;
  const rows = blockLines(shown, columns, style);
  const own = stream.prefix === "" || emptied ? rows : rows.slice(prefixRows(shown, rows));
  const apart = stream.begun && (!stream.joined || emptied);
  return own.length > 0 && apart ? [BLANK, ...own] : own;
}

/** How many rows come from the prefix: the language name, or the table head with its rule. */
function prefixRows(tokens: readonly Token[], rows: readonly Line[]): number {
  const first = tokens.find((token) => token.type !== "space");
  if (first?.type === "code") return (first as Tokens.Code).lang?.trim() ? 1 : 0;
  if (first?.type === "table") return rows.findIndex((row) => /^[─┼]+$/u.test(lineText(row))) + 1;
  return 0;
}

interface Piece {
  readonly text: string;
  readonly prefix: string;
  /** The block continues after it. */
  readonly joined: boolean;
}

/** The part of an open block that can be finished now; null if it cannot be split. */
function pieceOf(open: Token, stream: MarkdownStream): Piece | null {
  const whole = stream.prefix + stream.pending;
  const lineEnd = whole.lastIndexOf("\n") + 1;
  const upTo = whole.length - lineEnd > LINE_CHARS_MAX / 2 ? whole.length : lineEnd;
  if (open.type === "code") {
    const block = whole.trimStart();
    const fence = /^(?:`{3,}|~{3,})/u.exec(block)?.[0];
    const first = block.slice(0, block.indexOf("\n") + 1);
    if (fence === undefined || first === "") return null;
    const text = whole.slice(0, upTo);
    return isClosed(text.trimStart().slice(first.length), fence)
      ? { text, prefix: "", joined: false }
      : { text, prefix: first, joined: true };
  }
  if (open.type === "table") {
    const head = /^[^\n]*\n[^\n]*\n/u.exec(whole.trimStart());
    return head === null ? null : { text: whole.slice(0, upTo), prefix: head[0], joined: true };
  }
  if (open.type === "list") {
    // Split before the last item, which may still grow. The rest is parsed as a list again.
    const tokens = blocksOf(whole);
    const at = tokens.findLastIndex((token) => token.type === "list");
    const items = (tokens[at] as Tokens.List | undefined)?.items ?? [];
    if (items.length > 1) {
      const end = lengthOf(tokens.slice(0, at)) + lengthOf(items.slice(0, -1));
      return { text: whole.slice(0, end), prefix: "", joined: true };
    }
  }
  return upTo > 0 ? { text: whole.slice(0, upTo), prefix: "", joined: true } : null;
}

/** Whether this code ends with the fence that it started with. */
function isClosed(code: string, fence: string): boolean {
  const last = code.trimEnd().split("\n").at(-1)!.trim();
  return last.startsWith(fence) && last.replaceAll(fence[0]!, "") === "";
}

import { type DiffRow, diffRowText, editOf } from "@holdfast/server/internal/edits";
import { bytesWords, plain, plainLine } from "../../terminal/index.ts";
import type { AnswerItem, CallItem, Item, NoteItem, PromptItem, ShownFile } from "../../transcript/item.ts";
import { CALL_STATES, callSummary, shortId } from "./labels.ts";
import { BLANK, cut, type Line, line, type Span, type Style, span, untab, wrap } from "./line.ts";
import { markdownLines } from "./markdown.ts";

const REASONING_ROWS_MAX = 6;
const OUTPUT_ROWS_MAX = 6;
const DIFF_ROWS_MAX = 16;
const FAINT: Style = { dim: true };
const DIFF_STYLES: Readonly<Record<DiffRow["kind"], Style>> = {
  same: FAINT,
  gap: FAINT,
  removed: { colour: "red" },
  added: { colour: "green" },
};

/** A recorded item as shown in the scrollback, with a blank line before it. */
export function itemLines(item: Item, columns: number): Line[] {
  const rows = bodyOf(item, columns);
  if (item.aside !== undefined) {
    rows.push(
      ...wrap(line(`not shown to the model: ${plainLine(item.aside)}`, FAINT), columns, { first: [span("  ")] }),
    );
  }
  return rows.length === 0 ? [] : [BLANK, ...rows];
}

function bodyOf(item: Item, columns: number): Line[] {
  switch (item.kind) {
    case "prompt":
      return [...promptLines(item, columns), ...filesLines(item.files, columns)];
    case "answer":
      return [...answerLines(item, columns), ...filesLines(item.files, columns)];
    case "reasoning":
      return reasoningLines(item.text, columns);
    case "call":
      return [...callLines(item, columns), ...filesLines(item.files, columns)];
    case "note":
      return noteLines(item, columns);
  }
}

function promptLines(item: PromptItem, columns: number): Line[] {
  const text = untab(plain(item.text)).trimEnd();
  const style: Style = { bold: true };
  return text.split("\n").flatMap((one, i) =>
    wrap(line(one, style), columns, {
      first: [i === 0 ? span("❯ ", { bold: true, colour: "cyan" }) : span("  ")],
      rest: [span("  ")],
    }),
  );
}

function answerLines(item: AnswerItem, columns: number): Line[] {
  const rows = markdownLines(item.text, columns);
  return item.incomplete ? [...rows, cutOffLine()] : rows;
}

export function cutOffLine(): Line {
  return line("… cut off here", { italic: true, colour: "yellow" });
}

/** Shows reasoning in brief: the record has all of it. */
export function reasoningLines(text: string, columns: number): Line[] {
  const clean = untab(plain(text)).trim();
  if (clean === "") return [];
  const rows = clean
    .split("\n")
    .filter((one) => one.trim() !== "")
    .flatMap((one) =>
      wrap(line(one, { dim: true, italic: true }), columns, { first: [span("  ")], rest: [span("  ")] }),
    );
  return withTitle(rows, REASONING_ROWS_MAX, "∴ thought", columns);
}

function withTitle(rows: Line[], rowsMax: number, title: string, columns: number): Line[] {
  const shown = rows.length <= rowsMax ? rows : rows.slice(0, rowsMax - 1);
  const more = rows.length - shown.length;
  return [line(title, FAINT), ...shown, ...(more > 0 ? [cut(line(`  … ${more} more lines`, FAINT), columns)] : [])];
}

/** One row: mark, name, what it does, state. */
export function callLine(
  name: string,
  summary: string,
  state: CallItem["state"] | "answered",
  columns: number,
  mark?: string,
  extra = "",
): Line {
  const { mark: own, words, colour } = CALL_STATES[state];
  const tail = [words, extra].filter((one) => one !== "").join(", ");
  const end: Span[] = tail === "" ? [] : [span(`  ${tail}`, { colour })];
  const room = Math.max(8, columns - tail.length - 2);
  const head = cut(
    [span(`${mark ?? own} `, { colour }), span(plainLine(name), { bold: true }), span(` ${summary}`)],
    tail === "" ? columns : room,
  );
  return cut([...head, ...end], columns);
}

function callLines(item: CallItem, columns: number): Line[] {
  const extra = item.child === undefined ? "" : `session ${shortId(item.child)}`;
  const rows = [
    callLine(item.name, callSummary(item), item.state, columns, undefined, extra),
    ...(item.state === "done" ? diffLines(item, columns) : []),
  ];
  if (item.output === undefined || item.output.trim() === "") return rows;
  return [...rows, ...outputHead(item.output, columns, OUTPUT_ROWS_MAX)];
}

/** What a call has changed in a file; each line is cut, not wrapped. */
function diffLines(item: CallItem, columns: number): Line[] {
  const all = editOf(item)?.rows ?? [];
  const shown = all.length <= DIFF_ROWS_MAX ? all : all.slice(0, DIFF_ROWS_MAX - 1);
  const more = all.length - shown.length;
  return [
    ...shown.map((row) => cut([span("  "), span(untab(plain(diffRowText(row))), DIFF_STYLES[row.kind])], columns)),
    ...(more > 0 ? [cut(line(`  … ${more} more lines`, FAINT), columns)] : []),
  ];
}

/** The start of a tool's output; each line is cut, not wrapped. */
export function outputHead(output: string, columns: number, rowsMax: number): Line[] {
  const all = trimmedLines(output);
  const shown = all.length <= rowsMax ? all : all.slice(0, rowsMax - 1);
  const more = all.length - shown.length;
  return [
    ...shown.map((one) => outputRow(one, columns)),
    ...(more > 0 ? [outputRow(`… ${more} more lines`, columns)] : []),
  ];
}

/** The end of a running tool's output. */
export function outputTail(output: string, columns: number, rowsMax: number): Line[] {
  return trimmedLines(output)
    .slice(-rowsMax)
    .map((one) => outputRow(one, columns));
}

function trimmedLines(output: string): string[] {
  const text = untab(plain(output)).trimEnd();
  return text === "" ? [] : text.replace(/^\n+/u, "").split("\n");
}

function outputRow(text: string, columns: number): Line {
  return cut([span("  │ ", { colour: "grey" }), span(text, FAINT)], columns);
}

function noteLines(item: NoteItem, columns: number): Line[] {
  return untab(plain(item.text))
    .trim()
    .split("\n")
    .flatMap((one) => wrap(line(one, FAINT), columns, { first: [span("┄ ", FAINT)], rest: [span("  ")] }));
}

function filesLines(files: readonly ShownFile[] | undefined, columns: number): Line[] {
  return (files ?? []).map(({ name, mediaType, bytes, url }) => {
    const facts = [mediaType, bytes === undefined ? "" : bytesWords(bytes)].filter((one) => one !== "").join(", ");
    return cut(line(`  [${plainLine(name ?? url ?? "file")}: ${plainLine(facts)}]`, FAINT), columns);
  });
}

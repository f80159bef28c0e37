import { bytesWords } from "../terminal/bytes.ts";
import type { Paint } from "../terminal/colour.ts";
import { plain, plainLine } from "../terminal/plain.ts";
import type { CallItem, Item, ShownFile } from "./item.ts";
import { callWords, stateWords } from "./words.ts";

/** How many lines of an output or a thought are shown by default. */
const LINES_MAX = 12;
/** A line can have megabytes, and a message fifty of them (C28). */
const CHARACTERS_MAX = 100_000;

/** A conversation as lines for a terminal or a pager. Texts keep their line breaks: terminals and pagers wrap. */
export function* transcriptLines(
  items: readonly Item[],
  paint: Paint,
  full: boolean,
): Generator<string, void, undefined> {
  for (const item of items) {
    yield "";
    yield* itemLines(item, paint, full);
    for (const file of "files" in item ? (item.files ?? []) : []) yield paint("faint", `  ${fileWords(file)}`);
    if (item.aside !== undefined) yield paint("faint", `  (${plainLine(item.aside)})`);
  }
}

function* itemLines(item: Item, paint: Paint, full: boolean): Generator<string, void, undefined> {
  switch (item.kind) {
    case "prompt":
      for (const [i, line] of linesOf(item.text, full).entries())
        yield paint("heading", `${i === 0 ? "> " : "  "}${line}`);
      return;
    case "answer":
      yield* linesOf(item.text, full);
      if (item.incomplete) yield paint("warning", "… cut off here");
      return;
    case "reasoning":
      yield* indent(item.text, paint, full, "~ ");
      if (item.incomplete) yield paint("warning", "  … cut off here");
      return;
    case "call":
      yield* callLines(item, paint, full);
      return;
    case "note":
      yield* indent(item.text, paint, full, "- ");
      return;
  }
}

function* callLines(item: CallItem, paint: Paint, full: boolean): Generator<string, void, undefined> {
  const isBad = item.state === "failed" || item.state === "unknown" || item.state === "denied";
  yield `${paint("name", `* ${callWords(item)}`)}  ${paint(isBad ? "bad" : "faint", stateWords[item.state])}`;
  if (full && item.input !== undefined) yield* indent(JSON.stringify(item.input, null, 2), paint, full);
  if (item.child !== undefined) yield paint("faint", `  sub-agent: session ${plainLine(item.child)}`);
  if (item.output !== undefined && item.output !== "") yield* indent(item.output, paint, full);
}

function* indent(text: string, paint: Paint, full: boolean, mark = "  "): Generator<string, void, undefined> {
  const lines = linesOf(text, full);
  const shown = full ? lines : lines.slice(0, LINES_MAX);
  for (const [i, line] of shown.entries()) yield paint("faint", `${i === 0 ? mark : "  "}${line}`);
  const rest = lines.length - shown.length;
  if (rest > 0) yield paint("faint", `  … ${rest} more ${rest === 1 ? "line" : "lines"} (--full)`);
}

function linesOf(text: string, full: boolean): string[] {
  const cut = !full && text.length > CHARACTERS_MAX;
  const lines = plain(cut ? text.slice(0, CHARACTERS_MAX) : text)
    .trimEnd()
    .split("\n");
  if (cut) lines.push(`… ${bytesWords(text.length - CHARACTERS_MAX)} more (--full)`);
  return lines;
}

function fileWords({ name, mediaType, bytes, url }: ShownFile): string {
  const size = bytes === undefined ? "" : `, ${bytesWords(bytes)}`;
  return plainLine(`[${name ?? url ?? "file"}: ${mediaType}${size}]`);
}

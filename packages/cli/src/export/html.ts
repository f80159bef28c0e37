import { createHash } from "node:crypto";
import { bytesWords } from "../terminal/bytes.ts";
import { plain, plainLine } from "../terminal/plain.ts";
import type { AnswerItem, CallItem, Item, ShownFile } from "../transcript/item.ts";
import { print } from "../transcript/shape.ts";
import { callStateWords, callWords } from "../transcript/words.ts";
import { answerHtml, escapeHtml, isSafeLink, verbatim } from "./answer-html.ts";
import { type Document, timeWords } from "./document.ts";
import { style } from "./page-style.ts";
import { shorten } from "./shorten.ts";

/** Browsers show these without running anything in them. SVG is not one of them. */
const RASTERS = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
/** Of base64. A larger image is mentioned, not shown. */
const IMAGE_CHARS_MAX = 16_000_000;

/**
 * Only the page's own style and embedded images: no scripts and no network, whatever the texts say (C25).
 */
function policy(): string {
  const hash = createHash("sha256").update(style).digest("base64");
  return `default-src 'none'; style-src 'sha256-${hash}'; img-src data:; base-uri 'none'; form-action 'none'`;
}

/** One self-contained file that runs nothing. */
export function* htmlOf({ title, facts, warnings, items, queued }: Document): Generator<string> {
  const name = line(title);
  yield `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy()}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="holdfast">
<title>${name}</title>
<style>${style}</style>
</head>
<body>
<header>
<h1 dir="auto">${name}</h1>
<dl>
`;
  for (const [fact, value] of facts) yield `<dt>${line(fact)}</dt><dd dir="auto">${line(value)}</dd>\n`;
  yield "</dl>\n";
  for (const warning of warnings) yield `<p class="warning" role="note">${line(warning)}</p>\n`;
  yield "</header>\n<main>\n";
  let turn: number | null = null;
  // Separate: a late result can belong to a turn that has ended.
  let sections = 0;
  for (const item of items) {
    if (item.turn !== turn) {
      if (turn !== null) yield "</section>\n";
      turn = item.turn;
      sections += 1;
      yield `<section aria-labelledby="s${sections}">\n<h2 id="s${sections}">Turn ${turn}</h2>\n`;
    }
    yield itemHtml(item);
  }
  if (turn !== null) yield "</section>\n";
  if (queued.length > 0) {
    yield `<section aria-labelledby="waiting">\n<h2 id="waiting">Queued prompts</h2>\n`;
    for (const item of queued) yield itemHtml(item);
    yield "</section>\n";
  }
  yield "</main>\n<footer><p>Made by holdfast export. This page runs no scripts and makes no network requests.</p></footer>\n</body>\n</html>\n";
}

function itemHtml(item: Item): string {
  switch (item.kind) {
    case "prompt":
      return article(item, "You", `<div dir="auto">${verbatim(words(item.text))}</div>${filesHtml(item.files)}`);
    case "answer":
      return article(
        item,
        item.model ?? "Model",
        `<div dir="auto">${answerHtml(words(item.text))}</div>${cut(item)}${filesHtml(item.files)}`,
      );
    case "reasoning":
      return foldable(item, "Reasoning", `<div dir="auto">${verbatim(words(item.text))}</div>${cut(item)}`);
    case "note":
      return article(item, "Note", `<div dir="auto">${verbatim(words(item.text))}</div>`);
    case "call":
      return callHtml(item);
  }
}

function article(item: Item, who: string, content: string): string {
  return `<article class="${item.kind}">\n<h3 dir="auto">${line(who)} <time datetime="${escapeHtml(item.at)}">${escapeHtml(timeWords(item.at))}</time>${aside(item)}</h3>\n${content}\n</article>\n`;
}

function foldable(item: Item, summary: string, content: string): string {
  return `<article class="${item.kind}">\n<details>\n<summary>${summary}${aside(item)}</summary>\n${content}\n</details>\n</article>\n`;
}

const cut = ({ incomplete }: AnswerItem): string =>
  incomplete ? `<p class="incomplete">Incomplete: cut off here.</p>` : "";

const aside = (item: Item): string => (item.aside ? ` <span class="aside">(${line(item.aside)})</span>` : "");

function callHtml(item: CallItem): string {
  const { name, input, state, output, files, child, by } = item;
  const parts: string[] = [];
  if (child) parts.push(`<p>Sub-agent session: <code>${line(child)}</code></p>`);
  if (input !== undefined && input !== null) parts.push(`<p>Input</p>\n${code(print(input, 2))}`);
  if (output !== undefined && output !== "") parts.push(`<p>Result</p>\n${code(output)}`);
  if (parts.length === 0) parts.push("<p>Nothing else is recorded.</p>");
  const who = by === "provider" ? "Provider tool" : "Tool";
  const summary = `${who}: <code dir="auto">${line(callWords({ name, input }))}</code> <span class="state ${state}">${callStateWords[state]}</span>`;
  return `${foldable(item, summary, parts.join("\n"))}${filesHtml(files)}`;
}

const code = (text: string): string => `<pre tabindex="0" dir="auto"><code>${escapeHtml(words(text))}</code></pre>`;

function filesHtml(files: readonly ShownFile[] = []): string {
  return files.map(fileHtml).join("");
}

function fileHtml({ mediaType, name, data, url, bytes }: ShownFile): string {
  const size = bytes === undefined ? "" : `, ${bytesWords(bytes)}`;
  const label = `${line(name ?? "Unnamed file")} (${line(mediaType)}${size})`;
  const isShown =
    data !== undefined &&
    RASTERS.has(mediaType) &&
    data.length <= IMAGE_CHARS_MAX &&
    /^[A-Za-z0-9+/]+={0,2}$/.test(data);
  if (isShown) {
    return `<figure><img alt="${line(name ?? "Unnamed image")}" src="data:${mediaType};base64,${data}"><figcaption>${label}</figcaption></figure>\n`;
  }
  const at =
    url === undefined
      ? ""
      : isSafeLink(url)
        ? ` <a href="${escapeHtml(url)}" rel="noopener noreferrer nofollow">${line(url)}</a>`
        : ` ${line(url)}`;
  return `<p class="file">${label}${at}</p>\n`;
}

/**
 * Texts are cleaned before they are escaped: invalid Unicode and characters that change the writing direction would
 * still have their effect in a page.
 */
const words = (text: string): string => plain(shorten(text));
const line = (text: string): string => escapeHtml(plainLine(text.slice(0, 10_000)));

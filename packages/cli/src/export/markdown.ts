import { bytesWords } from "../terminal/bytes.ts";
import { plain, plainLine } from "../terminal/plain.ts";
import type { CallItem, Item, ShownFile } from "../transcript/item.ts";
import { print } from "../transcript/shape.ts";
import { callStateWords, callWords } from "../transcript/words.ts";
import { type Document, timeWords } from "./document.ts";
import { escapedHtml } from "./markdown-html.ts";
import { shorten } from "./shorten.ts";

/** For people, in any editor: prompts are quoted, tool results are fenced. */
export function* markdownOf({ title, facts, warnings, items, queued }: Document): Generator<string> {
  yield `# ${inline(title)}\n\n`;
  for (const [name, value] of facts) yield `- **${inline(name)}:** ${codeSpan(value)}\n`;
  for (const warning of warnings) yield `\n> **Note:** ${inline(warning)}\n`;
  let turn: number | null = null;
  for (const item of items) {
    if (item.turn !== turn) {
      turn = item.turn;
      yield `\n---\n\n## Turn ${turn}\n`;
    }
    yield `\n${itemText(item)}`;
  }
  if (queued.length > 0) yield "\n---\n\n## Queued prompts\n";
  for (const item of queued) yield `\n${itemText(item)}`;
}

function itemText(item: Item): string {
  const aside = item.aside ? ` _(${inline(item.aside)})_` : "";
  const when = timeWords(item.at);
  switch (item.kind) {
    case "prompt":
      return `### You\n\n_${when}_${aside}\n\n${quote(item.text)}${filesText(item.files)}`;
    case "answer": {
      const who = item.model ? inline(item.model) : "Model";
      const cut = item.incomplete ? "\n**[Incomplete: the answer was cut off here.]**\n" : "";
      return `### ${who}\n\n_${when}_${aside}\n\n${block(item.text)}${cut}${filesText(item.files)}`;
    }
    case "reasoning": {
      const cut = item.incomplete ? " _(cut off)_" : "";
      return `**Reasoning**${cut}${aside}\n\n${quote(item.text)}`;
    }
    case "note":
      return `**Note**${aside}\n\n${quote(item.text)}`;
    case "call":
      return callText(item, aside);
  }
}

function callText({ name, input, state, output, files, child, by }: CallItem, aside: string): string {
  const who = by === "provider" ? "Provider tool" : "Tool";
  const lines = [`**${who}:** ${codeSpan(callWords({ name, input }))} — ${callStateWords[state]}${aside}\n`];
  if (child) lines.push(`Sub-agent session: ${codeSpan(child)}\n`);
  const isPlain = typeof input === "string";
  if (input !== undefined && input !== null) lines.push(fence(print(input, 2), isPlain ? "text" : "json"));
  if (output !== undefined && output !== "") lines.push(fence(output, "text"));
  return lines.join("\n") + filesText(files);
}

function filesText(files: readonly ShownFile[] = []): string {
  return files
    .map(({ name, mediaType, bytes, url }) => {
      const size = bytes === undefined ? "" : `, ${bytesWords(bytes)}`;
      return `\n- File: ${codeSpan(`${name ?? url ?? "unnamed"} (${mediaType}${size})`)}\n`;
    })
    .join("");
}

/** A fence longer than any in the text cannot be closed by the text. */
export function fence(text: string, language: string): string {
  const content = plain(shorten(text));
  const fence = "`".repeat(Math.max(3, longestRun(content) + 1));
  return `${fence}${language}\n${content}${content.endsWith("\n") ? "" : "\n"}${fence}\n`;
}

function codeSpan(text: string): string {
  const content = plainLine(text);
  if (content === "") return "";
  const ticks = "`".repeat(longestRun(content) + 1);
  // Content that starts or ends with a backtick needs a space, which is not shown.
  return ticks.length > 1 ? `${ticks} ${content} ${ticks}` : `${ticks}${content}${ticks}`;
}

function longestRun(text: string): number {
  let longest = 0;
  for (const [run] of text.matchAll(/`+/g)) longest = Math.max(longest, run.length);
  return longest;
}

/** One line of literal text: characters with a meaning in Markdown are escaped. */
function inline(text: string): string {
  return plainLine(text).replaceAll(/[\\`*_{}[\]<>#|~!&]/g, "\\$&");
}

/**
 * The model's own Markdown. HTML in it is shown, not rendered. An unclosed fence is closed, so that it does not swallow
 * what follows.
 */
function block(text: string): string {
  const { markdown, isOpen } = escapedHtml(plain(shorten(text)));
  return `${markdown}${markdown.endsWith("\n") ? "" : "\n"}${isOpen ? `${isOpen}\n` : ""}`;
}

function quote(text: string): string {
  const lines = block(text).replace(/\n$/, "").split("\n");
  return `${lines.map((line) => (line === "" ? ">" : `> ${line}`)).join("\n")}\n`;
}

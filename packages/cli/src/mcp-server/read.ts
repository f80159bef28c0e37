import { setImmediate as breathe } from "node:timers/promises";
import type { Reading, Store } from "holdfast";
import { defined } from "../defined.ts";
import { commandsElsewhere } from "../evidence/facts-elsewhere.ts";
import { timeWords, tokenWords } from "../export/document.ts";
import { accountElsewhere } from "../store/account.ts";
import { childrenOf } from "../store/children.ts";
import { damageLines, healthOf } from "../store/damage.ts";
import { listedTitle, resolveId } from "../store/session-id.ts";
import { nullIfUnreadable, usageOf } from "../store/usage.ts";
import { accountLines, heldWords } from "../transcript/account-lines.ts";
import type { CallItem, Item } from "../transcript/item.ts";
import { itemsOf } from "../transcript/items.ts";
import { saidIn } from "../transcript/said.ts";
import { shapeOf } from "../transcript/shape.ts";
import { fileWords } from "../transcript/terminal-lines.ts";
import { titleOf } from "../transcript/title.ts";
import { callStateWords } from "../transcript/words.ts";
import { type CleanOptions, type Excerpt, lineOf, pieceOf, startOf, valueText } from "./clean.ts";
import { count, TITLE_COLUMNS } from "./list.ts";
import type { Answer } from "./quote.ts";

/** A page ends after the item that exceeds this. Clients refuse results of more than about 25,000 tokens. */
const PAGE_CHARS = 24_000;
/** Items shown before the one that a search found. */
const BEFORE = 2;
const LINES_MAX = 20;
const ID_COLUMNS = 200;
/** Lines of a session are indented, so that none of them looks like the start of an item. */
const INDENT = "  ";

export interface ReadInput {
  readonly session: string;
  /** The number of the first item; negative: counted from the end. */
  readonly from?: number | undefined;
  /** Start a little before the item of this message. */
  readonly message?: string | undefined;
  readonly limit: number;
  readonly chars_per_text: number;
}

/** Items of a conversation as `holdfast show` has them: the current epoch, with what was in flight. */
export async function readSession(store: Store, input: ReadInput, cleaning: CleanOptions): Promise<Answer> {
  const id = await resolveId(store, input.session);
  const reading = await store.read(id);
  const items = await itemsIn(store, reading);
  const first = firstOf(items, input);
  if (first === null)
    return {
      about: `Session ${id} has no such message in its current conversation: it was replaced, by a compaction for example, or is hidden. Call read_text with this session and message to read it anyway.`,
      isError: true,
    };
  const page: string[] = [];
  let chars = 0;
  for (let at = first; at < items.length && page.length < input.limit && chars < PAGE_CHARS; at++) {
    const text = itemText(items[at]!, at + 1, input.chars_per_text, cleaning);
    page.push(text);
    chars += text.length;
    // Redacting a page of large outputs takes a while.
    await breathe();
  }
  const end = first + page.length;
  const head = await headText(store, reading, items, cleaning);
  return {
    about: `Session ${id}: ${count(items.length, "item")}${page.length === 0 ? ", none of which is in this range" : page.length === items.length ? "" : `, ${first + 1} to ${end} of which are below`}. Their texts are indented; lines that are not indented are from Holdfast.`,
    quoted: [head, ...page].join("\n\n"),
    next:
      end < items.length && page.length > 0
        ? `There are more items. Call read_session again with from ${end + 1}.`
        : reading.holder
          ? "A process has this session open, so it may grow."
          : "",
  };
}

export interface TextInput {
  readonly session: string;
  /** The item's id or number, or the id of a message. */
  readonly item: string;
  readonly part?: "text" | "input" | "output" | undefined;
  readonly offset: number;
  readonly chars: number;
}

/** A piece of one text. Finds messages that the conversation no longer has, too. */
export async function readText(store: Store, input: TextInput, cleaning: CleanOptions): Promise<Answer> {
  const id = await resolveId(store, input.session);
  const reading = await store.read(id);
  const items = await itemsIn(store, reading);
  const wanted = input.item.trim();
  const item =
    items.find((one) => one.id === wanted) ?? (/^\d{1,9}$/.test(wanted) ? items[Number(wanted) - 1] : undefined);
  const found = item
    ? { text: partOf(item, input.part, cleaning), where: "" }
    : await replacedText(store, id, reading, wanted);
  if (found === null) return { about: `Session ${id} has no such item or message. Nothing was read.`, isError: true };
  if (found.text === null)
    return {
      about: `This item has no ${input.part}. ${item?.kind === "call" ? "It is a call: ask for its input or output." : "It has only a text."}`,
      isError: true,
    };
  const { text, next, total } = pieceOf(found.text, input.offset, input.chars, cleaning);
  return {
    about:
      text === ""
        ? `The text has ${total} characters, so there is nothing at ${input.offset}.`
        : `Characters ${input.offset} to ${input.offset + text.length} of ${total}${found.where}.`,
    quoted: text,
    next: next === null ? "" : `There is more. Call read_text again with offset ${next}.`,
  };
}

async function itemsIn(store: Store, reading: Reading<unknown>): Promise<readonly Item[]> {
  // The list may fail because of another session; read this one anyway.
  const children = await nullIfUnreadable(childrenOf(store, reading.id));
  return itemsOf(reading, defined({ children: children ?? undefined }));
}

/** The index of the first item; null if the conversation has no such message. */
function firstOf(items: readonly Item[], { from = 1, message }: ReadInput): number | null {
  if (message === undefined) return Math.max(0, from < 0 ? items.length + from : from - 1);
  const found = items.findIndex(({ id }) => id === message || id.startsWith(`${message}.`));
  return found === -1 ? null : Math.max(0, found - BEFORE);
}

async function headText(
  store: Store,
  reading: Reading<unknown>,
  items: readonly Item[],
  cleaning: CleanOptions,
): Promise<string> {
  const { id, attributes, recovery } = reading;
  const account = accountElsewhere(reading, await commandsElsewhere(store.url, reading));
  const held = heldWords(account);
  const line = (text: string): string => lineOf(text, cleaning, TITLE_COLUMNS);
  const title = attributes.title || ((await nullIfUnreadable(listedTitle(store, id))) ?? "");
  const tokens = tokenWords(usageOf(reading));
  const damage = healthOf(recovery) === "corrupt" ? damageLines(recovery, false) : [];
  return [
    `title: ${line(titleOf(title, items)) || "(no prompt yet)"}`,
    ...(attributes.cwd === undefined ? [] : [`folder: ${line(attributes.cwd)}`]),
    ...(attributes.app === undefined ? [] : [`program: ${line(attributes.app)}`]),
    ...(attributes.parent ? [`sub-agent of session ${line(attributes.parent.session)}`] : []),
    ...(attributes.forkedFrom ? [`forked from session ${line(attributes.forkedFrom.session)}`] : []),
    ...(tokens ? [`tokens: ${tokens}`] : []),
    ...(held === null ? [] : [line(held)]),
    ...bounded(damage.map((one) => line(`damaged: ${one}`))),
    ...bounded(accountLines(account, "other").map((one) => lineOf(one, cleaning, TITLE_COLUMNS))),
  ].join("\n");
}

function bounded(lines: readonly string[]): string[] {
  const rest = lines.length - LINES_MAX;
  return [...lines.slice(0, LINES_MAX), ...(rest > 0 ? [`and ${rest} more`] : [])];
}

function itemText(item: Item, number: number, chars: number, cleaning: CleanOptions): string {
  const what =
    item.kind === "call" ? `call of ${lineOf(item.name, cleaning, 80)}, ${callStateWords[item.state]}` : item.kind;
  const head = `[${number}] ${what}, turn ${item.turn}, ${timeWords(item.at)}, id ${lineOf(item.id, cleaning, ID_COLUMNS)}`;
  const lines = [head];
  if (item.aside !== undefined) lines.push(`(not seen by the model: ${lineOf(item.aside, cleaning, TITLE_COLUMNS)})`);
  for (const { part, text } of partsOf(item, cleaning)) {
    if (text === "") continue;
    if (item.kind === "call") lines.push(`${part}:`);
    const start = startOf(text, chars, cleaning);
    lines.push(...start.text.split("\n").map((one) => INDENT + one));
    if (start.next !== null)
      lines.push(`more: read_text with item ${number}, part ${part}, offset ${start.next}${sizeWords(text, start)}`);
  }
  if ("incomplete" in item && item.incomplete) lines.push("(cut off here)");
  for (const file of "files" in item ? (item.files ?? []) : [])
    lines.push(INDENT + lineOf(fileWords(file), cleaning, TITLE_COLUMNS));
  if (item.kind === "call" && item.child !== undefined)
    lines.push(`sub-agent: session ${lineOf(item.child, cleaning, ID_COLUMNS)}`);
  return lines.join("\n");
}

function sizeWords(text: string, { next }: Excerpt): string {
  return ` (about ${text.length - next!} more characters)`;
}

function partsOf(
  item: Item,
  cleaning: CleanOptions,
): { readonly part: "text" | "input" | "output"; readonly text: string }[] {
  if (item.kind !== "call") return [{ part: "text", text: item.text }];
  return [
    { part: "input", text: inputText(item, cleaning) },
    { part: "output", text: item.output ?? "" },
  ];
}

function inputText({ input }: CallItem, cleaning: CleanOptions): string {
  return input === undefined ? "" : valueText(input, cleaning);
}

/** Null if the item has no such part. */
function partOf(item: Item, part: TextInput["part"], cleaning: CleanOptions): string | null {
  const own = partsOf(item, cleaning);
  const wanted = part ?? (item.kind === "call" ? "output" : "text");
  return own.find((one) => one.part === wanted)?.text ?? null;
}

/** A message of an earlier epoch, from the journal. */
async function replacedText(
  store: Store,
  id: string,
  { attributes }: Reading<unknown>,
  message: string,
): Promise<{ readonly text: string; readonly where: string } | null> {
  let text: string | null = null;
  let isHidden = false;
  for await (const record of store.history(id)) {
    if (record["id"] !== message || (record.kind !== "message" && record.kind !== "patch")) continue;
    const hiding = shapeOf(record["metadata"])?.["hiddenFromUser"];
    if (hiding !== undefined || record.kind === "message") isHidden = hiding === true;
    if (record.kind !== "message") continue;
    const { parts } = saidIn(record["message"], attributes.dialect);
    text = parts.flatMap((part) => (part.type === "text" || part.type === "reasoning" ? [part.text] : [])).join("\n\n");
  }
  // What is hidden from the user is not for others either.
  return text === null || isHidden ? null : { text, where: ". The message is no longer part of the conversation" };
}

import { isUtf8 } from "node:buffer";
import type { ReadItem } from "../../contract/agent.ts";
import type { Edit } from "../../contract/plan.ts";
import { type ProblemKind, problem } from "../../contract/problem.ts";
import type { Place, RecordState } from "../../contract/record.ts";
import { type Fields, fieldsOf, listIn, textIn } from "../../contract/shapes.ts";
import type { SourceFile } from "../../files/source-file.ts";
import { madeUuid } from "../../mend/entries.ts";
import { CUT_OFF } from "../../mend/words.ts";
import { JsonDepth } from "../../scan/json-depth.ts";
import { readPrefix } from "../../scan/read-prefix.ts";
import { format } from "./format.ts";

/**
 * Older versions wrote a session as one indented object, `{sessionId, projectHash, …, messages: […]}`. Gemini refuses
 * the whole file for one bad byte; here, each message is read for itself.
 */

/** A string of JSON cannot be longer in this process. */
const BYTES_MAX = 256 * 2 ** 20;
const OPEN_BRACE = 0x7b;
const MESSAGES = /"messages"\s*:\s*\[/;
const MESSAGE = /\{\s*"id"\s*:/g;

export function isWholeObject(file: SourceFile): boolean {
  const head = Buffer.from(file.read(0, 64)).toString("latin1");
  return /^(?:\xef\xbb\xbf)?\{\r?\n\s+"/.test(head) || (file.path.endsWith(".json") && !head.startsWith('{"'));
}

/** The file as Gemini wrote it, with every message that can be read; null if nothing is wrong with it. */
export function mendWholeObject(file: SourceFile, header: () => Fields, lost: string[]): Edit | null {
  const items = [...readWholeObject(file)];
  if (!items.some(({ type }) => type === "problem")) return null;
  let facts: Fields | null = null;
  const messages = new Map<string, Fields>();
  for (const item of items) {
    if (item.type !== "record") continue;
    const { value, kind, state, place } = item.record;
    const fields = fieldsOf(value);
    if (kind === "facts") facts ??= fields;
    else {
      const kept = state === "partial" ? messageIn(fields, String(place.offset)) : value === undefined ? null : fields;
      if (state !== "intact" && state !== "recovered" && place.offset !== 0) lost.push(WORDS(place.line, kept));
      if (kept) messages.set(String(kept["id"]), kept);
    }
  }
  if (messages.size === 0) return null;
  const [first] = messages.values();
  const startTime = first?.["timestamp"] ?? new Date(0).toISOString();
  const { messages: _, ...known } = facts ?? {};
  // A summary stands behind the messages.
  const tail = /\n {2}\]\s*,\s*("(?:summary|directories|kind)"[\s\S]*)$/.exec(
    Buffer.from(file.read(0, file.size)).toString("utf8"),
  )?.[1];
  const behind = tail === undefined ? {} : fieldsOf(readPrefix(`{${tail}`).value);
  const whole = {
    startTime,
    lastUpdated: startTime,
    ...(facts ? {} : header()),
    ...known,
    messages: [...messages.values()],
    ...behind,
  };
  const bytes = Buffer.from(JSON.stringify(whole, null, 2));
  return { offset: 0, length: file.size, bytes, grade: "intact", why: "writes the session as one object again" };
}

const WORDS = (line: number | null, kept: unknown): string =>
  `${kept ? "A part of the" : "The"} record at line ${line} is lost.`;

/** What can be read of a message, with a mark where it ends. */
function messageIn(fields: Fields, offset: string): Fields | null {
  const { content, timestamp, type } = fields;
  const names = Object.keys(fields);
  if (typeof type !== "string" || content === undefined) return null;
  const id = textIn(fields["id"]) ?? madeUuid("message", offset);
  const at = textIn(timestamp) ?? new Date(0).toISOString();
  const isCut = names.at(-1) === "content";
  const text = typeof content === "string" ? content : null;
  const cut = text === null ? [...listIn(content), { text: CUT_OFF }] : `${text}\n${CUT_OFF}`;
  const { toolCalls, ...rest } = fields;
  const calls = names.at(-1) === "toolCalls" ? listIn(toolCalls).slice(0, -1) : listIn(toolCalls);
  return {
    ...rest,
    id,
    timestamp: at,
    content: isCut ? cut : content,
    ...(calls.length > 0 ? { toolCalls: calls } : {}),
  };
}

export function* readWholeObject(file: SourceFile): Generator<ReadItem> {
  const start: Place = { file: file.path, line: null, offset: null };
  if (file.size === 0 || file.size > BYTES_MAX) {
    const kind = file.size === 0 ? "empty-file" : "unopenable";
    yield { type: "problem", problem: problem(kind, start, { detail: `${file.size} bytes` }) };
    return;
  }
  yield* new ObjectReader(file.path, Buffer.from(file.read(0, file.size))).read();
}

class ObjectReader {
  readonly #path: string;
  readonly #bytes: Buffer;
  /** One character for each byte, so that places in it are places in the file. */
  readonly #text: string;
  readonly #reported = new Set<string>();

  constructor(path: string, bytes: Buffer) {
    this.#path = path;
    this.#bytes = bytes;
    this.#text = bytes.toString("latin1");
  }

  *read(): Generator<ReadItem> {
    const hasMark = this.#text.startsWith("\xef\xbb\xbf");
    if (hasMark) yield this.#problem("byte-order-mark", 0);
    const crlf = this.#text.indexOf("\r\n");
    if (crlf >= 0) yield this.#problem("crlf", crlf);
    const messages = MESSAGES.exec(this.#text);
    const end = messages ? messages.index + messages[0].length : this.#text.length;
    yield* this.#facts(hasMark ? 3 : 0, messages?.index ?? end);
    yield* this.#end(yield* this.#messages(end), messages !== null);
  }

  /** What stands before the messages; what stands behind them, such as a summary, is read with the whole. */
  *#facts(from: number, to: number): Generator<ReadItem> {
    const bytes = this.#bytes.subarray(from, to);
    const prefix = readPrefix(`${bytes.toString("utf8").replace(/,\s*$/, "")}}`);
    const isFacts = format.isHeader!(prefix.value);
    if (!isFacts) yield this.#problem(bytes[0] === OPEN_BRACE ? "header-damaged" : "header-missing", from);
    const isIntact = isFacts && prefix.end === "whole" && isUtf8(bytes) && !prefix.hasControls;
    if (isFacts && !isIntact) yield* this.#damage(from, bytes, prefix.end === "cut");
    yield this.#record(from, to - from, isFacts ? prefix.value : undefined, isIntact ? "intact" : "partial");
  }

  /** Where the last message ends. */
  *#messages(from: number): Generator<ReadItem, number> {
    let at = from;
    for (;;) {
      const blank = /[\s,]*/y;
      blank.lastIndex = at;
      at += blank.exec(this.#text)![0].length;
      if (at >= this.#text.length || this.#text[at] === "]") return at;
      const next = this.#nextMessage(at + 1);
      if (this.#bytes[at] !== OPEN_BRACE) {
        yield this.#problem(this.#text[at] === "\0" ? "nul-run" : "garbage", at);
        yield this.#record(at, next - at, undefined, "unreadable");
        at = next;
        continue;
      }
      const end = new JsonDepth().add(this.#bytes, at);
      const isBroken = end < 0 || end > next;
      const bytes = this.#bytes.subarray(at, isBroken ? next : end);
      const value = isBroken ? undefined : parsed(bytes);
      const isMessage = value !== undefined && format.isRecord(value);
      // Its beginning is lost, with its id.
      if (value !== undefined && !isMessage) yield this.#problem("torn-record", at);
      if (value !== undefined) yield this.#record(at, bytes.length, value, isMessage ? "intact" : "partial");
      else {
        const prefix = readPrefix(bytes.toString("utf8"));
        yield* this.#damage(at, bytes, isBroken);
        const isWhole = prefix.end === "whole" && isUtf8(bytes) && !bytes.includes(0);
        const state = isWhole ? "recovered" : typeof prefix.value === "object" ? "partial" : "unreadable";
        yield this.#record(at, bytes.length, prefix.value, state);
      }
      at += bytes.length;
    }
  }

  *#end(at: number, hasMessages: boolean): Generator<ReadItem> {
    const tail = this.#text.slice(at);
    if (!hasMessages || tail.trim() === "") {
      // A file that ends within a message is reported there.
      if (!this.#reported.has("torn-record")) yield this.#problem("unclosed-record", this.#text.length);
      return;
    }
    const depth = /^\]\s*(?:,\s*"\w+"\s*:\s*(?:"(?:[^"\\]|\\.)*"|\[[^\]]*\]|[\w.]+)\s*)*(\}?)/.exec(tail);
    if (!depth?.[1]) yield this.#problem("unclosed-record", this.#text.length);
    const rest = tail.slice(depth?.[0].length ?? 0);
    if (rest.trim() === "") return;
    const behind = at + tail.length - rest.trimStart().length;
    const first = this.#text.slice(0, this.#text.length - rest.length);
    if (rest.trim() === first.trim()) yield this.#problem("doubled-file", behind);
    else yield this.#problem(rest.startsWith("\0") ? "nul-run" : "garbage", behind);
    yield this.#record(behind, this.#text.length - behind, undefined, "unreadable");
  }

  *#damage(at: number, bytes: Buffer, isTorn: boolean): Generator<ReadItem> {
    if (isTorn) yield this.#problem("torn-record", at);
    if (bytes.includes(0)) yield this.#problem("nul-run", at);
    if (!isUtf8(bytes)) yield this.#problem("invalid-utf8", at);
    if (!isTorn && !bytes.includes(0) && isUtf8(bytes)) yield this.#problem("raw-line-break", at);
  }

  #nextMessage(from: number): number {
    MESSAGE.lastIndex = from;
    for (let match = MESSAGE.exec(this.#text); match; match = MESSAGE.exec(this.#text)) {
      const end = new JsonDepth().add(this.#bytes, match.index);
      // A call inside of a message has an id too.
      const value = end < 0 ? undefined : parsed(this.#bytes.subarray(match.index, end));
      if (value !== undefined && format.isRecord(value)) return match.index;
    }
    return this.#text.length;
  }

  #problem(kind: ProblemKind, offset: number): ReadItem {
    this.#reported.add(kind);
    return { type: "problem", problem: problem(kind, this.#placeAt(offset)) };
  }

  #record(offset: number, length: number, value: unknown, state: RecordState): ReadItem {
    const understood = value === undefined ? null : format.understand(fieldsOf(value));
    const bytes = this.#bytes.subarray(offset, offset + length);
    const none = { kind: "unknown", thread: "main", id: null, parent: null, sequence: null, at: null, units: [] };
    return {
      type: "record",
      record: { ...none, place: this.#placeAt(offset), bytes, length, state, value, ...understood },
    };
  }

  #placeAt(offset: number): Place {
    return { file: this.#path, line: this.#lineAt(offset), offset };
  }

  #lineOffset = 0;
  #line = 1;

  /** Places come nearly in order: only what lies between two is counted. */
  #lineAt(offset: number): number {
    if (offset < this.#lineOffset) [this.#line, this.#lineOffset] = [1, 0];
    for (; this.#lineOffset < offset; this.#lineOffset++) if (this.#bytes[this.#lineOffset] === 0x0a) this.#line++;
    return this.#line;
  }
}

function parsed(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) return undefined;
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
}

import { isUtf8 } from "node:buffer";
import type { RecordState } from "../contract/record.ts";
import type { Fields } from "../contract/shapes.ts";
import { JsonDepth } from "../scan/json-depth.ts";
import { readPrefix } from "../scan/read-prefix.ts";
import type { TextDamageKind } from "../scan/scan.ts";

/**
 * Takes a file apart that is one JSON document with a list of records. Agents refuse the whole file for one bad byte;
 * here, each record is read for itself.
 */

export type DocumentDamageKind = TextDamageKind | "header-missing" | "header-damaged" | "doubled-file";

export interface DocumentRules {
  /** The field of the outermost object that holds the records; null if the document is the list itself. */
  readonly list: string | null;
  /** Whether an object is a record, and not an object inside of one. */
  isRecord(value: unknown): boolean;
}

/** What stands before the list, a record, or what stands behind it; `noise`: bytes that are none of them. */
export interface Piece {
  readonly role: "head" | "record" | "tail" | "noise";
  readonly offset: number;
  readonly length: number;
  readonly state: RecordState;
  /** Of a head or tail: what the document says besides its records. Undefined if it is unreadable. */
  readonly value: unknown;
  readonly damage: readonly DocumentDamageKind[];
}

const OPEN_BRACE = 0x7b;
const CLOSE_BRACKET = 0x5d;
const MARK = "\xef\xbb\xbf";
/** How much is tried in search of the next record, for each byte of the file. */
const TRIES_PER_BYTE = 32;
const TRIES_BYTES = 2 ** 20;
/** The same in search of the end of the list. */
const ENDS_MAX = 500;
const ENDS_BYTES_MAX = 64 * 2 ** 20;

/** The pieces in the order of the file. Between them are only blanks and commas. */
export function parseDocument(bytes: Buffer, rules: DocumentRules): Piece[] {
  return new DocumentParser(bytes, rules).parse();
}

class DocumentParser {
  readonly #bytes: Buffer;
  readonly #rules: DocumentRules;
  /** One character for each byte, so that places in it are places in the file. */
  readonly #text: string;
  readonly #pieces: Piece[] = [];
  /** What stands between the last line break and a record; null if they do not stand on lines of their own. */
  #margin: string | null = null;
  #budget: number;

  constructor(bytes: Buffer, rules: DocumentRules) {
    this.#bytes = bytes;
    this.#rules = rules;
    this.#text = bytes.toString("latin1");
    this.#budget = TRIES_BYTES + bytes.length * TRIES_PER_BYTE;
  }

  parse(): Piece[] {
    const from = this.#head();
    this.#margin = /^\s*?\r?\n([ \t]*)$/.exec(this.#text.slice(from, this.#skipBlank(from)))?.[1] ?? null;
    const end = this.#records(from);
    if (end < this.#bytes.length) this.#tail(end);
    else
      this.#add("tail", end, end, { state: "partial", value: {}, damage: this.#isTorn() ? [] : ["unclosed-record"] });
    return this.#pieces;
  }

  #isTorn(): boolean {
    return this.#pieces.some(({ damage }) => damage.includes("torn-record") || damage.includes("nul-run"));
  }

  /** Up to the bracket that opens the list: where that ends. */
  #head(): number {
    const { list } = this.#rules;
    const text = this.#text;
    const hasMark = text.startsWith(MARK);
    const mark: DocumentDamageKind[] = hasMark ? ["byte-order-mark"] : [];
    if (text.includes("\r\n")) mark.push("crlf");
    const start = hasMark ? MARK.length : 0;
    // A list that is the document stands at its beginning.
    const open = list === null ? /[\s\0]*\[/y : new RegExp(`"${list}"\\s*:\\s*\\[`, "g");
    open.lastIndex = start;
    const match = open.exec(text);
    const first = this.#nextRecord(start);
    // A list within a record is not the one that holds them.
    const to = match !== null && match.index <= first ? match.index + match[0].length : null;
    if (to === null) {
      const before = text.slice(start, first);
      const damage: DocumentDamageKind[] = before.trim() === "" ? ["header-missing"] : ["header-damaged"];
      if (before.includes("\0")) damage.unshift("nul-run");
      this.#add("head", 0, first, { state: "unreadable", value: undefined, damage: [...mark, ...damage] });
      return first;
    }
    const own = this.#bytes.subarray(start, to);
    const value =
      list === null
        ? own.toString("latin1").trim() === "["
          ? {}
          : undefined
        : parsed(Buffer.concat([own, Buffer.from("]}")]));
    if (value !== undefined)
      this.#add("head", 0, to, { state: mark.length > 0 ? "recovered" : "intact", value, damage: mark });
    else {
      const read = this.#read(own, () => true, false);
      const damage: DocumentDamageKind[] = read.damage.filter(
        (kind) => kind !== "unclosed-record" && kind !== "torn-record",
      );
      this.#add("head", 0, to, {
        ...read,
        state: "partial",
        damage: [...mark, ...(damage.length > 0 ? damage : ["header-damaged" as const])],
      });
    }
    return to;
  }

  /** Where the list ends: at its bracket, or at the end of the file. */
  #records(from: number): number {
    let at = from;
    let end: number | null = null;
    /** Bytes before this place were no record: what follows may be the rest of one. */
    let isAfterDamage = this.#pieces[0]!.state === "unreadable";
    for (let count = 0; ; count++) {
      const blank = this.#skipBlank(at);
      const commas = this.#text.slice(at, blank).replaceAll(/\s/g, "").length;
      at = blank;
      if (at >= this.#bytes.length) return at;
      if (this.#bytes[at] === CLOSE_BRACKET && !(isAfterDamage && this.#nextRecord(at + 1) < this.#bytes.length))
        return at;
      const whole = this.#bytes[at] === OPEN_BRACE ? this.#wholeAt(at) : null;
      if (whole && (this.#rules.isRecord(whole.value) || !isAfterDamage)) {
        const isGlued = count > 0 && commas === 0 && !isAfterDamage;
        const damage: DocumentDamageKind[] = isGlued ? ["glued-records"] : [];
        this.#add("record", at, whole.end, { state: isGlued ? "recovered" : "intact", value: whole.value, damage });
        at = whole.end;
        isAfterDamage = false;
        continue;
      }
      end ??= this.#findEnd(from);
      const next = Math.min(this.#nextRecord(at + 1), end > at ? end : this.#bytes.length);
      at = this.#damaged(at, next, whole !== null);
      isAfterDamage = true;
    }
  }

  /** Reads what can be read between two places: where it ended. */
  #damaged(at: number, next: number, isRest: boolean): number {
    if (this.#bytes[at] !== OPEN_BRACE || isRest) {
      const isNul = this.#text.slice(at, next).includes("\0");
      this.#add("noise", at, next, {
        state: "unreadable",
        value: undefined,
        damage: [isNul ? "nul-run" : isRest ? "torn-record" : "garbage"],
      });
      return next;
    }
    const depth = new JsonDepth().add(this.#bytes, at);
    const isClosed = depth > 0 && depth <= next;
    const to = isClosed ? depth : next;
    const read = this.#read(this.#bytes.subarray(at, to), this.#rules.isRecord, to === this.#bytes.length);
    const isNothing = typeof read.value !== "object" || read.value === null || Object.keys(read.value).length === 0;
    if (isNothing) this.#add("noise", at, to, { ...read, state: "unreadable", value: undefined });
    else this.#add("record", at, to, read);
    return to;
  }

  /** `isAtEnd`: more fields than brackets may have been lost. */
  #read(
    bytes: Buffer,
    isRecord: (value: unknown) => boolean,
    isAtEnd: boolean,
  ): Omit<Piece, "role" | "offset" | "length"> {
    const isText = isUtf8(bytes);
    const damage: DocumentDamageKind[] = isText ? [] : ["invalid-utf8"];
    // Behind a blank, a number has no more digits.
    const text = bytes.toString("utf8").replace(/[\s,]+$/, isAtEnd ? "" : " ");
    const hasNul = text.includes("\0");
    // Zero bytes between the words of JSON are only noise; in a string, something was there.
    let prefix = readPrefix(hasNul ? text.replaceAll(/\0+/g, "") : text);
    const isNoise = hasNul && prefix.end === "whole" && readPrefix(text).end !== "whole";
    if (hasNul && !isNoise) prefix = readPrefix(text.replaceAll(/\0+/g, "\ufffd"));
    if (hasNul) damage.push("nul-run");
    if (prefix.hasControls) damage.push(/"[^"]*[\r\n]/.test(text) ? "raw-line-break" : "raw-control-character");
    const isWhole = prefix.end === "whole" && text.slice(prefix.at).trim() === "";
    const isUnclosed = prefix.end === "unclosed" && !isAtEnd && isRecord(prefix.value);
    if (isUnclosed) damage.push("unclosed-record");
    else if (!isWhole && !hasNul) damage.push("torn-record");
    const isComplete = (isWhole || isUnclosed) && isText && (!hasNul || isNoise);
    return { state: isComplete ? "recovered" : "partial", value: prefix.value, damage };
  }

  #tail(at: number): void {
    const open = Buffer.from(this.#rules.list === null ? "[" : '{"":[');
    const depth = new JsonDepth();
    depth.add(open);
    const close = depth.add(this.#bytes, at);
    const end = close > 0 ? close : this.#bytes.length;
    const own = Buffer.concat([open, this.#bytes.subarray(at, end)]);
    const value = parsed(own);
    if (value !== undefined)
      this.#add("tail", at, end, { state: "intact", value: Array.isArray(value) ? {} : value, damage: [] });
    else {
      const read = this.#read(own, () => true, false);
      this.#add("tail", at, end, { ...read, value: Array.isArray(read.value) ? {} : read.value });
    }
    const rest = this.#text.slice(end);
    if (rest.trim() === "") return;
    const behind = end + rest.length - rest.trimStart().length;
    const isNul = /^[\s\0]*$/.test(rest);
    const isDoubled = rest.trim() === this.#text.slice(0, end).trim();
    this.#add("noise", behind, this.#text.length, {
      state: "unreadable",
      value: undefined,
      damage: [isNul ? "nul-run" : isDoubled ? "doubled-file" : "garbage"],
    });
  }

  /** Where the list ends, seen from behind: the first bracket with which everything closes. */
  #findEnd(from: number): number {
    const open = this.#rules.list === null ? "[" : '{"":[';
    let found = this.#bytes.length;
    let budget = ENDS_BYTES_MAX;
    let at = this.#text.lastIndexOf("]");
    for (let tries = 0; at > from && tries < ENDS_MAX; tries++, at = this.#text.lastIndexOf("]", at - 1)) {
      budget -= this.#bytes.length - at;
      if (budget < 0) break;
      if (parsed(Buffer.concat([Buffer.from(open), this.#bytes.subarray(at)])) !== undefined) found = at;
    }
    return found;
  }

  #nextRecord(from: number): number {
    // A block inside of a record begins with its type; a record has others first.
    const start = /\{\s*"(?!type")/g;
    start.lastIndex = from;
    for (let match = start.exec(this.#text); match !== null; match = start.exec(this.#text)) {
      const at = match.index;
      if (this.#budget < 0) break;
      if (this.#margin !== null && !this.#isAtMargin(at)) continue;
      // The value of a field is no record.
      if (/:\s*$/.test(this.#text.slice(Math.max(0, at - 64), at))) continue;
      const end = new JsonDepth().add(this.#bytes, at);
      this.#budget -= (end < 0 ? this.#bytes.length : end) - at;
      const value = end < 0 ? undefined : parsed(this.#bytes.subarray(at, end));
      if (value !== undefined && this.#rules.isRecord(value)) return at;
    }
    return this.#bytes.length;
  }

  /** Whether its fields stand where those of a record do: those of an object inside of one stand more to the right. */
  #isAtMargin(at: number): boolean {
    const unit = this.#margin!.length / (this.#rules.list === null ? 1 : 2);
    const margin = /^\{\r?\n([ \t]*)"/.exec(this.#text.slice(at, at + 64))?.[1];
    return margin === undefined || margin.length === this.#margin!.length + unit;
  }

  #wholeAt(at: number): { readonly value: unknown; readonly end: number } | null {
    const end = new JsonDepth().add(this.#bytes, at);
    const value = end < 0 ? undefined : parsed(this.#bytes.subarray(at, end));
    return value === undefined ? null : { value, end };
  }

  #skipBlank(from: number): number {
    const blank = /[\s,]*/y;
    blank.lastIndex = from;
    return from + blank.exec(this.#text)![0].length;
  }

  #add(role: Piece["role"], from: number, to: number, piece: Omit<Piece, "role" | "offset" | "length">): void {
    this.#pieces.push({ role, offset: from, length: to - from, ...piece });
  }
}

/** What the document says besides its records. */
export function factsOf(pieces: readonly Piece[]): Fields {
  const [head, tail] = ["head", "tail"].map((role) => pieces.find((piece) => piece.role === role)?.value);
  return Object.fromEntries([...entriesOf(head), ...entriesOf(tail)].filter(([key]) => key !== ""));
}

const entriesOf = (value: unknown): [string, unknown][] =>
  typeof value === "object" && value !== null ? Object.entries(value) : [];

function parsed(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) return undefined;
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
}

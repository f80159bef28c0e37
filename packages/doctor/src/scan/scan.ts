import { isUtf8 } from "node:buffer";
import { JsonDepth } from "./json-depth.ts";
import { type Prefix, readPrefix } from "./read-prefix.ts";
import { type Segment, segmentsOf } from "./segments.ts";

/** Finds the records of a JSONL file, whatever happened to its text. It knows no agent. */

export type TextDamageKind =
  | "torn-record"
  | "glued-records"
  | "nul-run"
  | "raw-line-break"
  | "raw-control-character"
  | "line-separator"
  | "split-record"
  | "unclosed-record"
  | "invalid-utf8"
  | "byte-order-mark"
  | "crlf"
  | "garbage";

/** A stretch of a file: a record, or bytes in which none was found. */
export interface Stretch {
  readonly line: number;
  readonly offset: number;
  /** Without what ends the line. */
  readonly length: number;
  /** Of an endless stretch, only its beginning. */
  readonly bytes: Uint8Array;
  readonly state: "intact" | "recovered" | "partial" | "unreadable";
  /** Undefined if the stretch is unreadable. */
  readonly value: unknown;
  readonly damage: readonly TextDamageKind[];
  /** The line as it should be, if the record is damaged but readable. */
  readonly repaired?: Uint8Array;
}

export interface ScanRules {
  /** Whether an object is a record of the agent, and not an object inside of one. */
  isRecord(value: unknown): boolean;
  /** Whether an object behind these bytes of a line, which looks like a record, is a part of the one they begin. */
  isInside?(before: Uint8Array): boolean;
  /** Whether the agent takes U+2028 and U+2029 for ends of lines. */
  readonly breaksAtSeparators?: boolean;
  /** A record may not be longer. */
  readonly recordBytesMax?: number;
}

const RECORD_BYTES_MAX = 64 * 2 ** 20;
/** How far a record is followed over its line, and how much of that work is done in all, for each byte of the file. */
const JOINED_LINES_MAX = 4_096;
const JOINED_BYTES_MAX = 16 * 2 ** 20;
const JOINED_BYTES_PER_BYTE = 4;
/** What a joined line costs besides its bytes. */
const JOINED_LINE_COST = 1_024;
/** How many places of a bad line are tried as the beginning of a record. */
const STARTS_MAX = 256;
const CR = 0x0d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const NO_DAMAGE: readonly TextDamageKind[] = [];
const SEPARATOR = /[\u2028\u2029]/g;
const SEPARATORS = [Buffer.from("\u2028"), Buffer.from("\u2029")];
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/** The stretches in the order of the file. Blank lines are left out, runs of NUL are stretches of their own. */
export function* scan(chunks: Iterable<Uint8Array>, rules: ScanRules): Generator<Stretch> {
  const segments = new Ahead(segmentsOf(chunks, rules.recordBytesMax ?? RECORD_BYTES_MAX));
  const scanner = new Scanner(segments, rules);
  for (let segment = segments.shift(); segment !== null; segment = segments.shift()) {
    // Nearly every line of a file of gigabytes: without the generators that damage needs.
    const intact = scanner.intact(segment);
    if (intact) yield intact;
    else yield* scanner.read(segment);
  }
}

class Scanner {
  readonly #segments: Ahead;
  readonly #rules: ScanRules;
  #bytesSeen = 0;
  #bytesJoined = 0;
  #isFirst = true;
  /** What came of a line that is not intact. */
  #tried: { readonly segment: Segment; readonly whole: Stretch | null } | null = null;

  constructor(segments: Ahead, rules: ScanRules) {
    this.#segments = segments;
    this.#rules = rules;
  }

  /** The record on a line of its own with nothing wrong; null for any other. */
  intact(segment: Segment): Stretch | null {
    const { bytes, end, endLength } = segment;
    this.#tried = null;
    if (this.#isFirst || end === "nul" || bytes[0] !== OPEN_BRACE || bytes.length !== segment.length) return null;
    const whole = this.#whole(segment, NO_DAMAGE, 0);
    if (whole?.state === "intact") this.#bytesSeen += segment.length + endLength;
    else this.#tried = { segment, whole };
    return whole?.state === "intact" ? whole : null;
  }

  *read(segment: Segment): Generator<Stretch> {
    this.#bytesSeen += segment.length + segment.endLength;
    const marked = this.#isFirst && BYTE_ORDER_MARK.every((byte, at) => segment.bytes[at] === byte);
    this.#isFirst = false;
    if (marked) yield* this.#line(rest(segment, 3), ["byte-order-mark"], 3);
    else yield* this.#line(segment, [], 0);
    const joined = this.#segments.joinedEnd;
    const { end, endLength, line, offset, length } = joined ?? segment;
    this.#segments.joinedEnd = null;
    if (end === "nul") {
      const nuls = { line, offset: offset + length, length: endLength, bytes: new Uint8Array(0) };
      yield { ...nuls, state: "unreadable", value: undefined, damage: ["nul-run"] };
    }
  }

  /** `before`: bytes in front of the segment that belong to the same stretch. */
  *#line(segment: Segment, damage: readonly TextDamageKind[], before: number): Generator<Stretch> {
    const { bytes } = segment;
    if (isBlank(bytes)) {
      if (before > 0) yield unreadable(backwards(segment, before), [...damage]);
      return;
    }
    // Parsing what is no JSON takes long.
    const tried = this.#tried?.segment === segment ? this.#tried.whole : undefined;
    const whole =
      tried !== undefined ? tried : segment.length === bytes.length ? this.#whole(segment, damage, before) : null;
    if (whole) yield whole;
    else yield* this.#damaged(segment, damage, before);
  }

  /** The ordinary case: a record on a line of its own. */
  #whole(segment: Segment, damage: readonly TextDamageKind[], before: number): Stretch | null {
    const { bytes } = segment;
    if (bytes[0] !== OPEN_BRACE && damage.length === 0 && !startsWithBrace(bytes)) return null;
    const text = textOf(bytes);
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return null;
    }
    // What is not UTF-8 was read as U+FFFD, so few lines need a closer look.
    const isText = !text.includes("\ufffd") || isUtf8(bytes);
    const isBroken = this.#rules.breaksAtSeparators === true && hasSeparator(bytes);
    const endsInCr = bytes[bytes.length - 1] === CR;
    if (damage.length === 0 && isText && !isBroken && !endsInCr) {
      const { line, offset, length } = segment;
      return { line, offset, length, bytes, state: "intact", value, damage: NO_DAMAGE };
    }
    const kinds = [...new Set(damage)];
    if (endsInCr) kinds.push("crlf");
    if (!isText) kinds.push("invalid-utf8");
    if (isBroken) kinds.push("line-separator");
    const state = isText ? "recovered" : "partial";
    const line = isBroken ? escapeSeparators(text) : text;
    const repaired = Buffer.from(line.replace(/\r$/, ""));
    return { ...segmentPlace(backwards(segment, before)), state, value, damage: kinds, repaired };
  }

  *#damaged(segment: Segment, damage: readonly TextDamageKind[], before: number): Generator<Stretch> {
    const { bytes } = segment;
    const start = bytes.findIndex((byte) => byte !== 0x20 && byte !== 0x09 && byte !== CR);
    if (bytes[start] !== OPEN_BRACE) {
      // Something stands in front of the first record of the line.
      yield* this.#fragment(segment, damage, before, "garbage");
      return;
    }
    const end = new JsonDepth().add(bytes, start);
    if (end > 0 && !isBlank(bytes.subarray(end))) {
      const first = part(segment, 0, end);
      const whole =
        this.#whole(first, [...damage, "glued-records"], before) ?? this.#repairedInPlace(first, damage, before);
      if (whole) {
        yield whole;
        yield* this.#line(rest(segment, end), ["glued-records"], 0);
        return;
      }
    }
    const inPlace = end > 0 ? this.#repairedInPlace(segment, damage, before) : null;
    if (inPlace) yield inPlace;
    else yield* this.#fragment(segment, damage, before, "torn-record");
  }

  /** A bad line without a whole record at its beginning. */
  *#fragment(
    segment: Segment,
    damage: readonly TextDamageKind[],
    before: number,
    kind: "torn-record" | "garbage",
  ): Generator<Stretch> {
    const next = this.#recordWithin(segment);
    if (next > 0) {
      yield this.#torn(part(segment, 0, next), [...damage, "glued-records"], before, kind);
      yield* this.#line(rest(segment, next), ["glued-records"], 0);
      return;
    }
    const joined = kind === "torn-record" ? this.#joined(segment, damage, before) : null;
    yield joined ?? this.#torn(segment, damage, before, kind);
  }

  /** Where the first whole record begins behind the beginning of a bad line; -1 if there is none. */
  #recordWithin({ bytes }: Segment): number {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let at = text.indexOf('{"', 1);
    // What is tried costs its length: together, at most a few times that of the line.
    let budget = STARTS_MAX * 1_024 + 4 * text.length;
    for (let tries = 0; at > 0 && tries < STARTS_MAX && budget > 0; tries++) {
      const end = new JsonDepth().add(text, at);
      budget -= (end < 0 ? text.length : end) - at;
      if (end > 0) {
        const value = parsed(textOf(text.subarray(at, end)));
        const isInside = this.#rules.isInside?.(text.subarray(0, at)) === true;
        if (value !== undefined && this.#rules.isRecord(value) && !isInside) return at;
      }
      at = text.indexOf('{"', at + 1);
    }
    return -1;
  }

  /** A record whose text has control characters in strings, and is whole apart from that. */
  #repairedInPlace(segment: Segment, damage: readonly TextDamageKind[], before: number): Stretch | null {
    const text = textOf(segment.bytes);
    const prefix = readPrefix(text, leadingBlank(text));
    if (prefix.end !== "whole" || !prefix.hasControls || text.slice(prefix.at).trim() !== "") return null;
    return this.#recovered(backwards(segment, before), prefix, [...damage, "raw-control-character"], false);
  }

  /** A record that goes on behind the end of its line. */
  #joined(segment: Segment, damage: readonly TextDamageKind[], before: number): Stretch | null {
    if (segment.length !== segment.bytes.length) return null;
    const depth = new JsonDepth();
    if (depth.add(segment.bytes) >= 0) return null;
    const parts = [segment];
    const breaks: string[] = [];
    const kinds = new Set<TextDamageKind>();
    let bytes = segment.length;
    for (let index = 0; index < JOINED_LINES_MAX; index++) {
      const last = parts.at(-1)!;
      const next = this.#segments.peek(index);
      if (next === null || next.length !== next.bytes.length) return null;
      bytes += next.length;
      this.#bytesJoined += next.length + JOINED_LINE_COST;
      if (bytes > JOINED_BYTES_MAX || this.#bytesJoined > this.#bytesSeen * JOINED_BYTES_PER_BYTE + JOINED_BYTES_MAX)
        return null;
      if (last.end === "nul") {
        kinds.add("nul-run");
        breaks.push(depth.isInString ? "\ufffd" : "");
      } else {
        kinds.add(depth.isInString ? "raw-line-break" : "split-record");
        breaks.push(depth.isInString ? "\n" : "");
      }
      const value = looksWhole(next.bytes) ? parsed(textOf(next.bytes)) : undefined;
      if (value !== undefined && this.#rules.isRecord(value)) return null;
      const end = depth.add(next.bytes);
      parts.push(next);
      if (end < 0) continue;
      // What is behind the end is another record, or nothing.
      const tail = end < next.bytes.length && !isBlank(next.bytes.subarray(end));
      if (tail) parts[parts.length - 1] = { ...part(next, 0, end), end: "file", endLength: 0 };
      const prefix = this.#readJoined(parts, breaks, kinds);
      if (!prefix) return null;
      this.#segments.drop(index + 1);
      this.#bytesSeen += bytes - segment.length;
      if (tail) this.#segments.unshift(rest(next, end));
      else this.#segments.joinedEnd = next;
      const final = parts.at(-1)!;
      const length = final.offset + final.length - segment.offset;
      const all = { ...segment, bytes: Buffer.concat(parts.flatMap(bytesWithEnd)), length };
      const isPartial = kinds.has("nul-run");
      return this.#recovered(backwards(all, before), prefix, [...damage, ...kinds], isPartial);
    }
    return null;
  }

  /** A break inside of a string is text if the record then reads well, and otherwise came from whoever split it. */
  #readJoined(parts: readonly Segment[], breaks: readonly string[], kinds: Set<TextDamageKind>): Prefix | null {
    const read = (between: (index: number) => string): Prefix | null => {
      const text = parts.map(({ bytes }, index) => (index === 0 ? "" : between(index - 1)) + textOf(bytes)).join("");
      const prefix = readPrefix(text, leadingBlank(text));
      return prefix.end === "whole" && this.#rules.isRecord(prefix.value) ? prefix : null;
    };
    const asText = read((index) => breaks[index]!);
    if (asText && !(kinds.has("raw-line-break") && hasBrokenWord(asText.value))) return asText;
    const asSplit = kinds.has("raw-line-break")
      ? read((index) => (breaks[index] === "\n" ? "" : breaks[index]!))
      : null;
    if (asSplit) {
      kinds.delete("raw-line-break");
      kinds.add("split-record");
    }
    return asSplit ?? asText;
  }

  /** What can be read of a record that has no end. */
  #torn(segment: Segment, damage: readonly TextDamageKind[], before: number, kind: "torn-record" | "garbage"): Stretch {
    const place = backwards(segment, before);
    if (kind === "garbage") return unreadable(place, [...damage, kind]);
    const text = textOf(segment.bytes);
    const prefix = readPrefix(text, leadingBlank(text));
    const isObject = typeof prefix.value === "object" && prefix.value !== null;
    // At the end of the file, more fields may have been lost than brackets.
    const isClosed = prefix.end === "unclosed" && segment.end !== "file" && this.#rules.isRecord(prefix.value);
    if (isClosed) return this.#recovered(place, prefix, [...damage, "unclosed-record"], false);
    if (!isObject || Object.keys(prefix.value as object).length === 0) return unreadable(place, [...damage, kind]);
    return this.#recovered(place, prefix, [...damage, segment.end === "nul" ? "nul-run" : kind], true);
  }

  #recovered(place: Segment, prefix: Prefix, damage: readonly TextDamageKind[], isPartial: boolean): Stretch {
    const isText = isUtf8(place.bytes);
    return {
      ...segmentPlace(place),
      state: isPartial || !isText ? "partial" : "recovered",
      value: prefix.value,
      damage: [...new Set(isText ? damage : [...damage, "invalid-utf8" as const])],
      repaired: Buffer.from(JSON.stringify(prefix.value)),
    };
  }
}

/** Segments, of which some may be looked at before their turn. */
class Ahead {
  readonly #source: Iterator<Segment>;
  #queue: Segment[] = [];
  /** The last segment of a record that was joined: its end is still to be reported. */
  joinedEnd: Segment | null = null;

  constructor(source: Iterator<Segment>) {
    this.#source = source;
  }

  shift(): Segment | null {
    return this.#queue.shift() ?? this.#pull();
  }

  peek(index: number): Segment | null {
    while (this.#queue.length <= index) {
      const next = this.#pull();
      if (next === null) return null;
      this.#queue.push(next);
    }
    return this.#queue[index]!;
  }

  drop(count: number): void {
    this.#queue = this.#queue.slice(count);
  }

  unshift(segment: Segment): void {
    this.#queue.unshift(segment);
  }

  #pull(): Segment | null {
    const next = this.#source.next();
    return next.done ? null : next.value;
  }
}

/** Ids and times hold no line break: where one does, the record was split. */
function hasBrokenWord(value: unknown): boolean {
  const stack = [value];
  for (let at = stack.pop(); at !== undefined; at = stack.pop()) {
    if (
      typeof at === "string" &&
      /^[\w:.+/=-]*\d[\w:.+/=-]*\n[\w:.+/=-]*$|^[\w:.+/=-]*\n[\w:.+/=-]*\d[\w:.+/=-]*$/.test(at)
    )
      return true;
    if (typeof at === "object" && at !== null) {
      if (Object.keys(at).some((key) => key.includes("\n"))) return true;
      stack.push(...Object.values(at).filter((inner) => inner !== null && inner !== undefined));
    }
  }
  return false;
}

const textOf = (bytes: Uint8Array): string =>
  (Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)).toString("utf8");
const leadingBlank = (text: string): number => text.length - text.trimStart().length;

/** Of the bytes, which is faster than of the text. */
function hasSeparator(bytes: Uint8Array): boolean {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return SEPARATORS.some((separator) => buffer.includes(separator));
}

function escapeSeparators(text: string): string {
  return text.replaceAll(SEPARATOR, (char) => (char === "\u2028" ? "\\u2028" : "\\u2029"));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === CR);
}

function startsWithBrace(bytes: Uint8Array): boolean {
  return bytes.find((byte) => byte !== 0x20 && byte !== 0x09) === OPEN_BRACE;
}

/** A cheap look: reading what is no JSON takes long. */
function looksWhole(bytes: Uint8Array): boolean {
  return startsWithBrace(bytes) && bytes.at(bytes.at(-1) === CR ? -2 : -1) === CLOSE_BRACE;
}

/** A part of a segment that does not end it. */
function part(segment: Segment, from: number, to: number): Segment {
  const bytes = segment.bytes.subarray(from, to);
  return { ...segment, offset: segment.offset + from, bytes, length: bytes.length, end: "line", endLength: 0 };
}

function rest(segment: Segment, from: number): Segment {
  const bytes = segment.bytes.subarray(from);
  return { ...segment, offset: segment.offset + from, bytes, length: segment.length - from };
}

/** The segment with bytes that stand before it. */
function backwards(segment: Segment, count: number): Segment {
  if (count === 0) return segment;
  const { buffer, byteOffset, byteLength } = segment.bytes;
  const bytes = new Uint8Array(buffer, byteOffset - count, byteLength + count);
  return { ...segment, offset: segment.offset - count, bytes, length: segment.length + count };
}

function bytesWithEnd({ bytes, end, endLength }: Segment, index: number, all: readonly Segment[]): Uint8Array[] {
  if (index === all.length - 1) return [bytes];
  return [bytes, new Uint8Array(endLength).fill(end === "nul" ? 0 : 0x0a)];
}

const segmentPlace = ({ line, offset, length, bytes }: Segment) => ({ line, offset, length, bytes });

function unreadable(segment: Segment, damage: readonly TextDamageKind[]): Stretch {
  return { ...segmentPlace(segment), state: "unreadable", value: undefined, damage };
}

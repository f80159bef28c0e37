import { allShapes } from "./credential-shapes.ts";
import { either, marker, nothing, type Piece, type Shape, sequence } from "./pattern.ts";

/** The expressions of one shape. */
function piecesOf({ name = nothing, keep = nothing, prefix = nothing, secret, behind = nothing }: Shape) {
  const afterName = sequence(keep, prefix, secret, behind);
  const all = sequence(name, afterName);
  const kept = name.full + keep.full;
  return {
    ...all,
    name,
    afterName,
    grouped: `(${kept})(${prefix.full}${secret.full})${behind.full}`,
    firsts: new RegExp(all.heads.map(firstOf).join("|")),
    isOpen: new RegExp(all.open, "y"),
    /** Something follows the prefix. */
    hasBody: new RegExp(`(${kept})${prefix.full}(?=${secret.heads.join("|")})`, "y"),
  };
}
const sourceOf = (heads: readonly string[]): string => [...new Set(heads)].sort().join("|");

/** What the shapes are that may start with a character: few share one. */
interface Reading {
  readonly isOpenSeen: boolean;
  readonly shapes: Map<string, ShapeGroup>;
}
interface ShapeGroup {
  readonly expression: RegExp;
  readonly of: readonly Shape[];
}

interface Tables {
  readonly shapes: readonly Shape[];
  readonly pieces: readonly ReturnType<typeof piecesOf>[];
  /** Where a shape may start. Only this expression, an alternation of plain words, reads most of a text. */
  readonly heads: RegExp;
  /** The beginnings of those words, in small letters: what a text may end with that will be one. */
  readonly starts: ReadonlySet<string>;
  readonly startCharsMax: number;
  readonly whole: Reading;
  /** If a shape is open and another is found at the same place, the open one counts. */
  readonly beginning: Reading;
}

/** Made on first use: it takes longer than loading the rest of the library, and many never redact. */
let made: Tables | null = null;

function tables(): Tables {
  made ??= makeTables();
  return made;
}

function makeTables(): Tables {
  const shapes = allShapes();
  const pieces = shapes.map(piecesOf);
  const heads = pieces.flatMap((piece) => piece.heads);
  const words = heads.map(wordOf);
  return {
    shapes,
    pieces,
    heads: new RegExp(sourceOf(heads), "g"),
    starts: new Set(words.flatMap((word) => Array.from(word, (_, at) => word.slice(0, at)).slice(1))),
    startCharsMax: Math.max(...words.map(({ length }) => length)) - 1,
    whole: { isOpenSeen: false, shapes: new Map() },
    beginning: { isOpenSeen: true, shapes: new Map() },
  };
}

/** The word that a head matches, in small letters. */
function wordOf(head: string): string {
  return head.replaceAll(/\[(.)[^\]]*\]|\\(.)/gu, "$1$2").toLowerCase();
}

/** The kind of text that was cut off before it was clear whether it is a credential. */
const CUT_OFF = "cut-off";

/** The shapes that can start with this character, as one expression. */
function shapesAt({ isOpenSeen, shapes }: Reading, first: string): ShapeGroup {
  const known = shapes.get(first);
  if (known) return known;
  const all = tables();
  const of = all.shapes.filter((_, index) => all.pieces[index]!.firsts.test(first));
  const pieces = all.pieces.filter(({ firsts }) => firsts.test(first));
  // A name that several shapes share is looked for once.
  const names = [...new Set(pieces.map(({ name }) => name))];
  const openAfter = (name: Piece): Piece =>
    sequence(name, either(...pieces.filter((piece) => piece.name === name).map(({ afterName }) => afterName)));
  const open = isOpenSeen ? names.map((name) => openAfter(name).open).join("|") : "";
  const sources = [`(${open === "" ? "(?!)" : open})`, ...pieces.map(({ grouped }) => grouped)];
  const beginning = { expression: new RegExp(sources.join("|"), "y"), of };
  shapes.set(first, beginning);
  return beginning;
}

/** The first character, class or escape of a head. */
function firstOf(head: string): string {
  return /^(?:\[[^\]]*\]|\\.|.)/su.exec(head)![0];
}

/**
 * Replaces anything that looks like a credential with `[redacted:<kind>]`, so the text still shows that there was one,
 * and of which kind. Pure, total, linear in the length of the text; redacting twice changes nothing.
 */
export function credentials(text: string): string {
  return redactFrom(text, 0, tables().whole).text;
}

/**
 * The same from `from` on, for a text that will continue; what precedes `from` is only context. Beyond `until`, the
 * result depends on what follows.
 */
export function credentialsSoFar(text: string, from: number): { readonly text: string; readonly until: number } {
  return redactFrom(text, from, tables().beginning);
}

/**
 * The same for a text that was cut off: a possible start of a credential becomes `[redacted:cut-off]`. A prefix that
 * only shows which kind it would have been (`ghp_`, `password=`) stays.
 */
export function credentialsCutOff(text: string, from: number): string {
  let out = "";
  for (let at = from; ; ) {
    const { text: before, until } = redactFrom(text, at, tables().beginning);
    out += before;
    if (until === text.length) return out;
    const found = wholeAt(text, until);
    if (found) {
      out += found.keep + marker(found.shape.kind);
      at = until + found.keep.length + found.chars;
      continue;
    }
    const hidden = hiddenFrom(text, until);
    if (hidden !== null) return out + credentials(text.slice(until, hidden)) + marker(CUT_OFF);
    out += text.charAt(until);
    at = until + 1;
  }
}

/** The credential that starts here, if the text ends as it is. */
function wholeAt(text: string, at: number): (Match & { readonly chars: number }) | null {
  const { expression, of } = shapesAt(tables().whole, text.charAt(at));
  expression.lastIndex = at;
  const match = expression.exec(text);
  const found = match && foundBy(match, of);
  const chars = found ? charsOf(found, text.charAt(expression.lastIndex)) : 0;
  return found && chars > 0 ? { ...found, chars } : null;
}

/**
 * Where the first secret would start, among all shapes that are still open here and have begun to show it; null if none
 * has.
 */
function hiddenFrom(text: string, at: number): number | null {
  let first: number | null = null;
  for (const { isOpen, hasBody } of tables().pieces) {
    isOpen.lastIndex = at;
    hasBody.lastIndex = at;
    if (!isOpen.test(text)) continue;
    const keep = hasBody.exec(text)?.[1];
    if (keep !== undefined) first = Math.min(first ?? text.length, at + keep.length);
  }
  return first;
}

function redactFrom(text: string, from: number, reading: Reading): { text: string; until: number } {
  const { heads } = tables();
  let end = reading.isOpenSeen ? startAtEnd(text, from) : text.length;
  let out = "";
  let done = from;
  let at = from;
  for (;;) {
    heads.lastIndex = at;
    const index = heads.exec(text)?.index ?? text.length;
    // It may become the start of a shape.
    if (end <= index && end < text.length) return { text: out + text.slice(done, end), until: end };
    if (index === text.length) return { text: done === 0 ? text : out + text.slice(done), until: text.length };
    const { expression, of } = shapesAt(reading, text.charAt(index));
    expression.lastIndex = index;
    const match = expression.exec(text);
    if (match?.[1] !== undefined) return { text: out + text.slice(done, index), until: index };
    const found = match && foundBy(match, of);
    const chars = found ? charsOf(found, text.charAt(expression.lastIndex)) : 0;
    if (found && chars > 0) {
      const start = index + found.keep.length;
      out += text.slice(done, start) + marker(found.shape.kind);
      done = start + chars;
      at = done;
    } else {
      at = index + 1;
    }
    if (at > end) end = startAtEnd(text, at);
  }
}

/** Where the text ends with the beginning of a word with which a shape starts; its length if it does not. */
function startAtEnd(text: string, from: number): number {
  const { starts, startCharsMax } = tables();
  for (let at = Math.max(from, text.length - startCharsMax); at < text.length; at++)
    if (starts.has(text.slice(at).toLowerCase())) return at;
  return text.length;
}

interface Match {
  readonly shape: Shape;
  readonly keep: string;
  readonly secret: string;
}

function charsOf({ shape, secret }: Match, next: string): number {
  return shape.judge ? shape.judge(secret, next) : secret.length;
}

function foundBy(match: RegExpExecArray, of: readonly Shape[]): Match | null {
  for (const [index, shape] of of.entries()) {
    const keep = match[2 * index + 2];
    const secret = match[2 * index + 3];
    if (keep !== undefined && secret !== undefined) return { shape, keep, secret };
  }
  return null;
}

/**
 * A piece of a credential's shape, as sources of regular expressions. `full` matches it. `open` matches where the text ends before it is known whether, or how far, `full` matches. So:
 * where no shape is open, nothing that comes later changes what was found there. Streams are cut by that.
 *
 * Every quantifier has an upper bound, and pieces that follow each other share few characters or none: the work at one place is bounded, and all of it linear in the text.
 */
export interface Piece {
  readonly full: string;
  readonly open: string;
  /** Match where `full` begins, and are cheap. */
  readonly heads: readonly string[];
  /** Match where `full` or `open` begins, unless `open` matches nothing. */
  readonly openHeads: readonly string[];
}

/** What a credential of one kind looks like. The shapes are those that the issuers document, as of 2026. */
export interface Shape {
  readonly kind: string;
  /** What stays in front of the secret: it says what the secret is for. */
  readonly keep?: Piece;
  /** How the secret begins, if that says nothing but its kind: `ghp_`. */
  readonly prefix?: Piece;
  /** The rest of the secret. */
  readonly secret: Piece;
  /** What has to follow. */
  readonly behind?: Piece;
  /** How many characters of the found secret are one; 0 if it is none. Without it, all of them. `next` is the character behind it, if there is one. */
  readonly judge?: (secret: string, next: string) => number;
}

const NEVER = "(?!)";

export const nothing: Piece = { full: "", open: NEVER, heads: [], openHeads: [] };

/** One character after the other, as it is written. */
export function text(literal: string): Piece {
  return characters(Array.from(literal, escaped));
}

/** The same in upper, lower or mixed case. */
export function word(letters: string): Piece {
  return characters(Array.from(letters, (c) => `[${c.toUpperCase()}${c.toLowerCase()}]`));
}

function characters(sources: readonly string[]): Piece {
  const full = sources.join("");
  const last = sources.length - 1;
  const open = sources.slice(0, last).reduceRight((rest, source) => `(?:$|${source}${rest})`, "$");
  const openHead = sources.slice(0, last).reduceRight((rest, source) => `${source}(?:$|${rest})`, sources[last]!);
  return { full, open, heads: [full], openHeads: [openHead] };
}

/** From `min` to `max` characters of a class, as many as there are. No shape begins with one. */
export function run(characters: string, min: number, max: number): Piece {
  return repeated(`[${characters}]`, min, max);
}
export function repeated(source: string, min: number, max: number): Piece {
  return { full: `${source}{${min},${max}}`, open: `${source}{0,${max}}$`, heads: [source], openHeads: [source] };
}

export function sequence(...pieces: readonly Piece[]): Piece {
  return pieces.reduceRight((rest, piece) => {
    if (piece === nothing) return rest;
    return {
      full: piece.full + rest.full,
      open: anyOf(piece.open, piece.full + rest.open),
      heads: piece.heads,
      openHeads: piece.openHeads,
    };
  }, nothing);
}

/** The first of them that matches. */
export function either(...pieces: readonly Piece[]): Piece {
  return {
    full: anyOf(...pieces.map(({ full }) => full)),
    open: anyOf(...pieces.map(({ open }) => open)),
    heads: pieces.flatMap(({ heads }) => heads),
    openHeads: pieces.flatMap(({ openHeads }) => openHeads),
  };
}

function anyOf(...sources: readonly string[]): string {
  const possible = sources.filter((source) => !source.endsWith(NEVER));
  return possible.length === 0 ? NEVER : possible.length === 1 ? possible[0]! : `(?:${possible.join("|")})`;
}

/** Of no length. What follows is not one of these. */
export function unless(characters: string): Piece {
  return { ...nothing, full: `(?![${characters}])`, open: "$" };
}
/** What follows is one of these, or nothing at all. */
export function upTo(characters: string): Piece {
  return { ...nothing, full: `(?=[${characters}]|$)`, open: "$" };
}

/** What stands for a credential. No class of any shape has a bracket in it: that is why redacting twice changes nothing. */
export const marker = (kind: string): string => `[redacted:${kind}]`;
const MARKER = String.raw`\[redacted:[a-z-]{1,24}\]`;

/** More than any shape looks back. */
export const CONTEXT_CHARS = 64;

/**
 * The beginning of a token: what stands before it is none of these characters, or is the escape of a line break (JSON in a text: `\nghp_…`). Behind a marker nothing begins: the
 * rest of something longer than its shape is not taken for a token of its own. This is looked at behind the literal, because the literal is rarer.
 */
export function beginning(literal: string, notAfter: string): Piece {
  const source = escaped(literal);
  const lineBreak = String.raw`(?<=\\[nrt]${source})`;
  const boundary = `(?:${lineBreak}|(?<![${notAfter}]${source})(?<!${MARKER}${source}))`;
  return sequence(text(literal), { ...nothing, full: boundary });
}

function escaped(literal: string): string {
  return literal.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`);
}

/**
 * A piece of a credential's shape, as regular expression sources. `full` matches it. `open` matches where the text ends
 * before it is clear whether, or how far, `full` matches. So where no shape is open, nothing that follows can change
 * what was found there. Streams are split on that basis.
 *
 * Every quantifier has an upper bound, and adjacent pieces share few characters or none, so the work at one place is
 * bounded, and the total is linear in the text.
 */
export interface Piece {
  readonly full: string;
  readonly open: string;
  /** Cheap expressions that match where `full` starts: words, with letters in one case or both. */
  readonly heads: readonly string[];
}

/** What a credential of one kind looks like, as documented by the issuers as of 2026. */
export interface Shape {
  readonly kind: string;
  /** What stays in front of the secret: it says what the secret is for. `name` comes first, and several share it. */
  readonly name?: Piece;
  readonly keep?: Piece;
  /** How the secret starts, if that reveals only its kind: `ghp_`. */
  readonly prefix?: Piece;
  /** The rest of the secret. */
  readonly secret: Piece;
  /** What must follow. */
  readonly behind?: Piece;
  /**
   * How many characters of the match are secret; 0 if it is not a secret. Without this, all of them. `next` is the
   * character after it, if any.
   */
  readonly judge?: (secret: string, next: string) => number;
}

const NEVER = "(?!)";

export const nothing: Piece = { full: "", open: NEVER, heads: [] };

/** A literal, character by character. */
export function text(literal: string): Piece {
  return characters(Array.from(literal, escapeLiteral));
}

/** The same in upper, lower or mixed case. */
export function word(letters: string): Piece {
  return characters(Array.from(letters, (c) => `[${c.toUpperCase()}${c.toLowerCase()}]`));
}

function characters(sources: readonly string[]): Piece {
  const full = sources.join("");
  const last = sources.length - 1;
  const open = sources.slice(0, last).reduceRight((rest, source) => `(?:$|${source}${rest})`, "$");
  return { full, open, heads: [full] };
}

/** From `min` to `max` characters of a class, as many as there are. No shape starts with one. */
export function run(characters: string, min: number, max: number): Piece {
  return repeat(`[${characters}]`, min, max);
}
export function repeat(source: string, min: number, max: number): Piece {
  return { full: `${source}{${min},${max}}`, open: `${source}{0,${max}}$`, heads: [source] };
}

export function sequence(...pieces: readonly Piece[]): Piece {
  return pieces.reduceRight((rest, piece) => {
    if (piece === nothing) return rest;
    return {
      full: piece.full + rest.full,
      open: anyOf(piece.open, piece.full + rest.open),
      heads: piece.heads,
    };
  }, nothing);
}

/** The first piece that matches. */
export function either(...pieces: readonly Piece[]): Piece {
  return {
    full: anyOf(...pieces.map(({ full }) => full)),
    open: anyOf(...pieces.map(({ open }) => open)),
    heads: pieces.flatMap(({ heads }) => heads),
  };
}

function anyOf(...sources: readonly string[]): string {
  const possible = sources.filter((source) => !source.endsWith(NEVER));
  return possible.length === 0 ? NEVER : possible.length === 1 ? possible[0]! : `(?:${possible.join("|")})`;
}

/** Zero-width: the next character is not one of these. */
export function unless(characters: string): Piece {
  return { ...nothing, full: `(?![${characters}])`, open: "$" };
}
/** The next character is one of these, or the text ends. */
export function upTo(characters: string): Piece {
  return { ...nothing, full: `(?=[${characters}]|$)`, open: "$" };
}

/**
 * Replaces a credential. No character class of any shape contains a bracket: that is why redacting twice changes
 * nothing.
 */
export const marker = (kind: string): string => `[redacted:${kind}]`;
const MARKER = String.raw`\[redacted:[a-z-]{1,24}\]`;

/** Further than any shape looks back. */
export const CONTEXT_CHARS = 64;

/**
 * The start of a token: the character before it is none of these, or the token follows an escaped line break (JSON in a
 * text: `\nghp_…`). Nothing starts after a marker: the rest of something longer than its shape is not taken for a
 * separate token. This is checked after the literal, because the literal is rarer.
 */
export function beginning(literal: string, notAfter: string): Piece {
  const source = escapeLiteral(literal);
  const lineBreak = String.raw`(?<=\\[nrt]${source})`;
  const boundary = `(?:${lineBreak}|(?<![${notAfter}]${source})(?<!${MARKER}${source}))`;
  return sequence(text(literal), { ...nothing, full: boundary });
}

function escapeLiteral(literal: string): string {
  return literal.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`);
}

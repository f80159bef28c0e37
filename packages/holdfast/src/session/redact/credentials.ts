import { marker, nothing, sequence } from "./pattern.ts";
import { SHAPES, type Shape } from "./shapes.ts";

const PIECES = SHAPES.map(({ keep = nothing, secret, behind = nothing }) => ({
  ...sequence(keep, secret, behind),
  grouped: `(${keep.full})(${secret.full})${behind.full}`,
}));
const FOUND = PIECES.map(({ grouped }) => grouped).join("|");
const OPEN = PIECES.map(({ open }) => open).join("|");
const sourceOf = (heads: readonly string[]): string => [...new Set(heads)].sort().join("|");

/** Where a shape may begin, and what it is there. Most of any text is read by the first one only, which is an alternative of plain words. */
interface Reading {
  readonly heads: RegExp;
  readonly shapes: RegExp;
}

const whole: Reading = {
  heads: new RegExp(sourceOf(PIECES.flatMap(({ heads }) => heads)), "g"),
  shapes: new RegExp(`(?!)()|${FOUND}`, "y"),
};
/** Of what is open and what is found at the same place, what is open counts. */
const beginning: Reading = {
  heads: new RegExp(sourceOf(PIECES.flatMap(({ openHeads }) => openHeads)), "g"),
  shapes: new RegExp(`(${OPEN})|${FOUND}`, "y"),
};

/**
 * Replaces what looks like a credential by `[redacted:<kind>]`, so that the text still tells that there was one, and of which kind. Pure, total, in time linear in the
 * text; redacting twice changes nothing.
 */
export function credentials(text: string): string {
  return redacted(text, 0, whole).text;
}

/** The same for what comes behind `from`; what is before it is only looked back at. */
export function credentialsFrom(text: string, from: number): string {
  return redacted(text, from, whole).text;
}

/** The same for a text of which more is to come. Behind `until`, what comes decides. */
export function credentialsSoFar(text: string, from: number): { readonly text: string; readonly until: number } {
  return redacted(text, from, beginning);
}

function redacted(text: string, from: number, { heads, shapes }: Reading): { text: string; until: number } {
  let out = "";
  let done = from;
  let at = from;
  for (;;) {
    heads.lastIndex = at;
    const head = heads.exec(text);
    if (!head) return { text: done === 0 ? text : out + text.slice(done), until: text.length };
    shapes.lastIndex = head.index;
    const match = shapes.exec(text);
    if (match?.[1] !== undefined) return { text: out + text.slice(done, head.index), until: head.index };
    const found = match && foundBy(match);
    const chars = found ? charsOf(found, text.charAt(shapes.lastIndex)) : 0;
    if (found && chars > 0) {
      const start = head.index + found.keep.length;
      out += text.slice(done, start) + marker(found.shape.kind);
      done = start + chars;
      at = done;
    } else {
      at = head.index + 1;
    }
  }
}

interface Found {
  readonly shape: Shape;
  readonly keep: string;
  readonly secret: string;
}

function charsOf({ shape, secret }: Found, next: string): number {
  return shape.judge ? shape.judge(secret, next) : secret.length;
}

function foundBy(match: RegExpExecArray): Found | null {
  for (const [index, shape] of SHAPES.entries()) {
    const keep = match[2 * index + 2];
    const secret = match[2 * index + 3];
    if (keep !== undefined && secret !== undefined) return { shape, keep, secret };
  }
  return null;
}

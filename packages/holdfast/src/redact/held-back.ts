import { LONGEST_SHAPE_CHARS } from "./credential-shapes.ts";
import { credentials, credentialsCutOff, credentialsSoFar } from "./find-credentials.ts";
import { CONTEXT_CHARS } from "./pattern.ts";
import type { Redactor } from "./redactor.ts";

/**
 * With an application's own redactor, a stream holds back at least this much: a longer secret may be split before it is
 * recognised.
 */
export const HELD_BACK_CHARS = 512;

/**
 * Redacts a text that arrives in pieces, so that a credential split across two pieces is not written in halves. The
 * results of `push` and `end`, concatenated, are the redacted text.
 *
 * With `credentials`, only a possible start of a credential is held back (at most twice the longest shape, and a
 * piece), and the concatenated result is exactly what `credentials` makes of the whole text, however it was split. At
 * the end, a remaining possible start of a credential is replaced. With an application's own function, the last 512 to
 * 1,024 characters are held back, the text is split only where the function gives the same result for both sides as for
 * the whole, and at the end the function gets the rest.
 */
export class HeldBack {
  readonly #stream: { push(text: string): string; end(): string };

  constructor(redact: Redactor) {
    this.#stream = redact === credentials ? new CredentialStream() : new CutStream(redact);
  }

  /** What may be written now, redacted; often nothing. */
  push(text: string): string {
    return this.#stream.push(text);
  }

  /** The rest of a text that was cut off here. A new text may follow. */
  end(): string {
    return this.#stream.end();
  }
}

/**
 * How often a character of a stream is examined on average. Prose needs one time, and saves the rest: then what is held
 * back is examined with each piece. Text that only ever begins a credential uses this up, and is then examined again
 * when it has doubled, not once for each small piece that follows.
 */
const EXAMINATIONS = 2;

class CredentialStream {
  /** The original of what was already handed out: shapes look back at it. */
  #before = "";
  #held = "";
  /** How many characters may be examined. */
  #credit = 0;

  push(text: string): string {
    this.#held += text;
    this.#credit += EXAMINATIONS * text.length;
    if (this.#credit < this.#held.length) return "";
    this.#credit -= this.#held.length;
    const all = this.#before + this.#held;
    const { text: out, until } = credentialsSoFar(all, this.#before.length);
    this.#before = all.slice(Math.max(0, until - CONTEXT_CHARS), until);
    this.#held = all.slice(until);
    return out;
  }

  end(): string {
    const out = credentialsCutOff(this.#before + this.#held, this.#before.length);
    this.#before = "";
    this.#held = "";
    this.#credit = 0;
    return out;
  }
}

class CutStream {
  readonly #redact: Redactor;
  #held = "";
  /** Not examined again until it is this long. */
  #next = 2 * HELD_BACK_CHARS;

  constructor(redact: Redactor) {
    this.#redact = redact;
  }

  push(text: string): string {
    this.#held += text;
    if (this.#held.length < this.#next) return "";
    const redacted = this.#redact(this.#held);
    for (const cut of cuts(this.#held)) {
      const out = this.#redact(this.#held.slice(0, cut));
      const rest = this.#held.slice(cut);
      if (out + this.#redact(rest) !== redacted) continue;
      this.#keep(rest);
      return out;
    }
    // The function depends on more than the words, or has found something that does not end: at a bound, take all of it
    // at once.
    if (this.#held.length > LONGEST_SHAPE_CHARS) {
      this.#keep("");
      return redacted;
    }
    this.#next = 2 * this.#held.length;
    return "";
  }

  end(): string {
    const rest = this.#held;
    this.#keep("");
    return rest === "" ? "" : this.#redact(rest);
  }

  #keep(rest: string): void {
    this.#held = rest;
    this.#next = Math.max(2 * HELD_BACK_CHARS, rest.length + HELD_BACK_CHARS);
  }
}

/** Places to split, best first: after a line, after a word, anywhere (but not inside a character). */
function cuts(text: string): number[] {
  const last = text.length - HELD_BACK_CHARS;
  const line = text.lastIndexOf("\n", last - 1) + 1;
  const space = text.lastIndexOf(" ", last - 1) + 1;
  const code = text.charCodeAt(last);
  const anywhere = code >= 0xdc00 && code <= 0xdfff ? last - 1 : last;
  return [...new Set([line, space, anywhere])].filter((cut) => cut > 0);
}

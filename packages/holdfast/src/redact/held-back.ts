import { LONGEST_SHAPE_CHARS } from "./credential-shapes.ts";
import { credentials, credentialsCutOff, credentialsSoFar } from "./find-credentials.ts";
import { CONTEXT_CHARS } from "./pattern.ts";
import type { Redactor } from "./redactor.ts";

/** A stream under an application's own redactor holds back at least so much: what is longer may be cut in two before it is recognised. */
export const HELD_BACK_CHARS = 512;

/**
 * Redacts a text that comes in pieces, so that a credential that two pieces share is not written by halves. What `push` and `end` answer is, in its order, the redacted text.
 *
 * With `credentials` only that waits which may be the beginning of a credential, and all of it together is exactly what `credentials` makes of the whole text, however that was cut. At the end, what may still be the beginning
 * of a credential is replaced. With an application's own function the last 512 to 1,024 characters wait, a cut is made only where the function says the same of both sides as of the whole, and at the end the function is given the rest.
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

  /** The rest of a text that was cut off here. After it, a new text may begin. */
  end(): string {
    return this.#stream.end();
  }
}

class CredentialStream {
  /** What was handed out already, as it came: shapes look back at it. */
  #before = "";
  #held = "";

  push(text: string): string {
    const all = this.#before + this.#held + text;
    const { text: out, until } = credentialsSoFar(all, this.#before.length);
    this.#before = all.slice(Math.max(0, until - CONTEXT_CHARS), until);
    this.#held = all.slice(until);
    return out;
  }

  end(): string {
    const out = credentialsCutOff(this.#before + this.#held, this.#before.length);
    this.#before = "";
    this.#held = "";
    return out;
  }
}

class CutStream {
  readonly #redact: Redactor;
  #held = "";
  /** Not looked at again before it is this long. */
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
    // It goes by more than its words, or has found something that does not end: with a bound, all of it is taken at once.
    if (this.#held.length > LONGEST_SHAPE_CHARS) {
      this.#keep("");
      return redacted;
    }
    this.#next = this.#held.length + HELD_BACK_CHARS;
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

/** Places to cut, best first: behind a line, behind a word, anywhere (but not inside a character). */
function cuts(text: string): number[] {
  const last = text.length - HELD_BACK_CHARS;
  const line = text.lastIndexOf("\n", last - 1) + 1;
  const space = text.lastIndexOf(" ", last - 1) + 1;
  const code = text.charCodeAt(last);
  const anywhere = code >= 0xdc00 && code <= 0xdfff ? last - 1 : last;
  return [...new Set([line, space, anywhere])].filter((cut) => cut > 0);
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACE = 0x7d;
const CLOSE_BRACKET = 0x5d;

/** Follows the brackets and strings of JSON, whose bytes come in any number of parts. It checks nothing else. */
export class JsonDepth {
  #depth = 0;
  #isInString = false;
  #isEscaped = false;

  get isInString(): boolean {
    return this.#isInString;
  }

  /** Everything that was opened is closed. */
  get isClosed(): boolean {
    return this.#depth === 0 && !this.#isInString;
  }

  /** The position behind the bracket that closes the first one, or -1 if that is not among these bytes. */
  add(bytes: Uint8Array, from = 0): number {
    for (let at = from; at < bytes.length; at++) {
      const byte = bytes[at]!;
      if (this.#isInString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (byte === BACKSLASH) this.#isEscaped = true;
        else if (byte === QUOTE) this.#isInString = false;
      } else if (byte === QUOTE) this.#isInString = true;
      else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) this.#depth++;
      else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        if (this.#depth > 0) this.#depth--;
        if (this.#depth === 0) return at + 1;
      }
    }
    return -1;
  }
}

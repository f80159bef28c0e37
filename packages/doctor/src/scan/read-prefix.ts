/** What the beginning of a text says as JSON, as far as it can be read. */
export interface Prefix {
  readonly value: unknown;
  /** `whole`: to its last bracket. `unclosed`: only closing brackets are missing. `cut`: more than that is. */
  readonly end: "whole" | "unclosed" | "cut";
  /** Where reading ended. */
  readonly at: number;
  /** Control characters stood raw inside of strings. */
  readonly hasControls: boolean;
}

const DEPTH_MAX = 2_000;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;
const BLANK = /[ \t\r\n]*/y;
/** Up to the quote, a backslash or a character that JSON does not allow raw. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: those are what it looks for
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const ESCAPES: Readonly<Record<string, string>> = {
  ...{ '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" },
};

type Frame =
  | { readonly array: unknown[]; object?: never }
  | { readonly object: Record<string, unknown>; key: string; array?: never };

/**
 * Reads JSON and stops where it can read no further, with what it has: the value so far, with its brackets closed. A
 * string that is cut off counts as far as it goes. Raw control characters inside strings are read as such.
 */
export function readPrefix(text: string, from = 0): Prefix {
  return new PrefixReader(text, from).read();
}

class PrefixReader {
  readonly #text: string;
  #at: number;
  #hasControls = false;
  #isCut = false;

  constructor(text: string, from: number) {
    this.#text = text;
    this.#at = from;
  }

  read(): Prefix {
    const stack: Frame[] = [];
    let root: unknown;
    /** Puts a value in its place; whether another frame was opened. */
    const place = (value: unknown): void => {
      const top = stack.at(-1);
      if (!top) root = value;
      else if (top.array) top.array.push(value);
      else Object.defineProperty(top.object, top.key, { value, writable: true, enumerable: true, configurable: true });
    };
    const done = (end: Prefix["end"]): Prefix => ({ value: root, end, at: this.#at, hasControls: this.#hasControls });
    /** A value is expected; or, in a new object or array, its end. */
    let expects: "value" | "key or end" | "value or end" | "comma or end" = "value";
    for (;;) {
      this.#skip(BLANK);
      const char = this.#text[this.#at];
      const top = stack.at(-1);
      if (char === undefined) return done(expects === "comma or end" ? "unclosed" : "cut");
      if (expects === "comma or end") {
        if (char === (top!.array ? "]" : "}")) {
          this.#at++;
          stack.pop();
          if (stack.length === 0) return done("whole");
          continue;
        }
        if (char !== ",") return done("cut");
        this.#at++;
        if (top!.array) {
          expects = "value";
          continue;
        }
        this.#skip(BLANK);
        if (!this.#readKey(top!)) return done("cut");
        expects = "value";
        continue;
      }
      if (expects !== "value" && char === (top!.array ? "]" : "}")) {
        expects = "comma or end";
        continue;
      }
      if (expects === "key or end") {
        if (!this.#readKey(top!)) return done("cut");
        expects = "value";
        continue;
      }
      if (char === "{" || char === "[") {
        if (stack.length >= DEPTH_MAX) return done("cut");
        const frame: Frame = char === "{" ? { object: {}, key: "" } : { array: [] };
        place(frame.array ?? frame.object);
        stack.push(frame);
        this.#at++;
        expects = char === "{" ? "key or end" : "value or end";
        continue;
      }
      if (char === '"') {
        place(this.#string());
        if (this.#isCut) return done("cut");
      } else {
        const word = this.#match(NUMBER) ?? this.#match(WORD);
        if (word === null) return done("cut");
        place(JSON.parse(word));
        // More digits may have followed.
        if (this.#at === this.#text.length && stack.length > 0 && typeof JSON.parse(word) === "number")
          return done("cut");
      }
      if (stack.length === 0) return done("whole");
      expects = "comma or end";
    }
  }

  #readKey(frame: Frame): boolean {
    if (this.#text[this.#at] !== '"' || frame.array) return false;
    const key = this.#string();
    this.#skip(BLANK);
    if (this.#isCut || this.#text[this.#at] !== ":") return false;
    this.#at++;
    frame.key = key;
    return true;
  }

  #string(): string {
    let out = "";
    this.#at++;
    for (;;) {
      out += this.#match(PLAIN) ?? "";
      const char = this.#text[this.#at];
      if (char === undefined) {
        this.#isCut = true;
        return out;
      }
      this.#at++;
      if (char === '"') return out;
      if (char !== "\\") {
        this.#hasControls = true;
        out += char;
        continue;
      }
      const escaped = this.#text[this.#at++];
      const plain = escaped === undefined ? undefined : ESCAPES[escaped];
      const hex = escaped === "u" ? this.#text.slice(this.#at, this.#at + 4) : "";
      if (plain !== undefined) out += plain;
      else if (/^[0-9a-fA-F]{4}$/.test(hex)) {
        out += String.fromCharCode(Number.parseInt(hex, 16));
        this.#at += 4;
      } else {
        this.#isCut = true;
        return out;
      }
    }
  }

  #skip(pattern: RegExp): void {
    this.#match(pattern);
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text)?.[0] ?? null;
    if (match !== null) this.#at += match.length;
    return match;
  }
}

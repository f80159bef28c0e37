import { widthOf } from "../terminal/width.ts";

/** Wraps words that stream in. A terminal gets each word as it arrives; anything else gets whole lines. */
export class WordWrap {
  readonly #write: (text: string) => void;
  readonly #width: number;
  readonly #isLive: boolean;
  #kind: string | null = null;
  #column = 0;
  #held = "";
  #space = "";

  constructor(write: (text: string) => void, width: number, isLive: boolean) {
    this.#write = write;
    this.#width = width;
    this.#isLive = isLive;
  }

  /** Continues the text; a different kind starts a new line. */
  say(
    kind: string,
    text: string,
    paint: (text: string) => string,
    indent: string | (() => string),
    indentColumns = typeof indent === "string" ? indent.length : 0,
  ): void {
    if (this.#kind !== kind) this.close();
    for (const piece of text.match(/\n+|[^\S\n]+|[^\s]+/g) ?? []) {
      if (piece.startsWith("\n")) {
        this.close();
        this.#kind = kind;
        continue;
      }
      const columns = widthOf(piece);
      const isSpace = /^\s/.test(piece);
      if (isSpace) {
        // Written with the next word, if that fits on the same line.
        if (this.#column > 0) this.#space = " ".repeat(columns);
        continue;
      }
      if (this.#column > 0 && this.#column + this.#space.length + columns > this.#width) this.close();
      if (this.#column === 0) {
        this.#kind = kind;
        this.#put(typeof indent === "string" ? indent : indent());
        this.#column = indentColumns;
      }
      this.#put(this.#space + paint(piece));
      this.#column += this.#space.length + columns;
      this.#space = "";
    }
  }

  /** Ends the current line, if any. */
  close(): void {
    if (this.#column > 0) this.#put("\n");
    if (this.#held !== "") this.#write(this.#held);
    this.#held = "";
    this.#space = "";
    this.#column = 0;
    this.#kind = null;
  }

  #put(text: string): void {
    if (this.#isLive) this.#write(text);
    else this.#held += text;
  }
}

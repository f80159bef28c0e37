import { widthOf } from "../terminal/width.ts";

/** Words that stream in, wrapped; on a terminal each is shown when it comes, elsewhere each line when it is full. */
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

  /** Goes on with what it says; another kind of words begins a new line. */
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
        // Written with the word behind it, if that comes to stand on the same line.
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

  /** Ends the line, if there is one. */
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

/**
 * Marks a character that the shell would expand (`*`, `?`, `[`, `~`), so that `'*'` and `*` are different words. A NUL
 * cannot occur in a command.
 */
export const EXPANDED = "\0";

const RESERVED: ReadonlySet<string> = new Set(
  "! case do done elif else esac fi for function if in select then time until while [[ ]] coproc".split(" "),
);

/** Longer lines are not parsed: rules compare the words of each command with all others. */
const LINE_CHARS_MAX = 262_144;

/**
 * A command line without the blanks at both ends that `sh` skips. `sh` treats other white space, such as a no-break
 * space, as part of a word: ` ./run` may be a different program from `./run`.
 */
export function trimmedLine(line: string): string {
  const isBlank = (at: number): boolean => line[at] === " " || line[at] === "\t" || line[at] === "\n";
  let start = 0;
  while (start < line.length && isBlank(start)) start++;
  let end = line.length;
  while (end > start && isBlank(end - 1)) end--;
  let slashes = 0;
  while (end - slashes > start && line[end - slashes - 1] === "\\") slashes++;
  // An escaped blank is also part of a word.
  return line.slice(start, slashes % 2 === 1 && end < line.length ? end + 1 : end);
}

/**
 * Parses a command line into simple commands, each a list of words, joined by `;`, `&&`, `||`, `|` and line breaks.
 * Null for anything whose effect cannot be read off its words: substitutions, variables, redirections (except to
 * /dev/null or another stream), groups, loops, assignments, background jobs, comments, unclosed quotes; and for lines
 * that are too long. A permission check must not guess.
 */
export function simpleCommands(line: string): string[][] | null {
  const reader = new Reader(line);
  return reader.read();
}

class Reader {
  readonly #line: string;
  readonly #commands: string[][] = [];
  #at = 0;
  #words: string[] = [];
  #word: string | null = null;
  #isQuoted = false;

  constructor(line: string) {
    this.#line = line;
  }

  read(): string[][] | null {
    if (this.#line.length > LINE_CHARS_MAX || this.#line.includes(EXPANDED)) return null;
    while (this.#at < this.#line.length) if (!this.#step()) return null;
    return this.#endCommand() ? this.#commands : null;
  }

  /** False: the line is not simple. */
  #step(): boolean {
    const char = this.#line[this.#at]!;
    this.#at += 1;
    switch (char) {
      case " ":
      case "\t":
        return this.#endWord();
      case "\n":
      case ";":
        return this.#line[this.#at] !== ";" && this.#endCommand();
      case "|":
        if (this.#line[this.#at] === "&") return false;
        if (this.#line[this.#at] === "|") this.#at += 1;
        return this.#endCommand();
      case "&":
        if (this.#line[this.#at] !== "&") return false;
        this.#at += 1;
        return this.#endCommand();
      case "<":
      case ">":
        return this.#redirection();
      case "'":
        return this.#singleQuoted();
      case '"':
        return this.#doubleQuoted();
      case "\\":
        return this.#escaped();
      case "$":
      case "`":
      case "(":
      case ")":
      case "{":
      case "}":
        return false;
      case "#":
        return this.#word !== null && this.#add(char);
      case "*":
      case "?":
      case "[":
      case "~":
        return this.#add(EXPANDED + char);
      default:
        return this.#add(char);
    }
  }

  #add(text: string): true {
    this.#word = (this.#word ?? "") + text;
    return true;
  }

  #quote(text: string): true {
    this.#isQuoted = true;
    return this.#add(text);
  }

  #singleQuoted(): boolean {
    const end = this.#line.indexOf("'", this.#at);
    if (end < 0) return false;
    this.#quote(this.#line.slice(this.#at, end));
    this.#at = end + 1;
    return true;
  }

  #doubleQuoted(): boolean {
    this.#quote("");
    for (;;) {
      const char = this.#line[this.#at];
      this.#at += 1;
      if (char === undefined || char === "$" || char === "`") return false;
      if (char === '"') return true;
      const next = this.#line[this.#at] ?? "";
      if (char !== "\\" || !'$`"\\\n'.includes(next) || next === "") {
        this.#add(char);
        continue;
      }
      this.#at += 1;
      if (next !== "\n") this.#add(next);
    }
  }

  #escaped(): boolean {
    const next = this.#line[this.#at];
    this.#at += 1;
    if (next === undefined) return false;
    return next === "\n" || this.#quote(next);
  }

  /** Accepts only redirections to /dev/null or another stream: they touch no file. */
  #redirection(): boolean {
    const isNumber = this.#word !== null && !this.#isQuoted && /^\d$/u.test(this.#word);
    if (isNumber) {
      this.#word = null;
    } else if (!this.#endWord()) return false;
    const rest = this.#line.slice(this.#at - 1);
    const harmless = /^(?:[<>]&(?:\d|-)|(?:>>?|<)[ \t]*\/dev\/null)(?=[ \t\n;|&<>]|$)/u.exec(rest);
    if (!harmless) return false;
    this.#at += harmless[0].length - 1;
    return true;
  }

  #endWord(): boolean {
    const word = this.#word;
    const isQuoted = this.#isQuoted;
    this.#word = null;
    this.#isQuoted = false;
    if (word === null) return true;
    // The program must be named literally, not expanded by the shell.
    const isFirst = this.#words.length === 0;
    if (isFirst && (word.includes(EXPANDED) || word === "")) return false;
    if (isFirst && !isQuoted && RESERVED.has(word)) return false;
    if (isFirst && /^[A-Za-z_]\w*\+?=/u.test(word)) return false;
    this.#words.push(word);
    return true;
  }

  #endCommand(): boolean {
    if (!this.#endWord()) return false;
    if (this.#words.length > 0) this.#commands.push(this.#words);
    this.#words = [];
    return true;
  }
}

import type { FileHandle } from "node:fs/promises";
import { StringDecoder } from "node:string_decoder";
import { assertNotOwn } from "../paths/own-store.ts";
import { assertReal, realPath, shownPath } from "../paths/real-path.ts";
import { RESULT_CHARS_MAX, withoutNul } from "../results/result-text.ts";
import { describeSystemError } from "../results/system-errors.ts";
import type { FileContext } from "./context.ts";
import { heldText } from "./editor-file.ts";
import { openRegular } from "./regular-file.ts";
import { notText } from "./text-file.ts";

const LINES_MAX = 2000;
const LINE_CHARS_MAX = 2000;
const CHUNK_BYTES = 256 * 1024;

interface Limits {
  /** How far to count lines once the requested ones have been read. */
  readonly countedBytesMax: number;
  /** How far to look for the requested lines. */
  readonly searchedBytesMax: number;
}

const LIMITS: Limits = { countedBytesMax: 64 * 1024 * 1024, searchedBytesMax: 1024 * 1024 * 1024 };

interface ReadInput {
  readonly path: string;
  readonly offset?: number | undefined;
  readonly limit?: number | undefined;
}

/** Returns the exact text, without line numbers, so that it can be passed to `edit`. */
export async function readText(
  context: Pick<FileContext, "cwd" | "own" | "editor">,
  input: ReadInput,
  signal?: AbortSignal,
  limits: Limits = LIMITS,
): Promise<string> {
  const { cwd, own } = context;
  const path = realPath(cwd, input.path);
  const shown = shownPath(cwd, path);
  assertNotOwn(own, path, shown);
  let file: FileHandle | null = null;
  try {
    const held = await heldText(context, path, signal);
    // What the editor does not give is read from disk: reading changes nothing.
    if (held && "text" in held) return pageOfText(held.text, shown, input);
    file = await openRegular(path, shown);
    assertReal(path);
    return await pageOf(file, shown, input, limits, signal);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EISDIR")
      throw new Error(`${shown} is a folder. Use list to see what is in it.`);
    throw describeSystemError(error, shown);
  } finally {
    await file?.close();
  }
}

function pageOfText(text: string, shown: string, { offset = 1, limit }: ReadInput): string {
  const page = new Page(offset, limit ?? LINES_MAX);
  page.add(text);
  return page.end(shown, true);
}

async function pageOf(
  file: FileHandle,
  shown: string,
  { offset = 1, limit }: ReadInput,
  { countedBytesMax, searchedBytesMax }: Limits,
  signal: AbortSignal | undefined,
): Promise<string> {
  const { size } = await file.stat();
  const page = new Page(offset, limit ?? LINES_MAX);
  const decoder = new StringDecoder("utf8");
  const chunk = new Uint8Array(CHUNK_BYTES);
  let read = 0;
  for (let isFirst = true; ; isFirst = false) {
    // Read to the end to count the lines, within limits: some files have no end.
    signal?.throwIfAborted();
    if (page.isFull && read > countedBytesMax) return page.end(shown, false);
    if (read > searchedBytesMax) return page.end(shown, false);
    const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES);
    const bytes = chunk.subarray(0, bytesRead);
    const kind = isFirst ? notText(bytes) : null;
    if (kind) return `[${shown} is ${kind} of ${size} bytes. This tool shows text only.]`;
    if (bytesRead === 0) break;
    read += bytesRead;
    page.add(decoder.write(bytes));
  }
  page.add(decoder.end());
  return page.end(shown, true);
}

/** Keeps the lines from `offset` on, as many as fit, and counts the others. */
class Page {
  readonly #offset: number;
  readonly #limit: number;
  readonly #lines: string[] = [];
  #chars = 0;
  #isFull = false;
  #count = 0;
  #line = "";
  #lineChars = 0;
  #cut = 0;
  #endsWithLineEnd = true;

  constructor(offset: number, limit: number) {
    this.#offset = offset;
    this.#limit = limit;
  }

  add(text: string): void {
    let from = 0;
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", from)) {
      this.#grow(text.slice(from, at));
      this.#finishLine();
      from = at + 1;
    }
    this.#grow(text.slice(from));
    if (text !== "") this.#endsWithLineEnd = text.endsWith("\n");
  }

  /** All requested lines have been read; the rest are only counted. */
  get isFull(): boolean {
    return this.#isFull;
  }

  /** `isCounted`: the file was read to its end. */
  end(shown: string, isCounted: boolean): string {
    if (this.#lineChars > 0) this.#finishLine();
    const count = this.#count;
    if (count === 0) return `[${shown} is empty.]`;
    if (this.#offset > count) {
      const many = isCounted ? lines(count) : `more than ${lines(count)}, too many to count`;
      throw new Error(`${shown} has ${many}: there is no line ${this.#offset}${isCounted ? "" : " among them"}.`);
    }
    const last = this.#offset + this.#lines.length - 1;
    const text = withoutNul(this.#lines.join("\n"));
    const isWhole = isCounted && this.#offset === 1 && last === count && this.#cut === 0;
    if (isWhole) return this.#endsWithLineEnd ? `${text}\n` : text;
    const cut = this.#cut > 0 ? `; ${lines(this.#cut)} cut at ${LINE_CHARS_MAX} characters` : "";
    const more = last < count || !isCounted ? `; read on with offset ${last + 1}` : "";
    const total = isCounted ? `${count}` : `more than ${count}`;
    return `${text}\n[Lines ${this.#offset} to ${last} of ${total}${cut}${more}.]`;
  }

  #grow(piece: string): void {
    if (this.#line.length < LINE_CHARS_MAX) this.#line += piece.slice(0, LINE_CHARS_MAX - this.#line.length);
    this.#lineChars += piece.length;
  }

  #finishLine(): void {
    this.#count += 1;
    const isFull =
      this.#isFull || this.#lines.length >= this.#limit || this.#chars + this.#line.length > RESULT_CHARS_MAX;
    if (this.#count >= this.#offset) {
      // Pages have no gaps: after a line that did not fit, no shorter one is shown.
      this.#isFull = isFull;
      if (!isFull) this.#keep();
    }
    this.#line = "";
    this.#lineChars = 0;
  }

  #keep(): void {
    const isCut = this.#lineChars > LINE_CHARS_MAX;
    if (isCut) this.#cut += 1;
    const line = isCut ? `${this.#line.replace(/[\uD800-\uDBFF]$/u, "")}…` : this.#line;
    this.#lines.push(line);
    this.#chars += line.length + 1;
  }
}

function lines(count: number): string {
  return count === 1 ? "1 line" : `${count} lines`;
}

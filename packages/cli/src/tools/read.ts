import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { StringDecoder } from "node:string_decoder";
import { plain, RESULT_CHARS_MAX } from "./bounded.ts";
import type { ToolContext } from "./context.ts";
import { inWords } from "./failure.ts";
import { realPath, shownPath } from "./real-path.ts";
import { notText } from "./text-file.ts";

const LINES_MAX = 2000;
const LINE_CHARS_MAX = 2000;
const CHUNK_BYTES = 256 * 1024;

interface ReadInput {
  readonly path: string;
  readonly offset?: number | undefined;
  readonly limit?: number | undefined;
}

/** The text itself, without line numbers, so that `edit` can be given what stands here. */
export async function readText(
  { cwd }: Pick<ToolContext, "cwd">,
  input: ReadInput,
  signal?: AbortSignal,
): Promise<string> {
  const path = realPath(cwd, input.path);
  const shown = shownPath(cwd, path);
  let file: FileHandle | null = null;
  try {
    // Looking at what it is must not wait for the other end of a pipe.
    file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    const stat = await file.stat();
    if (stat.isDirectory()) throw new Error(`${shown} is a folder. Use list to see what is in it.`);
    if (!stat.isFile()) throw new Error(`${shown} is not a file, but a device, a pipe or a socket. It was not read.`);
    return await pageOf(file, stat.size, shown, input, signal);
  } catch (error) {
    throw inWords(error, shown);
  } finally {
    await file?.close();
  }
}

async function pageOf(
  file: FileHandle,
  size: number,
  shown: string,
  { offset = 1, limit }: ReadInput,
  signal: AbortSignal | undefined,
): Promise<string> {
  const page = new Page(offset, limit ?? LINES_MAX);
  const decoder = new StringDecoder("utf8");
  const chunk = new Uint8Array(CHUNK_BYTES);
  for (let isFirst = true; ; isFirst = false) {
    // To the end, since its lines are counted; that may take a while.
    signal?.throwIfAborted();
    const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES);
    const bytes = chunk.subarray(0, bytesRead);
    const kind = isFirst ? notText(bytes) : null;
    if (kind) return `[${shown} is ${kind} of ${size} bytes. This tool shows text only.]`;
    if (bytesRead === 0) break;
    page.add(decoder.write(bytes));
  }
  page.add(decoder.end());
  return page.end(shown);
}

/** The lines from `offset` on, as many as fit; the others are counted. */
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

  end(shown: string): string {
    if (this.#lineChars > 0) this.#finishLine();
    const count = this.#count;
    if (count === 0) return `[${shown} is empty.]`;
    if (this.#offset > count) {
      throw new Error(`${shown} has ${lines(count)}: there is no line ${this.#offset}.`);
    }
    const last = this.#offset + this.#lines.length - 1;
    const text = plain(this.#lines.join("\n"));
    const isWhole = this.#offset === 1 && last === count && this.#cut === 0;
    if (isWhole) return this.#endsWithLineEnd ? `${text}\n` : text;
    const cut = this.#cut > 0 ? `; ${lines(this.#cut)} cut at ${LINE_CHARS_MAX} characters` : "";
    const more = last < count ? `; read on with offset ${last + 1}` : "";
    return `${text}\n[Lines ${this.#offset} to ${last} of ${count}${cut}${more}.]`;
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
      // Pages have no holes: behind a line that found no room, a shorter one is not shown.
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

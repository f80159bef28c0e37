import type { ReadItem } from "../contract/agent.ts";
import { problem } from "../contract/problem.ts";
import type { Place, SessionRecord } from "../contract/record.ts";
import type { Fields } from "../contract/shapes.ts";
import { type Door, Refused } from "../files/door.ts";
import type { Understood } from "../jsonl/read-lines.ts";
import { type DocumentRules, factsOf, parseDocument } from "./parse-document.ts";

/** An agent's document: what is a record in it, and what it means. */
export interface DocumentFormat extends DocumentRules {
  /** Null if it does not understand the record; it is then kept as `unknown`. */
  understand(value: unknown): Understood | null;
  /** What the document says besides its records. */
  understandFacts?(facts: Fields): Understood;
}

/** A string of JSON cannot be longer in this process. */
const BYTES_MAX = 256 * 2 ** 20;

/** The bytes of a document; null if there is no such file. Throws `Refused`. */
export function documentAt(path: string, door: Door): Buffer | null {
  if (door.facts(path) === null) return null;
  using file = door.openRaw(path);
  if (file.size > BYTES_MAX) throw new Refused(path, `it has ${file.size} bytes, more than a document may have`);
  return Buffer.from(file.read(0, file.size));
}

/** The records of a document, with what is wrong with its text. */
export function* readDocument(path: string, door: Door, format: DocumentFormat, thread = "main"): Generator<ReadItem> {
  const start: Place = { file: path, line: null, offset: null };
  let bytes: Buffer | null;
  try {
    bytes = documentAt(path, door);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    yield { type: "problem", problem: problem("unopenable", start, { detail: error.message }) };
    return;
  }
  if (bytes === null || isBlank(bytes)) {
    const detail = bytes === null ? "it is not there" : `${bytes.length} bytes`;
    yield { type: "problem", problem: problem("empty-file", start, { detail }) };
    return;
  }
  const pieces = parseDocument(bytes, format);
  const facts = format.understandFacts?.(factsOf(pieces)) ?? { kind: "facts" };
  const lines = new LineCounter(bytes);
  for (const piece of pieces) {
    const place: Place = { file: path, line: lines.at(piece.offset), offset: piece.offset };
    for (const kind of piece.damage) yield { type: "problem", problem: problem(kind, place) };
    const { role, offset, length, state, value } = piece;
    if (role === "tail" || length === 0) continue;
    const known = value === undefined ? null : role === "head" ? facts : format.understand(value);
    const none = { thread, id: null, parent: null, sequence: null, at: null, units: [] };
    const own = { place, bytes: bytes.subarray(offset, offset + length), length, kind: "unknown", state, value };
    const record: SessionRecord = { ...none, ...own, ...known };
    yield { type: "record", record };
  }
}

export const isBlank = (bytes: Buffer): boolean => bytes.toString("latin1").trim() === "";

/** Places come nearly in order: only what lies between two is counted. */
class LineCounter {
  readonly #bytes: Buffer;
  #offset = 0;
  #line = 1;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  at(offset: number): number {
    if (offset < this.#offset) [this.#line, this.#offset] = [1, 0];
    for (; this.#offset < offset; this.#offset++) if (this.#bytes[this.#offset] === 0x0a) this.#line++;
    return this.#line;
  }
}

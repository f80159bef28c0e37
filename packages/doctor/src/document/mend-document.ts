import type { Edit, Grade } from "../contract/plan.ts";
import { type Fields, fieldsOf } from "../contract/shapes.ts";
import type { MessageEntry } from "../mend/messages.ts";
import { type DocumentRules, factsOf, type Piece, parseDocument } from "./parse-document.ts";

/** A document on its way to being repaired: records that stay as they are, byte for byte, and others. */

export interface DocumentEntry extends MessageEntry {
  /** Null if it is added. */
  readonly piece: Piece | null;
}

export class DocumentEntries {
  /** Mark them (`change`, `remove`), and add some. */
  readonly entries: DocumentEntry[];
  readonly #bytes: Buffer;
  readonly #list: string | null;
  readonly #head: Piece;
  readonly #tail: Piece;
  readonly #rest: readonly Piece[];
  readonly #facts: Fields;
  readonly #style: Style;

  constructor(bytes: Buffer, rules: DocumentRules) {
    this.#bytes = bytes;
    this.#list = rules.list;
    const pieces = parseDocument(bytes, rules);
    const tail = pieces.findIndex(({ role }) => role === "tail");
    this.#head = pieces[0]!;
    this.#tail = pieces[tail]!;
    this.#rest = pieces.slice(tail + 1);
    this.#facts = withoutList(factsOf(pieces), rules.list);
    this.#style = styleOf(bytes, pieces, rules.list);
    this.entries = pieces.slice(1, tail).map((piece): DocumentEntry => {
      if (piece.role === "noise")
        return {
          piece,
          value: undefined,
          isRemoved: true,
          grade: "unknown",
          why: `removes bytes without a record: ${piece.damage.join(", ")}`,
        };
      // Its bytes are whole if only a comma is missing.
      if (piece.state === "intact" || piece.damage.join() === "glued-records") return { piece, value: piece.value };
      const [grade, what] =
        piece.state === "recovered"
          ? (["intact", "repairs the text"] as const)
          : (["unknown", "keeps what can be read"] as const);
      return { piece, value: piece.value, grade, why: `${what}: ${piece.damage.join(", ")}` };
    });
  }

  /** What the document says besides its records. */
  get facts(): Fields {
    return this.#facts;
  }

  /** Whether something that stood before the first record was lost, perhaps records. */
  get isBeginningLost(): boolean {
    return this.#head.state === "unreadable";
  }

  /** The changes of the file, in order. `needed`: facts that it must have, where its own are lost. */
  edits(needed: Fields = {}): Edit[] {
    const edits: Edit[] = [];
    const put = (from: number, to: number, text: Buffer, grade: Grade, why: string): void => {
      if (!text.equals(this.#bytes.subarray(from, to)))
        edits.push({ offset: from, length: to - from, bytes: text, grade, why });
    };
    let at = this.#head.offset + this.#head.length;
    const isHeadWhole = this.#head.state === "intact" || this.#head.state === "recovered";
    const facts = isHeadWhole ? this.#facts : { ...this.#facts, ...missingIn(this.#facts, needed) };
    const own = this.#plain(this.#head).subarray(this.#head.damage.includes("byte-order-mark") ? 3 : 0);
    const head = isHeadWhole ? own : Buffer.from(this.#style.head(facts, this.#list));
    put(
      0,
      at,
      head,
      isHeadWhole ? "intact" : "rebuilt",
      isHeadWhole ? "repairs the beginning of the document" : "rebuilds the beginning of the document",
    );
    let isFirst = true;
    for (const entry of this.entries) {
      const { piece, isRemoved, grade, why } = entry;
      const to = piece ? piece.offset + piece.length : at;
      if (isRemoved) put(at, to, Buffer.alloc(0), grade ?? "unknown", why ?? "removes a record");
      else {
        const gap = piece ? this.#clean(this.#bytes.subarray(at, piece.offset)) : null;
        const isOwn = gap !== null && (isFirst ? /^\s*$/ : /^\s*,\s*$/).test(gap);
        const between = isOwn ? gap : `${isFirst ? "" : ","}${this.#style.before}`;
        const record = piece && why === undefined ? this.#plain(piece) : Buffer.from(this.#style.record(entry.value));
        put(
          at,
          to,
          Buffer.concat([Buffer.from(between), record]),
          grade ?? "intact",
          why ?? "puts a record in its place",
        );
        isFirst = false;
      }
      at = to;
    }
    const { offset, length, state } = this.#tail;
    const isTailWhole = isHeadWhole && state === "intact";
    const tail = isTailWhole
      ? this.#plain(this.#tail)
      : Buffer.from(
          this.#style.tail(isHeadWhole ? withoutList(fieldsOf(this.#tail.value), this.#list) : {}, this.#list),
        );
    const gap = this.#clean(this.#bytes.subarray(at, offset));
    const before = /^\s*$/.test(gap) && isTailWhole ? gap : isFirst ? "" : this.#style.behind;
    put(
      at,
      offset + length,
      Buffer.concat([Buffer.from(before), tail]),
      isTailWhole ? "intact" : "rebuilt",
      "completes the end of the document",
    );
    at = offset + length;
    const behind = this.#rest[0]?.offset ?? this.#bytes.length;
    const blank = this.#clean(this.#bytes.subarray(at, behind));
    put(at, behind, Buffer.from(blank, "latin1"), "intact", "ends the lines as the agent does");
    for (const { offset: from, length: bytes, damage } of this.#rest)
      put(
        from,
        from + bytes,
        Buffer.alloc(0),
        "unknown",
        `removes what stands behind the document: ${damage.join(", ")}`,
      );
    return edits;
  }

  /** A carriage return in front of a line feed is none of the agent's. */
  #plain({ offset, length }: Piece): Buffer {
    return Buffer.from(this.#clean(this.#bytes.subarray(offset, offset + length)), "latin1");
  }

  #clean(bytes: Buffer): string {
    const text = bytes.toString("latin1");
    return this.#head.damage.includes("crlf") ? text.replaceAll("\r\n", "\n") : text;
  }
}

/** A document of these records alone, as `JSON.stringify` writes it. */
export function documentText(list: string | null, facts: Fields, records: readonly unknown[], indent: number): string {
  const value = list === null ? records : { ...facts, [list]: records };
  return indent > 0 ? `${JSON.stringify(value, null, indent)}\n` : JSON.stringify(value);
}

interface Style {
  /** In front of a record, and behind the last one. */
  readonly before: string;
  readonly behind: string;
  head(facts: Fields, list: string | null): string;
  record(value: unknown): string;
  tail(facts: Fields, list: string | null): string;
}

/** As the rest of the document is written: on one line, or indented. */
function styleOf(bytes: Buffer, pieces: readonly Piece[], list: string | null): Style {
  const starts = pieces
    .filter(({ role }) => role === "record")
    .map(({ offset }) => bytes.subarray(Math.max(0, offset - 64), offset).toString("latin1"));
  const margins = starts.flatMap((before) => /\n([ \t]*)$/.exec(before)?.[1] ?? []);
  const depth = list === null ? 1 : 2;
  const margin = margins[0];
  const unit = margin === undefined ? "" : margin.slice(0, Math.floor(margin.length / depth));
  const text = (value: unknown, level: number): string =>
    margin === undefined
      ? JSON.stringify(value)
      : JSON.stringify(value, null, unit).replaceAll("\n", `\n${unit.repeat(level)}`);
  const line = (level: number): string => (margin === undefined ? "" : `\n${unit.repeat(level)}`);
  const field = (key: string, value: string): string =>
    `${line(1)}${JSON.stringify(key)}:${margin === undefined ? "" : " "}${value}`;
  return {
    before: margin === undefined ? "" : `\n${margin}`,
    behind: line(depth - 1),
    record: (value) => text(value, depth),
    head: (facts, name) =>
      name === null
        ? "["
        : `{${[...Object.entries(facts).map(([key, value]) => field(key, text(value, 1))), field(name, "[")].join(",")}`,
    tail: (facts, name) =>
      name === null
        ? "]"
        : `${["]", ...Object.entries(facts).map(([key, value]) => field(key, text(value, 1)))].join(",")}${line(0)}}`,
  };
}

/** A second list of the same name would hide the records: for a reader, or for the agent. */
const withoutList = (facts: Fields, list: string | null): Fields =>
  Object.fromEntries(Object.entries(facts).filter(([key]) => key !== "" && key !== list));

const missingIn = (facts: Fields, needed: Fields): Fields =>
  Object.fromEntries(Object.entries(needed).filter(([key]) => !(key in facts)));

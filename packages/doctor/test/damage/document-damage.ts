import type { ProblemKind } from "../../src/index.ts";
import type { Random } from "./line-damage.ts";

/** Every kind of damage that a document of JSON with a list of messages takes, at a place of one's choice. */

export interface DocumentDamage {
  readonly name: string;
  /** What the diagnosis may call it. */
  readonly named: readonly ProblemKind[];
  /** Null if this document cannot have it. `lost`: messages that cannot be read any more, at least in part. */
  harm(document: TestDocument, random: Random): { readonly bytes: Buffer; readonly lost: readonly number[] } | null;
}

/** A document, and where its messages stand. */
export interface TestDocument {
  readonly bytes: Buffer;
  readonly list: string | null;
  /** From the first byte of each message to behind its last. */
  readonly places: readonly (readonly [from: number, to: number])[];
}

export function testDocument(text: string, list: string | null): TestDocument {
  const bytes = Buffer.from(text);
  const latin1 = bytes.toString("latin1");
  let at =
    list === null
      ? latin1.indexOf("[") + 1
      : /"messages":\s*\[/.exec(latin1)!.index + latin1.slice(latin1.indexOf('"messages"')).indexOf("[") + 1;
  const places: [number, number][] = [];
  for (;;) {
    while (/[\s,]/.test(latin1[at]!)) at++;
    if (latin1[at] !== "{") return { bytes, list, places };
    const from = at;
    let depth = 0;
    for (let isInString = false; ; at++) {
      const char = latin1[at];
      if (isInString) {
        if (char === "\\") at++;
        else if (char === '"') isInString = false;
      } else if (char === '"') isInString = true;
      else if (char === "{" || char === "[") depth++;
      else if (char === "}" || char === "]") {
        depth--;
        if (depth === 0) break;
      }
    }
    places.push([from, ++at]);
  }
}

const pick = (random: Random, count: number): number => Math.floor(random() * count);
const join = (...parts: readonly (Buffer | string)[]): Buffer => Buffer.concat(parts.map((part) => Buffer.from(part)));
/** The messages that a stretch touches. */
const touched = ({ places }: TestDocument, from: number, to: number): number[] =>
  places.flatMap(([start, end], index) => (start < to && end > from ? [index] : []));

export const DOCUMENT_DAMAGE: readonly DocumentDamage[] = [
  {
    name: "torn",
    named: ["torn-record", "unclosed-record"],
    harm(document, random) {
      const at = document.places[0]![0] + pick(random, document.bytes.length - document.places[0]![0] - 4);
      return { bytes: document.bytes.subarray(0, at), lost: touched(document, at, document.bytes.length) };
    },
  },
  {
    name: "a run of zero bytes",
    named: ["nul-run"],
    harm(document, random) {
      const from = pick(random, document.bytes.length);
      const to = Math.min(document.bytes.length, from + 1 + pick(random, 1_500));
      const bytes = Buffer.from(document.bytes).fill(0, from, to);
      return { bytes, lost: touched(document, from, to) };
    },
  },
  {
    name: "zero bytes behind the end",
    named: ["nul-run"],
    harm: ({ bytes }, random) => ({ bytes: join(bytes, Buffer.alloc(1 + pick(random, 9_000))), lost: [] }),
  },
  {
    name: "garbage between messages",
    named: ["garbage"],
    harm({ bytes, places }, random) {
      const at = places[pick(random, places.length)]![0];
      return { bytes: join(bytes.subarray(0, at), "<<<<<<< HEAD\n", bytes.subarray(at)), lost: [] };
    },
  },
  {
    name: "the rest of a longer file",
    named: ["garbage"],
    harm: ({ bytes }, random) => ({
      bytes: join(bytes, bytes.subarray(bytes.length - 3 - pick(random, bytes.length >> 1))),
      lost: [],
    }),
  },
  { name: "the file twice", named: ["doubled-file"], harm: ({ bytes }) => ({ bytes: join(bytes, bytes), lost: [] }) },
  {
    name: "byte order mark",
    named: ["byte-order-mark"],
    harm: ({ bytes }) => ({ bytes: join("\ufeff", bytes), lost: [] }),
  },
  {
    name: "CRLF",
    named: ["crlf"],
    harm: ({ bytes }) =>
      bytes.includes(10)
        ? { bytes: Buffer.from(bytes.toString("latin1").replaceAll("\n", "\r\n"), "latin1"), lost: [] }
        : null,
  },
  {
    name: "half a character",
    named: ["invalid-utf8"],
    harm(document, random) {
      const all = [...document.bytes.keys()].filter((at) => document.bytes[at]! >= 0xc0);
      if (all.length === 0) return null;
      const at = all[pick(random, all.length)]!;
      return {
        bytes: join(document.bytes.subarray(0, at), document.bytes.subarray(at + 1)),
        lost: touched(document, at, at + 1),
      };
    },
  },
  {
    name: "raw line break",
    named: ["raw-line-break"],
    harm(document, random) {
      const text = document.bytes.toString("latin1");
      const all = [...text.matchAll(/[^\\]\\n/g)].map(({ index }) => index + 1);
      if (all.length === 0) return null;
      const at = all[pick(random, all.length)]!;
      return { bytes: join(document.bytes.subarray(0, at), "\n", document.bytes.subarray(at + 2)), lost: [] };
    },
  },
  {
    name: "no closing brace",
    named: ["unclosed-record", "torn-record"],
    harm({ bytes, places }, random) {
      if (places.length < 2) return null;
      const at = places[pick(random, places.length - 1)]![1] - 1;
      return { bytes: join(bytes.subarray(0, at), bytes.subarray(at + 1)), lost: [] };
    },
  },
  {
    name: "no comma",
    named: ["glued-records"],
    harm({ bytes, places }, random) {
      if (places.length < 2) return null;
      const at = places[pick(random, places.length - 1)]![1];
      return { bytes: join(bytes.subarray(0, at), bytes.subarray(at + 1)), lost: [] };
    },
  },
  {
    name: "the end missing",
    named: ["unclosed-record"],
    harm: ({ bytes, places }) => ({ bytes: bytes.subarray(0, places.at(-1)![1]), lost: [] }),
  },
  {
    name: "the beginning missing",
    named: ["header-missing"],
    harm: ({ bytes, places }) => ({ bytes: bytes.subarray(places[0]![0]), lost: [] }),
  },
  {
    name: "half of the first message",
    named: ["header-damaged", "header-missing"],
    harm({ bytes, places }, random) {
      const [from, to] = places[0]!;
      return places.length < 2 ? null : { bytes: bytes.subarray(from + 1 + pick(random, to - from - 1)), lost: [0] };
    },
  },
  {
    name: "garbage instead of the beginning",
    named: ["header-damaged"],
    harm: ({ bytes, places }) => ({ bytes: join("\x01\x02garbage", bytes.subarray(places[0]![0])), lost: [] }),
  },
  {
    name: "a message twice",
    named: ["doubled-record"],
    harm({ bytes, places }, random) {
      const [from, to] = places[pick(random, places.length)]!;
      const message = bytes.subarray(from, to);
      // Only what has an id cannot be said twice.
      if (!/^\{\s*"id"/.test(message.toString("latin1"))) return null;
      return { bytes: join(bytes.subarray(0, to), ",", message, bytes.subarray(to)), lost: [] };
    },
  },
];

import fc from "fast-check";
import { HARMLESS, SAMPLES } from "./redact-samples.ts";

/** Beginnings, ends and glue of shapes, in any order: what a scanner could trip over. */
const SHARDS = [
  ...["sk-", "sk-ant-", "ghp_", "eyJ", "AKIA", "token=", "password: ", "://", ":", "@", "Bearer ", "Authorization: "],
  ...[
    "-----",
    "-----BEGIN RSA PRIVATE KEY-----",
    "-----END RSA PRIVATE KEY-----",
    "\\n",
    "\n",
    '"',
    "'",
    "=",
    "(",
    "[",
  ],
  ...["]", ".", "/", "--token ", "a1B2c3D4", "abcdefgh", "[redacted:secret]", "[redacted:", "é", "😀", "ya29.", "1//0"],
];

/**
 * Where one sample ends and the next begins without a break, the shapes say what belongs to what: those secrets are not
 * asked for.
 */
const BREAKS = [" ", "\n", '" "', "\n\n", ", "];

export interface Redactable {
  readonly text: string;
  readonly secrets: readonly string[];
}

const sample = fc.constantFrom(...SAMPLES).map(({ text, secret }) => ({ text, secrets: [secret] }));
const plain = fc
  .oneof(
    fc.constantFrom(...HARMLESS),
    fc.string({ unit: "binary", maxLength: 20 }),
    fc.array(fc.constantFrom(...SHARDS), { maxLength: 6 }).map((shards) => shards.join("")),
    fc.string({ unit: fc.constantFrom(..."aB3-_./=:@ \\n"), maxLength: 60 }),
  )
  .map((text) => ({ text, secrets: [] as string[] }));

const apart: fc.Arbitrary<Redactable> = fc
  .array(
    fc.tuple(
      fc.oneof(
        sample,
        fc.constantFrom(...HARMLESS).map((text) => ({ text, secrets: [] })),
      ),
      fc.constantFrom(...BREAKS),
    ),
    { maxLength: 5 },
  )
  .map((pieces) => ({
    text: pieces.map(([{ text }, glue]) => text + glue).join(""),
    secrets: pieces.flatMap(([{ secrets }]) => secrets),
  }));

const together: fc.Arbitrary<Redactable> = fc
  .array(fc.oneof(sample, plain, plain), { maxLength: 6 })
  .map((pieces) => ({ text: pieces.map(({ text }) => text).join(""), secrets: [] }));

export const redactable: fc.Arbitrary<Redactable> = fc.oneof(apart, together);

/** The same text in pieces, most of them as small as those of a stream. */
export function pieces(text: string, sizes: readonly number[]): string[] {
  const out: string[] = [];
  let at = 0;
  for (let i = 0; at < text.length; i++) {
    const size = sizes.length === 0 ? text.length : sizes[i % sizes.length]!;
    out.push(text.slice(at, at + size));
    at += size;
  }
  return out;
}

export const sizes: fc.Arbitrary<number[]> = fc.array(
  fc.oneof(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 400 })),
  {
    minLength: 1,
    maxLength: 8,
  },
);

import fc from "fast-check";
import { journal } from "../arbitraries.ts";
import { bytesOf, line, sealedLine, withoutNewline } from "../journals.ts";

/** One thing that can happen to bytes. Places are taken modulo the length. */
type Damage =
  | { readonly what: "overwrite"; readonly at: number; readonly length: number; readonly byte: number }
  | { readonly what: "remove"; readonly at: number; readonly length: number }
  | { readonly what: "insert"; readonly at: number; readonly bytes: Buffer }
  | { readonly what: "repeat"; readonly at: number; readonly length: number; readonly to: number }
  | { readonly what: "end"; readonly at: number };

const place = fc.nat(5_000);
const length = fc.integer({ min: 1, max: 300 });
const junk = fc.oneof(
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  fc
    .constantFrom("\n", "\r\n", "\ufeff", '{"seq":', ',"crc":"00000000"}', '{"foreign":true}\n', "[]")
    .map((text) => Buffer.from(text)),
  fc
    .tuple(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 0, max: 50 }))
    .map(([seq, synced]) => line(seq, { synced: Math.min(synced, seq - 1) })),
  fc.integer({ min: 1, max: 40 }).map((seq) => withoutNewline(line(seq, { unit: 3 }))),
  // As deep as a record may be, and one level more, in a record and not.
  fc
    .tuple(fc.integer({ min: 1, max: 40 }), fc.constantFrom(1_022, 1_023, 1_024, 1_025), fc.boolean())
    .map(([seq, levels, isRecord]) => (isRecord ? deepLine(seq, levels) : Buffer.from(`${nested(levels)}\n`))),
);

const nested = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`;
const deepLine = (seq: number, levels: number): Buffer =>
  sealedLine(`{"seq":${seq},"at":"2026-11-15T02:30:00.123Z","kind":"x","deep":${nested(levels)}`);

export const damage: fc.Arbitrary<Damage> = fc.oneof(
  fc.record({ what: fc.constant("overwrite" as const), at: place, length, byte: fc.constantFrom(0, 0x0a, 0xff, 0x41) }),
  fc.record({ what: fc.constant("remove" as const), at: place, length }),
  fc.record({ what: fc.constant("insert" as const), at: place, bytes: junk }),
  fc.record({ what: fc.constant("repeat" as const), at: place, length, to: place }),
  fc.record({ what: fc.constant("end" as const), at: place }),
);

export function harm(bytes: Buffer, damages: readonly Damage[]): Buffer {
  let result: Buffer = Buffer.from(bytes);
  for (const damage of damages) {
    const at = result.length === 0 ? 0 : damage.at % result.length;
    if (damage.what === "overwrite") result.fill(damage.byte, at, Math.min(result.length, at + damage.length));
    else if (damage.what === "remove") result = bytesOf(result.subarray(0, at), result.subarray(at + damage.length));
    else if (damage.what === "insert") result = bytesOf(result.subarray(0, at), damage.bytes, result.subarray(at));
    else if (damage.what === "end") result = result.subarray(0, at);
    else {
      const to = result.length === 0 ? 0 : damage.to % result.length;
      result = bytesOf(result.subarray(0, to), result.subarray(at, at + damage.length), result.subarray(to));
    }
  }
  return result;
}

/** A journal after some accidents; or no journal at all. */
export const harmed: fc.Arbitrary<Buffer> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.tuple(journal, fc.array(damage, { maxLength: 4 })).map(([{ bytes }, all]) => harm(bytes, all)),
  },
  { weight: 1, arbitrary: fc.array(junk, { maxLength: 8 }).map((parts) => bytesOf(...parts)) },
);

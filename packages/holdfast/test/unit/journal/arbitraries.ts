import fc from "fast-check";
import { Ledger } from "../../../src/journal/ledger.ts";
import type { NewRecord } from "../../../src/journal/record.ts";
import { line, withoutNewline } from "./journals.ts";

/** Payloads as nasty as JSON allows, and journals that hold them. */

const NASTY_TEXTS = [
  ',"crc":"00000000"}',
  '{"seq":1,"at":"","kind":"x"',
  withoutNewline(line(2, { text: "a record as text" })).toString(),
  "\ud800",
  "\udc00 alone",
  "😀".repeat(3),
  "\u0000\n\r\u2028\ufeff\u202e\u009b31m",
  "\\\"\\u0041'",
  "",
];

const NASTY_NAMES = ["__proto__", "constructor", "toJSON", "crc", "seq", "kind", "0", "17", "", "a b", "\ud800"];

/** Whole records and pieces of them, as objects: written compactly, their bytes are those of a line. */
const NASTY_OBJECTS: unknown[] = [
  { seq: 1 },
  { crc: "00000000" },
  { seq: 3, crc: "12345678" },
  JSON.parse(line(2, { text: "a record in a record", synced: 900 }).toString()),
  JSON.parse(line(999_999, { synced: 999_998 }).toString()),
  [JSON.parse(line(5).toString()), JSON.parse(line(6).toString())],
];

const text = fc.oneof(fc.string({ unit: "binary" }), fc.string(), fc.constantFrom(...NASTY_TEXTS));
// No backslash in a name: after `{"a":0,"\\":0}`, JSON.parse takes the name in `{"a":0,"\n":0}` for a backslash, too
// (nodejs/node#63785).
export const plainName = fc.string().filter((one) => !one.includes("\\"));
const name = fc.oneof(plainName, fc.constantFrom(...NASTY_NAMES));
const number = fc.oneof(fc.integer(), fc.double({ noNaN: true, noDefaultInfinity: true }).map(withoutNegativeZero));

/** Any JSON value. Objects are made as JSON.parse makes them, so that `__proto__` is a member of its own. */
export const json: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.constantFrom(null, true, false),
    number,
    text,
    fc.constantFrom(...NASTY_OBJECTS),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.array(fc.tuple(name, tie("value")), { maxLength: 4 }).map(objectOf),
  ),
})).value;

const RESERVED = new Set(["seq", "unit", "synced", "ahead", "at", "kind", "must", "key", "summary", "crc", "toJSON"]);

export const newRecord: fc.Arbitrary<NewRecord> = fc
  .record({
    kind: fc.oneof(fc.constantFrom("message", "note", "draft"), fc.string({ minLength: 1, unit: "binary" })),
    members: fc.array(
      fc.tuple(
        name.filter((member) => !RESERVED.has(member)),
        json,
      ),
      { maxLength: 3 },
    ),
    kindFirst: fc.boolean(),
  })
  .map(({ kind, members, kindFirst }) => {
    const own: [string, unknown] = ["kind", kind];
    return objectOf(kindFirst ? [own, ...members] : [...members, own]) as unknown as NewRecord;
  });

export interface Journal {
  readonly bytes: Buffer;
  readonly units: readonly { readonly first: number; readonly last: number; readonly end: number }[];
  /** The highest mark that was written. */
  readonly mark: number;
}

/** A journal as a writer leaves it: a segment's first records, then units, with syncs in between. */
export const journal: fc.Arbitrary<Journal> = fc
  .record({
    carried: fc.array(newRecord, { maxLength: 2 }),
    units: fc.array(fc.record({ records: fc.array(newRecord, { minLength: 1, maxLength: 3 }), synced: fc.boolean() }), {
      maxLength: 6,
    }),
  })
  .map(({ carried, units }) => written(carried, units));

/** A small journal of short lines, for tests that try every bit of it. */
export function written(
  carried: readonly NewRecord[],
  units: readonly { readonly records: readonly NewRecord[]; readonly synced: boolean }[],
): Journal {
  const ledger = new Ledger({ clock: () => Date.UTC(2026, 10, 15) });
  const parts: Buffer[] = [];
  const done: Journal["units"][number][] = [];
  let end = 0;
  let mark = 0;
  const commit = (prepared: ReturnType<Ledger["prepare"]>): void => {
    parts.push(Buffer.from(prepared.bytes));
    end += prepared.bytes.length;
    mark = prepared.mark ?? mark;
    done.push({ first: prepared.seq, last: prepared.last, end });
    ledger.commit(prepared);
  };
  commit(ledger.prepareSegment([{ kind: "segment", format: "1.1" }, ...carried]));
  ledger.setDurable(ledger.head);
  for (const { records, synced } of units) {
    commit(ledger.prepare(records));
    if (synced) ledger.setDurable(ledger.head);
  }
  return { bytes: Buffer.concat(parts), units: done, mark };
}

function objectOf(members: readonly (readonly [string, unknown])[]): Record<string, unknown> {
  const object = {};
  for (const [member, value] of members) {
    Object.defineProperty(object, member, { value, enumerable: true, configurable: true, writable: true });
  }
  return object;
}

/** JSON has no sign for zero: what comes back equals it, but is not the same to `toStrictEqual`. */
function withoutNegativeZero(value: number): number {
  return value === 0 ? 0 : value;
}

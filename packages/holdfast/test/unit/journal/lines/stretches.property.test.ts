import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { lineContentEnd, type Stretch, StretchSearch } from "../../../../src/journal/lines/stretches.ts";
import { holds, seedOf } from "../../../seed.ts";
import { bytesOf, line, nuls, withoutNewline } from "../journals.ts";

/** A line that is longer than a record may be is looked at in parts. What is found must not depend on that. */

const seed = seedOf(import.meta.url, "unit");
/** Instead of 64 MiB. */
const RECORD_MAX = 160;

const piece: fc.Arbitrary<Buffer> = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 99 }).map((seq) => withoutNewline(line(seq))) },
  {
    weight: 1,
    arbitrary: fc.integer({ min: 1, max: 99 }).map((seq) => withoutNewline(line(seq, { text: "x".repeat(60) }))),
  },
  {
    weight: 1,
    arbitrary: fc.integer({ min: 1, max: 9 }).map((seq) => withoutNewline(line(seq, { text: "x".repeat(200) }))),
  },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 300 }).map((count) => nuls(count)) },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom(
        '{"seq":',
        ',"crc":"00000000"}',
        ",",
        ":",
        "[",
        "]",
        "}",
        " ",
        "\r",
        "\t",
        '{"a":[',
        "garbage",
        "\ufeff",
      )
      .map((text) => Buffer.from(text)),
  },
);
const damagedLine = fc.array(piece, { maxLength: 14 }).map((pieces) => bytesOf(...pieces));

interface FoundLines {
  readonly at: readonly (readonly [head: number, end: number, seq: number])[];
  readonly taken: number;
}

function take(search: StretchSearch, found: readonly Stretch[], all: Stretch[]): void {
  for (const one of found) {
    all.push(one);
    search.taken = one.end;
  }
}

/** As a file is read: a window of `window` bytes at a time, of which all but the last RECORD_MAX are let go. */
function inParts(bytes: Buffer, offset: number, window: number, ended: boolean): FoundLines {
  const search = new StretchSearch(offset, RECORD_MAX);
  const all: Stretch[] = [];
  let from = 0;
  while (bytes.length - from > window) {
    const part = bytes.subarray(from, from + window);
    const until = search.isOver ? part.length : part.length - RECORD_MAX;
    if (!search.isOver) take(search, search.first(part, offset + from, until), all);
    from += until;
  }
  const last = bytes.subarray(from);
  take(search, search.last(last, offset + from, lineContentEnd(last), ended), all);
  return { at: all.map(({ head, end, record }) => [head, end, record.seq]), taken: search.taken };
}

describe("S2, S4: whole records in a damaged line", () => {
  test("are the same, whether the line is looked at as a whole or in parts", () => {
    let found = 0;
    let parts = 0;
    holds(
      fc.property(
        damagedLine,
        fc.nat(1000),
        fc.integer({ min: RECORD_MAX + 1, max: 3 * RECORD_MAX }),
        fc.boolean(),
        (bytes, offset, window, ended) => {
          const whole = inParts(bytes, offset, Number.POSITIVE_INFINITY, ended);
          expect(inParts(bytes, offset, window, ended)).toEqual(whole);
          found += whole.at.length;
          parts += bytes.length > window ? 1 : 0;
        },
      ),
      seed,
      3000,
    );
    expect(found, "records were found").toBeGreaterThan(300);
    expect(parts, "lines came in parts").toBeGreaterThan(300);
  });

  test("none is longer than a record may be", () => {
    const long = withoutNewline(line(1, { text: "x".repeat(RECORD_MAX) }));
    const short = withoutNewline(line(2));
    const { at } = inParts(bytesOf("garbage ", long, "garbage ", short), 0, Number.POSITIVE_INFINITY, true);
    expect(at.map(([, , seq]) => seq)).toEqual([2]);
  });
});

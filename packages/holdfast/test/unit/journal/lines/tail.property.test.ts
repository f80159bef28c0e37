import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodeLine } from "../../../../src/journal/lines/decode.ts";
import { type Scan, scanBytes } from "../../../../src/journal/lines/scan.ts";
import { decideTail, type Tail } from "../../../../src/journal/lines/tail.ts";
import { holds, seedOf } from "../../../seed.ts";
import { bytesOf, line } from "../journals.ts";
import { harmed } from "./damage.ts";

const seed = seedOf(import.meta.url, "unit");

/** The same behind a whole header, as the first segment of a journal has it. */
const header = line(1, { kind: "segment", synced: 1 });
const harmedLater = harmed.map((bytes) => bytesOf(header, bytes.subarray(bytes.indexOf("\n") + 1)));
const live = { sealed: false, previous: 0 };

/** What healing leaves (S8): the bytes up to the cut, ended by a newline. */
function healed(bytes: Buffer, tail: Tail): Buffer {
  return bytesOf(bytes.subarray(0, tail.cut ?? bytes.length), tail.unended ? "\n" : "");
}

function trimmed(bytes: Buffer, end: number): number {
  return bytes[end - 1] === 0x0a ? end - 1 : end;
}

function records(scan: Scan, tail: Tail): Scan["records"] {
  return scan.records.slice(0, tail.keep);
}

/**
 * What is found after healing. A whole record behind a fragment can be found only once its line has an end
 * (scan.test.ts), so the newline that healing adds may bring one back that had been given up for damaged. That is no
 * business of these tests.
 */
function found(after: Scan, tail: Tail): Scan["records"] {
  const givenUp = (at: number): boolean => tail.damaged.some(({ offset, end }) => offset <= at && at < end);
  return after.records.filter((_, i) => !givenUp(after.offsets[i]!));
}

describe("decideTail", () => {
  test("has an answer to any bytes, and the answer is in order", () => {
    holds(
      fc.property(harmed, fc.boolean(), fc.option(fc.nat(60), { nil: undefined }), (bytes, sealed, previous) => {
        const scan = scanBytes(bytes);
        const tail = decideTail(scan, { sealed, previous });
        const end = tail.cut ?? bytes.length;
        expect(end).toBeLessThanOrEqual(bytes.length);
        expect(tail.cut).not.toBe(0);
        expect(tail.keep).toBe(scan.offsets.filter((offset) => offset < end).length);
        expect(tail.next).toBeGreaterThan(scan.records[tail.keep - 1]?.seq ?? 0);
        expect(tail.next).toBeGreaterThan(tail.durable);
        for (const { offset, end: strayEnd } of tail.damaged) expect(offset < strayEnd && strayEnd <= end).toBe(true);
        for (const { from, to } of tail.missing) expect(from <= to && to < tail.next).toBe(true);
        if (sealed) expect(tail).toMatchObject({ cut: null, keep: scan.records.length });
      }),
      seed,
      800,
    );
  });

  test("every byte of what stays belongs to a record that counts or is reported", () => {
    holds(
      fc.property(harmed, (bytes) => {
        const scan = scanBytes(bytes);
        const tail = decideTail(scan, { sealed: false });
        const starts = [...scan.offsets.slice(0, tail.keep), ...tail.damaged.map(({ offset }) => offset)];
        starts.sort((a, b) => a - b);
        expect(new Set(starts).size).toBe(starts.length);
        if ((tail.cut ?? bytes.length) > 0) expect(starts[0]).toBe(0);
        for (const { end } of tail.damaged)
          expect(end === (tail.cut ?? bytes.length) || starts.includes(end)).toBe(true);
      }),
      seed,
      500,
    );
  });

  test("cuts nothing that is known durable: no record up to the mark, and nothing before durableEnd", () => {
    holds(
      fc.property(harmed, (bytes) => {
        const scan = scanBytes(bytes);
        const tail = decideTail(scan, { sealed: false });
        expect(scan.records.filter(({ seq }, i) => seq <= scan.mark && i >= tail.keep)).toEqual([]);
        expect(tail.durableEnd).toBeLessThanOrEqual(tail.cut ?? bytes.length);
        const firstAtRisk = scan.records.findIndex(({ seq }, i) => seq > tail.durable && i < tail.keep);
        if (firstAtRisk !== -1) expect(tail.durableEnd).toBe(scan.offsets[firstAtRisk]);
      }),
      seed,
      800,
    );
  });

  test("what healing leaves, sealed, reads the same again, and its numbers are not used twice", () => {
    let checked = 0;
    holds(
      fc.property(harmedLater, (bytes) => {
        const scan = scanBytes(bytes);
        const tail = decideTail(scan, live);
        const after = scanBytes(healed(bytes, tail));
        // What told a pasted line at the end from one of ours may have been cut off.
        const pasted = tail.damaged.some(
          (stray) => stray.after === tail.keep && decodeLine(bytes, stray.offset, trimmed(bytes, stray.end)) !== null,
        );
        if (pasted || found(after, tail).length < after.records.length) return;
        checked++;
        const again = decideTail(after, { sealed: true, previous: 0, before: tail.next });
        expect(isDeepStrictEqual(records(after, again), records(scan, tail))).toBe(true);
        expect(again).toMatchObject({ cut: null, durable: again.next - 1 });
        expect(again.next).toBeLessThanOrEqual(tail.next);
        expect(again.damaged.map(({ offset }) => offset)).toEqual(tail.damaged.map(({ offset }) => offset));
      }),
      seed,
      800,
    );
    expect(checked).toBeGreaterThan(400);
  });

  test("what a writer that was replaced still appends to a sealed segment does not count", () => {
    let checked = 0;
    holds(
      fc.property(harmedLater, fc.integer({ min: 1, max: 4 }), fc.boolean(), (bytes, count, isTorn) => {
        const scan = scanBytes(bytes);
        const tail = decideTail(scan, live);
        const kept = healed(bytes, tail);
        const sealed = { sealed: true, previous: 0, before: tail.next };
        const before = decideTail(scanBytes(kept), sealed);
        // Numbers that only the cut bytes told of are missing either way.
        if (before.next !== tail.next) return;
        const late = bytesOf(
          ...Array.from({ length: count }, (_, i) => line(tail.next + i, { unit: 2, synced: tail.next })),
        );
        const after = decideTail(scanBytes(bytesOf(kept, late.subarray(0, isTorn ? -7 : undefined))), sealed);
        checked++;
        expect(after).toMatchObject({ keep: before.keep, cut: null, next: before.next, missing: before.missing });
      }),
      seed,
      500,
    );
    expect(checked).toBeGreaterThan(300);
  });
});

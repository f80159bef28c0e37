import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Scan, scanBytes } from "../../../../src/journal/lines/scan.ts";
import { decideTail } from "../../../../src/journal/lines/tail.ts";
import { type JournalRecord, RECORD_BYTES_MAX } from "../../../../src/journal/record.ts";
import { holds, seedOf } from "../../../seed.ts";
import { type Journal, journal, written } from "../arbitraries.ts";
import { bytesOf, line, seqsOf } from "../journals.ts";

const seed = seedOf(import.meta.url, "unit");

/** The records that a reader or a writer takes from these bytes. */
function kept(bytes: Buffer, sealed = false): JournalRecord[] {
  const scan = scanBytes(bytes);
  return scan.records.slice(0, decideTail(scan, { sealed }).keep);
}

/** The last seq of the newest unit that is whole in the first `cut` bytes. The last newline is not needed (S2). */
function lastWhole({ units }: Journal, cut: number): number {
  return units.findLast(({ end }) => end - 1 <= cut)?.last ?? 0;
}

describe("any prefix of a journal decodes to a prefix of its units", () => {
  test("cut at any byte after the segment's birth", () => {
    holds(
      fc.property(journal, fc.array(fc.nat(), { minLength: 1, maxLength: 20 }), (journal, places) => {
        const whole = scanBytes(journal.bytes).records;
        const born = journal.units[0]!.end;
        for (const place of places) {
          const cut = born + (place % (journal.bytes.length - born + 1));
          const found = kept(journal.bytes.subarray(0, cut));
          expect(isDeepStrictEqual(found, whole.slice(0, lastWhole(journal, cut)))).toBe(true);
        }
      }),
      seed,
      300,
    );
  });

  test("cut at every byte of a small journal, also among its first records, which are whole by birth: records are a prefix", () => {
    const small = written(
      [{ kind: "epoch", reason: "clear" }],
      [
        { records: [{ kind: "a", text: "ü" }], synced: true },
        {
          records: [{ kind: "b" }, { kind: "c", inner: JSON.parse(line(4).toString()) }, { kind: "d" }],
          synced: false,
        },
      ],
    );
    const whole = scanBytes(small.bytes).records;
    for (let cut = 0; cut <= small.bytes.length; cut++) {
      const found = kept(small.bytes.subarray(0, cut));
      expect(found, `cut at ${cut}`).toEqual(whole.slice(0, found.length));
      if (cut >= small.units[0]!.end) expect(found, `cut at ${cut}`).toHaveLength(lastWhole(small, cut));
    }
  });
});

describe("C1: killed after every byte of the last record", () => {
  const first = bytesOf(line(1, { kind: "segment", synced: 1 }), line(2, { text: "before" }));

  test("also inside a 4-byte UTF-8 character: what was there before is there, and so is what is appended next", () => {
    const last = line(3, { text: "a😀b𝄞c", more: ["€", "ü"] });
    for (let cut = 0; cut < last.length - 1; cut++) {
      const bytes = bytesOf(first, last.subarray(0, cut));
      const tail = decideTail(scanBytes(bytes), { sealed: false });
      expect(tail, `torn after ${cut} bytes`).toMatchObject({ keep: 2, cut: cut === 0 ? null : first.length, next: 3 });
      expect(seqsOf(kept(bytesOf(bytes.subarray(0, tail.cut ?? bytes.length), line(3))))).toEqual([1, 2, 3]);
    }
  });

  test("also inside a line of several megabytes", () => {
    const last = line(3, { text: "é😀 text ".repeat(300_000) });
    for (const cut of [1, 7, 4096, 65_535, 1_000_001, 2_500_002, last.length - 20, last.length - 2]) {
      const tail = decideTail(scanBytes(bytesOf(first, last.subarray(0, cut))), { sealed: false });
      expect(tail).toMatchObject({ keep: 2, cut: first.length, next: 3 });
    }
    expect(seqsOf(kept(bytesOf(first, last.subarray(0, last.length - 1))))).toEqual([1, 2, 3]);
  });
});

describe("feeding in pieces", () => {
  /** As the folder store reads: what is left of an unfinished line is fed again with what follows. */
  function scanInPieces(bytes: Buffer, sizes: readonly number[]): Scan {
    const scan = new Scan();
    let read = 0;
    let offset = 0;
    for (let i = 0; read < bytes.length; i++) {
      read = Math.min(bytes.length, read + sizes[i % sizes.length]!);
      // A buffer with older bytes behind and other bytes before what counts.
      const window = bytesOf("xx\n", bytes.subarray(offset, read), '\n{"seq":\n');
      offset += scan.feed(window, 3, 3 + read - offset, offset) - 3;
    }
    scan.finish(bytes, offset, bytes.length, offset);
    return scan;
  }

  test("equals scanning as a whole, whatever the pieces and whatever the damage", () => {
    holds(
      fc.property(
        journal,
        fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 5 }),
        fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 }),
        fc.nat(),
        (journal, sizes, damage, end) => {
          const bytes = Buffer.from(journal.bytes.subarray(0, 1 + (end % journal.bytes.length)));
          for (const [at, value] of damage) bytes[at % bytes.length] = value;
          const whole = scanBytes(bytes);
          const pieces = scanInPieces(bytes, sizes);
          for (const member of [
            "records",
            "offsets",
            "strays",
            "inline",
            "mark",
            "end",
            "unended",
            "ragged",
          ] as const) {
            expect(isDeepStrictEqual(pieces[member], whole[member]), member).toBe(true);
          }
        },
      ),
      seed,
      300,
    );
  });

  test("bytes that are too long for a record are passed over, and what follows is read", () => {
    const scan = new Scan();
    scan.finish(line(1), scan.feed(line(1), 0, line(1).length, 0), line(1).length, line(1).length);
    scan.oversize(line(1).length, line(1).length + RECORD_BYTES_MAX);
    const rest = bytesOf("tail of it\n", line(3));
    scan.feed(rest, 0, rest.length, line(1).length + RECORD_BYTES_MAX);
    expect(seqsOf(scan.records)).toEqual([1, 3]);
    expect(scan.strays[0]).toMatchObject({ offset: line(1).length, end: line(1).length + RECORD_BYTES_MAX });
  });
});

describe("any single flipped bit is detected or harmless", () => {
  function flipped(bytes: Buffer, bit: number): Buffer {
    const copy = Buffer.from(bytes);
    copy[bit >> 3] = copy[bit >> 3]! ^ (1 << (bit & 7));
    return copy;
  }

  /** Index and bounds of the line that holds a byte. */
  function lineAt(scan: Scan, at: number): { index: number; start: number; end: number } {
    const index = scan.offsets.findLastIndex((offset) => offset <= at);
    return { index, start: scan.offsets[index]!, end: scan.offsets[index + 1] ?? scan.end };
  }

  function check(bytes: Buffer, bit: number): void {
    const before = scanBytes(bytes);
    const hit = lineAt(before, bit >> 3);
    const damaged = flipped(bytes, bit);

    // Once durable: at most the record that was hit is gone, and that is reported with its place.
    const scan = scanBytes(damaged);
    const tail = decideTail(scan, { sealed: true });
    const without = before.records.filter((_, i) => i !== hit.index);
    const identical = isDeepStrictEqual(scan.records, before.records);
    expect(tail.keep).toBe(scan.records.length);
    expect(identical || isDeepStrictEqual(scan.records, without), "only the record that was hit may be gone").toBe(
      true,
    );
    if (!identical || scan.strays.length > 0) {
      expect(tail.damaged.length).toBeGreaterThan(0);
      for (const { offset, end } of tail.damaged) expect(offset < hit.end && end > hit.start).toBe(true);
    }
    expect(tail.next).toBeGreaterThan(before.records.at(-1)!.seq);

    // The newest segment: what was known durable is there, and nothing else than records as they were, in order.
    const live = decideTail(scan, { sealed: false });
    const known = before.records.filter(({ seq }, i) => seq <= scan.mark && i !== hit.index);
    expect(live.keep).toBeGreaterThanOrEqual(known.length);
    const durableEnd = before.offsets[before.records.findIndex(({ seq }) => seq > scan.mark)] ?? before.end;
    expect(live.cut ?? before.end).toBeGreaterThanOrEqual(Math.min(durableEnd, hit.start));
  }

  test("every bit of a small journal", () => {
    const small = written(
      [{ kind: "session", title: "J*Z" }],
      [
        { records: [{ kind: "a", text: "😀" }], synced: true },
        {
          records: [
            { kind: "b", n: 1 },
            { kind: "c", inner: JSON.parse(line(6, { synced: 5 }).toString()) },
          ],
          synced: true,
        },
        { records: [{ kind: "closed" }], synced: true },
      ],
    );
    for (let bit = 0; bit < small.bytes.length * 8; bit++) check(small.bytes, bit);
  });

  test("any bit of any journal", () => {
    holds(
      fc.property(journal, fc.array(fc.nat(), { minLength: 1, maxLength: 20 }), (journal, bits) => {
        for (const bit of bits) check(journal.bytes, bit % (journal.bytes.length * 8));
      }),
      seed,
      200,
    );
  });
});

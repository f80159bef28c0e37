import { describe, expect, test } from "vitest";
import { decideTail, type Tail, type TailContext } from "../../../../src/journal/lines/tail.ts";
import { bytesOf, line, nuls, rotten, scanOf, split, withoutNewline } from "../journals.ts";

/** S3, S6, S7, S15: what the bytes of a segment mean. */

const FOREIGN = Buffer.from('{"level":"info","text":"a line of somebody else"}\n');
/** The first line of every segment here. Its own mark covers itself (S15). */
const first = line(1, { kind: "segment", synced: 1 });
const note = (seq: number): Buffer => line(seq);
/** A record that says: everything up to `mark` is durable. */
const marked = (seq: number, mark: number): Buffer => line(seq, { synced: mark });

function decide(parts: readonly Buffer[], context: TailContext = { sealed: false }): Tail {
  return decideTail(scanOf(...parts), context);
}

function lengthOf(...parts: readonly Buffer[]): number {
  return bytesOf(...parts).length;
}

describe("the decision table, row by row", () => {
  const kinds: [what: string, bytes: Buffer, why: "foreign" | "corrupt"][] = [
    ["valid JSON, not ours", FOREIGN, "foreign"],
    ["a line with a flipped bit", rotten(note(3)), "corrupt"],
    ["a line of NUL bytes", bytesOf(nuls(80), "\n"), "corrupt"],
    ["a blank line", Buffer.from("\n"), "corrupt"],
  ];

  describe.each(kinds)("%s", (_what, bytes, why) => {
    const before = [first, note(2)];

    test("in a sealed segment: damage, kept in place, nothing cut", () => {
      const tail = decide([...before, bytes, note(4), note(5)], { sealed: true });
      expect(tail).toMatchObject({ keep: 4, cut: null, next: 6, durable: 5, missing: [] });
      expect(tail.damaged).toMatchObject([
        { offset: lengthOf(...before), end: lengthOf(...before, bytes), why, seq: 3 },
      ]);
    });

    test("at the end of a sealed segment: it has taken a number", () => {
      expect(decide([...before, bytes], { sealed: true })).toMatchObject({ keep: 2, cut: null, next: 4, durable: 3 });
    });

    test("before the mark: damage, and reading goes on", () => {
      const tail = decide([...before, bytes, note(4), marked(5, 4)]);
      expect(tail).toMatchObject({ keep: 4, cut: null, next: 6, durable: 4 });
      expect(tail.damaged).toMatchObject([{ why, seq: 3 }]);
    });

    test("at the mark: damage, and reading goes on", () => {
      const tail = decide([...before, bytes, marked(4, 3)]);
      expect(tail).toMatchObject({ keep: 3, cut: null, next: 5, durable: 3 });
      expect(tail.damaged).toMatchObject([{ why, seq: 3 }]);
    });

    test("after the mark: torn, the journal ends there, whole lines behind it too", () => {
      const tail = decide([...before, bytes, marked(4, 2), note(5)]);
      expect(tail).toMatchObject({ keep: 2, cut: lengthOf(...before), next: 3, durable: 2, damaged: [], missing: [] });
    });

    test("after the mark, at the end", () => {
      expect(decide([...before, bytes])).toMatchObject({ keep: 2, cut: lengthOf(...before), next: 3, damaged: [] });
    });

    test("in place of the first line: damage, since a segment is born whole", () => {
      const tail = decide([bytes, note(2), note(3)]);
      expect(tail).toMatchObject({ keep: 2, cut: null, next: 4 });
      expect(tail.damaged).toMatchObject([{ offset: 0, end: bytes.length, why, seq: 1 }]);
      expect(decide([bytes])).toMatchObject({ keep: 0, cut: null, next: 2 });
      expect(decide([bytes], { sealed: false, previous: 7 })).toMatchObject({ keep: 0, cut: null, next: 9 });
    });
  });

  describe("an unfinished unit at the end", () => {
    const unit = [line(3, { unit: 3 }), note(4)];

    test("after the mark: torn from its first line", () => {
      const tail = decide([first, note(2), ...unit]);
      expect(tail).toMatchObject({ keep: 2, cut: lengthOf(first, note(2)), next: 3, damaged: [], missing: [] });
    });

    test("with its last line torn", () => {
      expect(decide([first, note(2), ...unit, note(5).subarray(0, 40)])).toMatchObject({
        keep: 2,
        cut: lengthOf(first, note(2)),
        next: 3,
      });
    });

    test("whose last line lacks only its newline is finished", () => {
      expect(decide([first, note(2), ...unit, withoutNewline(note(5))])).toMatchObject({
        keep: 5,
        cut: null,
        unended: true,
        next: 6,
      });
    });

    test("in a sealed segment: what is there counts", () => {
      expect(decide([first, note(2), ...unit], { sealed: true })).toMatchObject({ keep: 4, cut: null, next: 5 });
    });

    test("at or before the mark: what is there counts", () => {
      expect(decide([line(1, { kind: "segment", synced: 5 }), note(2), ...unit])).toMatchObject({ keep: 4, cut: null });
    });

    test("as the first line of a segment: it is not torn", () => {
      expect(decide([line(1, { unit: 3 })])).toMatchObject({ keep: 1, cut: null, next: 2 });
    });
  });
});

describe("S6: units", () => {
  test("a complete unit counts, and so does what follows it", () => {
    const parts = [first, line(2, { unit: 2 }), note(3), note(4)];
    expect(decide(parts)).toMatchObject({ keep: 4, cut: null, next: 5 });
  });

  test("a line that rots inside an old unit costs that line alone", () => {
    const tail = decide([first, line(2, { unit: 3 }), rotten(note(3)), note(4), marked(5, 4)]);
    expect(tail).toMatchObject({ keep: 4, cut: null, next: 6 });
    expect(tail.damaged).toMatchObject([{ seq: 3 }]);
  });

  test("a last line that rots inside an old unit costs that line alone", () => {
    const tail = decide([line(1, { kind: "segment", synced: 4 }), line(2, { unit: 3 }), note(3), rotten(note(4))]);
    expect(tail).toMatchObject({ keep: 3, cut: null, next: 5 });
    expect(tail.damaged).toMatchObject([{ seq: 4 }]);
  });

  test("a first line that rots inside an old unit costs that line alone", () => {
    const tail = decide([first, rotten(line(2, { unit: 3 })), note(3), note(4), marked(5, 4)]);
    expect(tail).toMatchObject({ keep: 4, cut: null });
  });

  test("a rotten line inside a unit that never was durable: the whole unit is torn", () => {
    const parts = [first, note(2), line(3, { unit: 3 }), rotten(note(4)), note(5), note(6)];
    expect(decide(parts)).toMatchObject({ keep: 2, cut: lengthOf(first, note(2)), next: 3, damaged: [] });
  });

  test("a unit behind a unit that is torn with it", () => {
    // The first of the two has lost its last line without a trace.
    const parts = [first, line(2, { unit: 3 }), note(3), line(5, { unit: 2 })];
    expect(decide(parts)).toMatchObject({ keep: 1, cut: first.length, next: 2 });
  });

  test("what stands before a torn unit and belongs to nothing is torn with it", () => {
    const parts = [first, note(2), nuls(7), line(3, { unit: 2 })];
    expect(decide(parts)).toMatchObject({ keep: 2, cut: lengthOf(first, note(2)), next: 3, unended: false });
  });
});

describe("S7: the mark", () => {
  test("in a later record, it turns a hole into corruption", () => {
    const hole = [first, note(2), rotten(note(3)), note(4)];
    expect(decide(hole)).toMatchObject({ keep: 2, next: 3, damaged: [] });
    expect(decide([...hole, marked(5, 2)])).toMatchObject({ keep: 2, next: 3, damaged: [] });
    expect(decide([...hole, marked(5, 3)])).toMatchObject({ keep: 4, cut: null, next: 6 });
  });

  test("several damaged lines around it: those at or before it are kept, the journal ends at the first one behind it", () => {
    const parts = [first, rotten(note(2)), rotten(note(3)), note(4), rotten(note(5)), rotten(note(6)), marked(7, 5)];
    const tail = decide(parts);
    expect(tail).toMatchObject({ keep: 2, cut: lengthOf(...parts.slice(0, 5)), next: 6, durable: 5 });
    expect(tail.damaged).toMatchObject([{ seq: 2 }, { seq: 3 }, { seq: 5 }]);
  });

  test("one line in several pieces is not more than one line: what follows it is not cut", () => {
    // A flipped bit can make a newline of a letter. The record behind is the only one that carries the mark.
    for (const pieces of [split(note(3)), bytesOf("a\nb\nc\nd\n")]) {
      const tail = decide([first, note(2), pieces, marked(4, 3), note(5)]);
      expect(tail).toMatchObject({ keep: 4, cut: null, next: 6 });
      expect(tail.damaged.length).toBeGreaterThan(1);
    }
  });

  test("the first line of a segment in several pieces", () => {
    const header = split(line(11, { kind: "segment" }));
    expect(decide([header, note(12)], { sealed: false, previous: 10 })).toMatchObject({ keep: 1, cut: null, next: 13 });
    expect(decide([split(line(1, { kind: "segment" })), note(2)])).toMatchObject({ keep: 1, cut: null, next: 3 });
  });

  test.each([
    ["a blank line", Buffer.from("\n")],
    ["a line of somebody else", FOREIGN],
    ["a line twice", note(2)],
    ["a byte-order mark", Buffer.from("\ufeff")],
    ["a line of another journal", line(900, { synced: 899 })],
  ])(
    "after the mark, %s between two records that follow each other is damage, and no tear: nothing is missing there",
    (_what, bytes) => {
      const tail = decide([first, note(2), bytes, note(3), note(4)]);
      expect(tail).toMatchObject({ keep: 4, cut: null, next: 5, missing: [], durable: 1 });
      expect(tail.damaged).toMatchObject([{ offset: lengthOf(first, note(2)), end: lengthOf(first, note(2), bytes) }]);
    },
  );

  test("a flipped newline after the mark costs neither of its neighbours", () => {
    const bytes = bytesOf(first, note(2), note(3));
    bytes[lengthOf(first, note(2)) - 1] = 0x0b;
    expect(decide([bytes])).toMatchObject({ keep: 3, cut: null, next: 4 });
  });

  test("goes with what is cut off, if it stands nowhere else: what stays is known durable because it is sealed", () => {
    // Line 3 is rotten, line 5 is torn, and only line 6 says that 3 and 4 were durable.
    const parts = [first, note(2), rotten(note(3)), note(4), bytesOf(nuls(80), "\n"), marked(6, 4)];
    expect(decide(parts)).toMatchObject({ keep: 3, next: 5, durable: 4 });
    const healed = scanOf(...parts.slice(0, 4));
    expect(decideTail(healed, { sealed: false }), "not sealed, line 4 would be lost").toMatchObject({ keep: 2 });
    expect(decideTail(healed, { sealed: true })).toMatchObject({ keep: 3, cut: null, next: 5, durable: 4 });
  });

  test("all that follows a tear was never known durable, whatever it says of itself", () => {
    const tail = decide([first, note(2), rotten(note(3)), marked(4, 2), rotten(note(5)), note(6)]);
    expect(tail).toMatchObject({ keep: 2, next: 3, durable: 2, damaged: [], missing: [] });
  });
});

describe("S15: the first records of a segment carry a mark ahead of themselves", () => {
  const carried = [line(21, { kind: "segment", synced: 23 }), line(22, { kind: "epoch" }), line(23, { synced: 23 })];

  test("whole: nothing is to be said", () => {
    const tail = decide(carried);
    expect(tail).toMatchObject({ keep: 3, cut: null, next: 24, durable: 23, damaged: [], missing: [] });
    expect(tail.durableEnd).toBe(lengthOf(...carried));
  });

  test.each([0, 1, 2])("line %i damaged: that record is lost, and nothing is cut", (i) => {
    const parts = carried.with(i, rotten(carried[i]!));
    const tail = decide([...parts, note(24)]);
    expect(tail).toMatchObject({ keep: 3, cut: null, next: 25, missing: [] });
    expect(tail.damaged).toMatchObject([{ seq: 21 + i }]);
  });

  test("cut short by somebody: what is missing is named, and its numbers are not used again", () => {
    const tail = decide(carried.slice(0, 1));
    expect(tail).toMatchObject({ keep: 1, cut: null, next: 24, durable: 23, missing: [{ from: 22, to: 23 }] });
  });

  test("cut short inside a line", () => {
    const tail = decide([carried[0]!, carried[1]!.subarray(0, 30)]);
    expect(tail).toMatchObject({ keep: 1, cut: null, unended: true, next: 24, missing: [{ from: 23, to: 23 }] });
    expect(tail.damaged).toMatchObject([{ seq: 22 }]);
  });

  test("a record behind them is torn as usual", () => {
    expect(decide([...carried, note(24).subarray(0, 30)])).toMatchObject({
      keep: 3,
      cut: lengthOf(...carried),
      next: 24,
    });
  });
});

describe("S3: numbers", () => {
  test("an empty segment begins at 1, or after the segment before", () => {
    expect(decide([])).toMatchObject({ keep: 0, cut: null, next: 1, durable: 0, durableEnd: 0, unended: false });
    expect(decide([], { sealed: false, previous: 41 })).toMatchObject({ next: 42 });
  });

  test("damaged lines that stay in place have taken numbers", () => {
    const tail = decide([first, rotten(note(2)), FOREIGN], { sealed: true });
    expect(tail).toMatchObject({ keep: 1, next: 4 });
    expect(tail.damaged).toMatchObject([{ seq: 2 }, { seq: 3 }]);
  });

  test("a gap is accepted and reported as missing", () => {
    expect(decide([first, note(2), note(7), marked(8, 7)])).toMatchObject({
      keep: 4,
      cut: null,
      next: 9,
      missing: [{ from: 3, to: 6 }],
      damaged: [],
    });
  });

  test("a gap with fewer damaged lines in it than numbers: the rest is missing, and no line is given a number by guess", () => {
    const tail = decide([first, note(2), bytesOf(nuls(300), "\n"), note(6), marked(7, 6)]);
    expect(tail).toMatchObject({ keep: 4, cut: null, next: 8, missing: [{ from: 4, to: 5 }] });
    expect(tail.damaged).toHaveLength(1);
    expect(tail.damaged[0]).not.toHaveProperty("seq");
  });

  test("a gap to the segment before is missing too", () => {
    const tail = decide([line(15, { kind: "segment", synced: 15 })], { sealed: false, previous: 12 });
    expect(tail).toMatchObject({ keep: 1, next: 16, missing: [{ from: 13, to: 14 }] });
  });

  test("without knowledge of the segment before, numbers begin where the first whole record says", () => {
    const tail = decide([rotten(line(40)), line(41, { synced: 40 })]);
    expect(tail).toMatchObject({ keep: 1, next: 42, missing: [] });
    expect(tail.damaged).toMatchObject([{ seq: 40 }]);
  });

  test("a line that does not count takes no number: a damaged line behind it is still at the mark", () => {
    const tail = decide([line(1, { kind: "segment", synced: 3 }), note(2), note(2), rotten(note(3))]);
    expect(tail).toMatchObject({ keep: 2, cut: null, next: 4 });
    expect(tail.damaged.map(({ seq }) => seq)).toEqual([undefined, 3]);
  });

  test("what stands beside a whole record in its line takes no number", () => {
    const tail = decide([first, bytesOf(nuls(40), note(2)), note(3)]);
    expect(tail).toMatchObject({ keep: 3, cut: null, next: 4, missing: [] });
    expect(tail.damaged[0]).not.toHaveProperty("seq");
  });
});

describe("the last newline", () => {
  test("of a whole record is missing: it counts, and the newline is to be added", () => {
    expect(decide([first, withoutNewline(note(2))])).toMatchObject({ keep: 2, cut: null, unended: true, next: 3 });
  });

  test("is missing before a tear in the same line: it is to be added after the cut", () => {
    const tail = decide([first, withoutNewline(note(2)), Buffer.from("garbage")]);
    expect(tail).toMatchObject({ keep: 2, cut: lengthOf(first, note(2)) - 1, unended: true, next: 3 });
  });

  test("was hit by a flipped bit at the very end of a journal", () => {
    const tail = decide([first, withoutNewline(note(2)), Buffer.from("\x0b")]);
    expect(tail).toMatchObject({ keep: 2, cut: lengthOf(first, note(2)) - 1, unended: true, next: 3 });
  });

  test("is missing before a torn unit that is glued to it", () => {
    const tail = decide([first, withoutNewline(note(2)), line(3, { unit: 2 })]);
    expect(tail).toMatchObject({ keep: 2, cut: lengthOf(first, note(2)) - 1, unended: true, next: 3 });
  });

  test("is missing behind damage that stays in place: else the next record would be glued to it", () => {
    const parts = [line(1, { kind: "segment", synced: 2 }), note(2).subarray(0, 30)];
    expect(decide(parts)).toMatchObject({ keep: 1, cut: null, unended: true, next: 3 });
  });

  test("is there after a cut at the beginning of a line", () => {
    expect(decide([first, note(2).subarray(0, 30)])).toMatchObject({ keep: 1, cut: first.length, unended: false });
  });
});

describe("durableEnd: where the bytes begin that are to be written again (S9)", () => {
  test("behind the last record that is known durable", () => {
    const parts = [first, note(2), note(3), marked(4, 3), note(5)];
    expect(decide(parts)).toMatchObject({ durable: 3, durableEnd: lengthOf(first, note(2), note(3)), next: 6 });
  });

  test("at the beginning, if nothing is known durable", () => {
    expect(decide([note(1), note(2)])).toMatchObject({ durable: 0, durableEnd: 0 });
  });

  test("at the end, if everything is", () => {
    expect(decide([first, note(2)], { sealed: true }).durableEnd).toBe(lengthOf(first, note(2)));
    expect(decide([first]).durableEnd).toBe(first.length);
  });

  test("not behind the cut", () => {
    const tail = decide([first, note(2), marked(3, 2), nuls(50)]);
    expect(tail).toMatchObject({ cut: lengthOf(first, note(2), marked(3, 2)), durableEnd: lengthOf(first, note(2)) });
  });
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { scanBytes } from "../../../../../src/journal/lines/scan.ts";
import { decideTail } from "../../../../../src/journal/lines/tail.ts";
import type { JournalRecord } from "../../../../../src/journal/record.ts";
import { type PartsContext, readParts } from "../../../../../src/stores/folder/files/read-parts.ts";
import type { Source } from "../../../../../src/stores/folder/files/segment.ts";
import { bytesOf, line, withoutNewline } from "../../../journal/journals.ts";
import { damage, harm } from "../../../journal/lines/damage.ts";

/** Parts this small have several of the records, one, or a piece of one. */
const PART_BYTES = 256;

function sourceOf(bytes: Buffer): Source {
  return {
    packed: null,
    size: () => bytes.length,
    read: (into, offset, length, position) => bytes.copy(into, offset, position, position + length),
    close: () => undefined,
  };
}

async function partsOf(bytes: Buffer, context: PartsContext) {
  const parts = readParts(sourceOf(bytes), context, PART_BYTES);
  const records: JournalRecord[] = [];
  let part = await parts.next();
  for (; !part.done; part = await parts.next()) records.push(...part.value);
  return { records, last: part.value };
}

/**
 * A segment as its writer leaves it: a header, then units of some records, some with the mark of a sync. In a few of
 * them another writer has begun a unit inside a unit.
 */
const unit = fc.record({
  size: fc.integer({ min: 1, max: 5 }),
  inside: fc.oneof(
    { weight: 9, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: fc.integer({ min: 2, max: 9 }) },
  ),
  chars: fc.nat(600),
  synced: fc.boolean(),
});
const segment = fc
  .record({ first: fc.integer({ min: 1, max: 30 }), units: fc.array(unit, { maxLength: 30 }) })
  .map(({ first, units }) => {
    let seq = first;
    const lines = [line(seq, { kind: "segment", segment: 1 })];
    for (const { size, inside, chars, synced } of units)
      for (let i = 0; i < size; i++) {
        seq += 1;
        const begins = i === 0 ? { unit: size } : i === 1 && inside !== null ? { unit: inside } : {};
        lines.push(line(seq, { ...begins, ...(synced ? { synced: seq - 1 } : {}), text: "x".repeat(chars) }));
      }
    return { first, last: seq, bytes: bytesOf(...lines) };
  });

const cases = fc.record({
  segment,
  damages: fc.oneof(
    { weight: 1, arbitrary: fc.constant([]) },
    { weight: 2, arbitrary: fc.array(damage, { maxLength: 3 }) },
  ),
  from: fc.nat(160),
  knowsPrevious: fc.boolean(),
  sealed: fc.boolean(),
  before: fc.option(fc.integer({ min: 1, max: 200 }), { nil: undefined }),
});

test("P9: what is read in parts is the beginning of what the whole segment gives, whatever happened to it", async () => {
  let whole = 0;
  await fc.assert(
    fc.asyncProperty(cases, async ({ segment: { first, bytes }, damages, from, knowsPrevious, sealed, before }) => {
      const harmed = harm(bytes, damages);
      const previous = knowsPrevious ? first - 1 : undefined;
      const scan = scanBytes(harmed);
      const tail = decideTail(scan, { sealed, before, previous });
      const isWanted = ({ seq }: JournalRecord): boolean => seq >= from;
      const expected = scan.records.slice(0, tail.keep).filter(isWanted);
      // Not judged: someone pasted a record of another journal, with a number that damage left free. Read from the
      // middle, this journal's own record counts.
      const own = new Set(scanBytes(bytes).records.map(({ crc }) => crc));
      fc.pre(scan.records.every(({ crc }) => own.has(crc)));
      const { records, last } = await partsOf(harmed, { previous, before, from, sealed });
      const read = records.filter(isWanted);
      if (last === null) expect(read).toEqual(expected.slice(0, read.length));
      else {
        whole += 1;
        expect(read).toEqual(expected);
        expect(last).toBe(tail.next - 1);
      }
    }),
    { numRuns: 3000 },
  );
  // Segments without damage are the usual case, and none of them is read twice.
  expect(whole).toBeGreaterThan(300);
});

test("records near the end of a long segment are found without reading the rest", async () => {
  const lines = Array.from({ length: 5000 }, (_, i) => line(i + 1, i === 0 ? { kind: "segment" } : { synced: i }));
  const bytes = bytesOf(...lines);
  let taken = 0;
  const source = sourceOf(bytes);
  const counted: Source = {
    ...source,
    read: (...args) => {
      taken += 1;
      return source.read(...args);
    },
  };
  const parts = readParts(counted, { previous: undefined, before: undefined, from: 4990, sealed: false }, PART_BYTES);
  const records: JournalRecord[] = [];
  for await (const part of parts) records.push(...part);
  expect(records.filter(({ seq }) => seq >= 4990).map(({ seq }) => seq)).toEqual([
    4990, 4991, 4992, 4993, 4994, 4995, 4996, 4997, 4998, 4999, 5000,
  ]);
  expect(taken).toBeLessThan(50);
});

test("lines that someone pasted at the end do not hide the records before them", async () => {
  const lines = Array.from({ length: 200 }, (_, i) => line(i + 1, i === 0 ? { kind: "segment" } : { synced: i }));
  for (const [from, to] of [
    [0, 100],
    [50, 200],
    [190, 195],
    [0, 200],
  ] as const) {
    const bytes = bytesOf(...lines, ...lines.slice(from, to));
    for (let wanted = 1; wanted <= 200; wanted += 7) {
      const { records, last } = await partsOf(bytes, {
        previous: undefined,
        before: undefined,
        from: wanted,
        sealed: false,
      });
      const seqs = records.map(({ seq }) => seq).filter((seq) => seq >= wanted);
      expect(seqs).toEqual(Array.from({ length: seqs.length }, (_, i) => wanted + i));
      // Otherwise the rest is judged with the whole.
      if (last !== null) expect([seqs.at(-1), last]).toEqual([200, 200]);
    }
  }
});

test("a last line without its newline is left to the one who judges the whole", async () => {
  const bytes = bytesOf(line(1, { kind: "segment" }), withoutNewline(line(2)));
  expect(await partsOf(bytes, { previous: 0, before: undefined, from: 1, sealed: false })).toMatchObject({
    records: [{ seq: 1 }],
    last: null,
  });
});

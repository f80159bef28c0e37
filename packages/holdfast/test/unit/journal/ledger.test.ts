import { describe, expect, test } from "vitest";
import type { Summariser } from "../../../src/journal/contract.ts";
import { Ledger, type Prepared } from "../../../src/journal/ledger.ts";
import { scanBytes } from "../../../src/journal/lines/scan.ts";
import type { JournalRecord, Json, NewRecord } from "../../../src/journal/record.ts";
import { line, seqsOf } from "./journals.ts";

const NOON = Date.UTC(2026, 10, 15, 12);
const HOUR_MS = 3_600_000;

/** Counts records and keeps the last title, as a row for a list. */
const counting: Summariser = {
  add(row, record) {
    const { count = 0, title = null } = (row ?? {}) as { count?: number; title?: Json };
    return { count: count + 1, title: (record["title"] as Json | undefined) ?? title };
  },
  carries: (record) => record.kind === "turn.ended",
};

function decoded(prepared: Prepared): JournalRecord[] {
  return scanBytes(Buffer.from(prepared.bytes)).records;
}

/** Prepares, counts, and returns what was written. */
function append(ledger: Ledger, records: NewRecord | readonly NewRecord[], key?: string): JournalRecord[] {
  const prepared = ledger.prepare(Array.isArray(records) ? records : [records as NewRecord], key);
  const written = decoded(prepared);
  ledger.commit(prepared);
  return written;
}

function newLedger(summariser?: Summariser): Ledger {
  return new Ledger({ clock: () => NOON, summariser });
}

test("a summariser is given the records that concern its row, and no others", () => {
  const given: string[] = [];
  const choosy: Summariser = {
    ...counting,
    add: (row, record) => {
      given.push(`${record.seq} ${record.kind}`);
      return counting.add(row, record);
    },
    concerns: (_row, { kind }) => kind !== "draft",
  };
  const ledger = newLedger(choosy);
  append(ledger, [{ kind: "a" }, { kind: "draft" }]);
  append(ledger, { kind: "draft" });
  const [ended] = append(ledger, { kind: "turn.ended" });
  expect(given).toEqual(["1 a", "4 turn.ended"]);
  expect(ended!.summary).toEqual({ count: 2, title: null });
  expect(ledger.row).toEqual({ count: 2, title: null });
});

describe("numbers", () => {
  test("count from 1, one for each record of a unit", () => {
    const ledger = newLedger();
    expect(seqsOf(append(ledger, { kind: "a" }))).toEqual([1]);
    const unit = ledger.prepare([{ kind: "b" }, { kind: "c" }, { kind: "d" }]);
    expect(unit).toMatchObject({ seq: 2, last: 4 });
    expect(decoded(unit).map(({ seq, unit }) => [seq, unit])).toEqual([
      [2, 3],
      [3, undefined],
      [4, undefined],
    ]);
    ledger.commit(unit);
    expect(ledger.head).toBe(4);
  });

  test("go on behind what is in the journal, and behind damaged lines that have taken numbers", () => {
    const ledger = newLedger();
    ledger.absorb(record(7));
    expect(ledger.head).toBe(7);
    ledger.continueAt(10);
    expect(ledger.prepare([{ kind: "a" }])).toMatchObject({ seq: 10, last: 10 });
  });

  test("nothing counts before it is committed: not the number, the key, the mark, nor the row", () => {
    const ledger = newLedger(counting);
    append(ledger, { kind: "a", title: "first" });
    ledger.setDurable(1);
    const before = ledger.row;
    const lost = ledger.prepare([{ kind: "b", title: "second" }, { kind: "c" }], "key");
    expect(lost).toMatchObject({ seq: 2, last: 3, mark: 1 });
    expect(ledger).toMatchObject({ head: 1, row: before });
    expect(ledger.find("key")).toBeUndefined();
    const again = ledger.prepare([{ kind: "d" }]);
    expect(again).toMatchObject({ seq: 2, last: 2, mark: 1 });
    expect(decoded(again)[0]).toMatchObject({ seq: 2, synced: 1, kind: "d" });
  });

  test("a refused record changes nothing", () => {
    const ledger = newLedger(counting);
    append(ledger, { kind: "a" });
    for (const bad of [[{ kind: "b" }, { kind: "c", value: Number.NaN }], [{ kind: "b", seq: 5 }], []]) {
      expect(() => ledger.prepare(bad as NewRecord[], "key")).toThrow();
    }
    expect(ledger).toMatchObject({ head: 1, row: { count: 1, title: null } });
    expect(seqsOf(append(ledger, { kind: "d" }))).toEqual([2]);
  });
});

describe("S7: the mark", () => {
  test("is written when it has grown, once", () => {
    const ledger = newLedger();
    const marks: (number | undefined)[] = [];
    const mark = (): void => {
      marks.push(append(ledger, { kind: "a" })[0]!.synced);
    };
    mark();
    mark();
    ledger.setDurable(2);
    mark();
    mark();
    ledger.setDurable(1);
    expect(ledger.durable).toBe(2);
    mark();
    ledger.setDurable(5);
    mark();
    expect(marks).toEqual([undefined, undefined, 2, undefined, undefined, 5]);
    expect(ledger.durable).toBe(5);
  });

  test("is not taken for written when the write failed", () => {
    const ledger = newLedger();
    append(ledger, { kind: "a" });
    ledger.setDurable(1);
    ledger.prepare([{ kind: "lost" }]);
    expect(append(ledger, { kind: "b" })[0]).toMatchObject({ seq: 2, synced: 1 });
  });

  test("that stands in the journal already is not repeated; one that went with a cut tail is", () => {
    const ledger = newLedger();
    for (const seq of [1, 2, 3]) ledger.absorb(record(seq, seq === 3 ? { synced: 2 } : {}));
    ledger.setDurable(2);
    expect(ledger.prepare([{ kind: "a" }]).mark).toBeUndefined();
    ledger.setDurable(3);
    expect(ledger.prepare([{ kind: "a" }]).mark).toBe(3);
  });

  test("of a segment's first records is ahead of them, on the first and the last one (S15)", () => {
    const ledger = newLedger();
    ledger.absorb(record(9));
    const prepared = ledger.prepareSegment([{ kind: "segment" }, { kind: "epoch" }, { kind: "message" }]);
    expect(decoded(prepared).map(({ seq, synced, unit }) => [seq, synced, unit])).toEqual([
      [10, 12, undefined],
      [11, undefined, undefined],
      [12, 12, undefined],
    ]);
    ledger.commit(prepared);
    ledger.setDurable(12);
    expect(append(ledger, { kind: "a" })[0]).not.toHaveProperty("synced");
  });
});

describe("S11b: keys", () => {
  test("are found after the append, with the numbers of the whole unit", () => {
    const ledger = newLedger();
    append(ledger, { kind: "a" });
    expect(append(ledger, [{ kind: "b" }, { kind: "c" }], "k")[0]).toMatchObject({ key: "k", unit: 2 });
    expect(ledger.find("k")).toEqual({ seq: 2, last: 3 });
    expect(ledger.find("other")).toBeUndefined();
  });

  test("are found after reopening", () => {
    const ledger = newLedger();
    ledger.absorb(record(4, { key: "one" }));
    ledger.absorb(record(5, { key: "unit", unit: 3 }));
    expect(ledger.find("one")).toEqual({ seq: 4, last: 4 });
    expect(ledger.find("unit")).toEqual({ seq: 5, last: 7 });
  });

  test("256 of them outlive their epoch, the newest ones, also through a journal and a second epoch", () => {
    const ledger = newLedger();
    for (let i = 1; i <= 300; i++) append(ledger, { kind: "a" }, `key ${i}`);
    const carried = ledger.keysToCarry(undefined, 0);
    expect(carried).toHaveLength(256);
    ledger.forgetOldKeys(undefined, { seq: 301, last: 301 });
    expect(ledger.find("key 44")).toBeUndefined();
    expect(ledger.find("key 45")).toEqual({ seq: 45, last: 45 });

    const header = decoded(ledger.prepareSegment([{ kind: "segment", keys: carried }]))[0]!;
    const reopened = newLedger();
    reopened.absorb(header);
    expect(reopened.find("key 44")).toBeUndefined();
    expect(reopened.find("key 45")).toEqual({ seq: 45, last: 45 });
    append(reopened, { kind: "b" }, "newest");
    expect(reopened.keysToCarry(undefined, 0)).toEqual([...(carried as unknown[]).slice(1), ["newest", 302, 302]]);
  });

  test("of any text: a line that holds one is read back with it", () => {
    for (const key of ["", "\ud800", '","crc":"00000000"}\n', "__proto__", "😀"]) {
      const ledger = newLedger();
      expect(append(ledger, { kind: "a" }, key)[0]?.key).toBe(key);
      expect(ledger.find(key)).toEqual({ seq: 1, last: 1 });
    }
  });

  test.each([
    ["no list", 5],
    ["a list of other things", [null, 7, "k", ["k"], ["k", "1", "1"], { key: "k" }]],
  ])("a header of a later minor version that holds %s under `keys` is passed over (C21)", (_what, keys) => {
    const ledger = newLedger();
    ledger.absorb(record(1, { kind: "segment", keys }));
    expect(ledger.head).toBe(1);
    expect(ledger.keysToCarry(undefined, 0)).toEqual([]);
  });
});

describe("S20: the summary", () => {
  test("stands on `segment`, on `closed`, and where the summariser says, as of that record", () => {
    const ledger = newLedger(counting);
    const first = ledger.prepareSegment([{ kind: "segment" }, { kind: "session", title: "a title" }]);
    expect(decoded(first).map(({ summary }) => summary)).toEqual([{ count: 1, title: null }, undefined]);
    ledger.commit(first);
    const turn = append(ledger, [{ kind: "message" }, { kind: "turn.ended" }, { kind: "note" }]);
    expect(turn.map(({ summary }) => summary)).toEqual([undefined, { count: 4, title: "a title" }, undefined]);
    expect(append(ledger, { kind: "closed" })[0]?.summary).toEqual({ count: 6, title: "a title" });
    expect(ledger.row).toEqual({ count: 6, title: "a title" });
  });

  test("is carried on from the newest one in the journal: what lies before it is not needed", () => {
    const ledger = newLedger(counting);
    ledger.absorb(record(40, { kind: "segment", summary: { count: 40, title: "old" } }));
    ledger.absorb(record(41, { title: "new" }));
    expect(ledger.row).toEqual({ count: 41, title: "new" });
  });

  test("is carried on from the newest usable one, however many records are behind it", () => {
    const read = (row: Json): Json => ((row as { title?: string }).title === "unusable" ? null : row);
    const ledger = newLedger({ ...counting, read });
    ledger.absorb(record(40, { summary: { count: 40, title: "usable" } }));
    for (let seq = 41; seq <= 400; seq++)
      ledger.absorb(record(seq, seq % 100 === 0 ? { summary: { count: seq, title: "unusable" } } : {}));
    expect(ledger.row).toEqual({ count: 400, title: "usable" });
  });

  test("stays as it is when the records that were read are changed", () => {
    const ledger = newLedger(counting);
    const last = record(41, { title: "new" }) as { title?: string } & JournalRecord;
    ledger.absorb(record(40, { summary: { count: 40, title: "old" } }));
    ledger.absorb(last);
    ledger.continueAt(42);
    last.title = "changed";
    expect(ledger.row).toEqual({ count: 41, title: "new" });
  });

  test("after reopening is what it was before", () => {
    const writer = newLedger(counting);
    const written = [
      ...append(writer, { kind: "a", title: "x" }),
      ...append(writer, [{ kind: "b" }, { kind: "turn.ended" }]),
      ...append(writer, { kind: "c" }),
    ];
    const reader = newLedger(counting);
    for (const one of written) reader.absorb(one);
    expect(reader.row).toEqual(writer.row);
    expect(reader).toMatchObject({ head: writer.head, at: writer.at });
  });

  test("is not there without a summariser", () => {
    const ledger = newLedger();
    expect(append(ledger, { kind: "closed" })[0]).not.toHaveProperty("summary");
    expect(ledger.row).toBeNull();
  });

  test("the summariser sees the number and the time of the record", () => {
    const seen: unknown[] = [];
    const ledger = newLedger({
      add(row, record) {
        seen.push([record.seq, record.at, record.kind]);
        return row;
      },
      carries: () => false,
    });
    append(ledger, [{ kind: "a" }, { kind: "b" }]);
    const at = new Date(NOON).toISOString();
    expect(seen).toEqual([
      [1, at, "a"],
      [2, at, "b"],
    ]);
  });
});

describe("a mark", () => {
  test("brings back the number, the row, the time and the keys of where it was made, and the next append is as if nothing had been", () => {
    const ledger = newLedger(counting);
    append(ledger, { kind: "a" }, "first");
    const rewind = ledger.mark();
    const wanted = append(ledger, { kind: "b", title: "t" }, "second");
    append(ledger, [{ kind: "c" }, { kind: "turn.ended" }]);
    rewind();
    expect(ledger.head).toBe(1);
    expect(ledger.row).toEqual({ count: 1, title: null });
    expect(ledger.find("second")).toBeUndefined();
    expect(ledger.find("first")).toMatchObject({ seq: 1 });
    expect(append(ledger, { kind: "b", title: "t" }, "second")).toEqual(wanted);
  });

  test("leaves durable what became durable meanwhile", () => {
    const ledger = newLedger();
    append(ledger, { kind: "a" });
    const rewind = ledger.mark();
    append(ledger, { kind: "b" });
    ledger.setDurable(1);
    rewind();
    expect(ledger.durable).toBe(1);
  });

  test("brings back the keys that an epoch forgot", () => {
    const ledger = newLedger();
    for (let i = 0; i < 300; i++) append(ledger, { kind: "a" }, `key-${i}`);
    const rewind = ledger.mark();
    append(ledger, { kind: "b" }, "late");
    ledger.forgetOldKeys(undefined, { seq: 301, last: 301 });
    expect(ledger.find("key-0")).toBeUndefined();
    rewind();
    expect(ledger.find("key-0")).toMatchObject({ seq: 1 });
    expect(ledger.find("late")).toBeUndefined();
  });
});

describe("C23: the clock", () => {
  test("set back an hour: order unchanged, and the record says what the clock said", () => {
    let now = NOON;
    const ledger = new Ledger({ clock: () => now });
    const bytes: Buffer[] = [];
    for (const kind of ["a", "b", "c", "d"]) {
      const prepared = ledger.prepare([{ kind }]);
      bytes.push(Buffer.from(prepared.bytes));
      ledger.commit(prepared);
      if (kind === "b") now -= HOUR_MS;
    }
    const { records, strays } = scanBytes(Buffer.concat(bytes));
    expect(strays).toEqual([]);
    expect(records.map(({ seq, kind }) => [seq, kind])).toEqual([
      [1, "a"],
      [2, "b"],
      [3, "c"],
      [4, "d"],
    ]);
    expect(records.map(({ at }) => at.slice(11, 16))).toEqual(["12:00", "12:00", "11:00", "11:00"]);
    expect(ledger.at).toBe("2026-11-15T11:00:00.000Z");
  });

  test("that gives no time makes the append fail, every time, and nothing is written without one", () => {
    let now = Number.POSITIVE_INFINITY;
    const ledger = new Ledger({ clock: () => now });
    expect(() => ledger.prepare([{ kind: "a" }])).toThrow(RangeError);
    expect(() => ledger.prepare([{ kind: "a" }])).toThrow(RangeError);
    now = NOON;
    expect(append(ledger, { kind: "a" })[0]).toMatchObject({ seq: 1, at: "2026-11-15T12:00:00.000Z" });
  });
});

function record(seq: number, members: Record<string, unknown> = {}): JournalRecord {
  return JSON.parse(line(seq, members).toString());
}

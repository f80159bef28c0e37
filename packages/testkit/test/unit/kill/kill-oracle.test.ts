import type { JournalRecord } from "holdfast";
import { describe, expect, test } from "vitest";
import { recordsOf } from "../../../src/kill/content.ts";
import { Log } from "../../../src/kill/log.ts";
import { judge, judgeEpoch, type View, viewOf } from "../../../src/kill/oracle.ts";
import type { Attempt } from "../../../src/kill/pipe.ts";

/**
 * A journal as a perfect store would have written it: the attempts in order, from seq 2 on, behind the store's own
 * first record.
 */
function journalOf(...attempts: readonly Attempt[]): JournalRecord[] {
  const records = [{ kind: "segment" }, ...attempts.flatMap(recordsOf)];
  return records.map((record, i) => ({
    ...record,
    seq: i + 1,
    at: "",
    crc: `crc of ${JSON.stringify(record).length}`,
  }));
}

const one = (id: number): Attempt => ({ id, kind: "append", parts: 1, chars: 40 });
const unit = (id: number, parts: number): Attempt => ({ id, kind: "append", parts, chars: 40 });

/** All of them tried by one writer, and acknowledged where a seq is given. */
function logOf(...tries: readonly [attempt: Attempt, seq?: number][]): Log {
  const log = new Log();
  for (const [attempt, seq] of tries) {
    log.hear({ e: "attempt", ...attempt });
    if (seq !== undefined) log.hear({ e: "ack", id: attempt.id, seq, last: seq + attempt.parts - 1 });
  }
  return log;
}

const kinds = (faults: readonly { what: string }[]): string[] => faults.map(({ what }) => what);
const seen = (...attempts: readonly Attempt[]): Promise<View> => viewOf(journalOf(...attempts));

describe("the oracle: acknowledged ⊆ recovered ⊆ attempted, in order", () => {
  test("everything acknowledged and recovered is in order", async () => {
    expect(judge(logOf([one(1), 2], [unit(2, 3), 3]), await seen(one(1), unit(2, 3)))).toEqual([]);
  });

  test("what nobody answered may be there or not, from the end", async () => {
    const log = logOf([one(1), 2], [one(2)], [one(3)]);
    expect(judge(log, await seen(one(1)))).toEqual([]);
    expect(judge(log, await seen(one(1), one(2)))).toEqual([]);
    expect(judge(log, await seen(one(1), one(2), one(3)))).toEqual([]);
  });

  test("an acknowledged record that is missing is lost", async () => {
    expect(kinds(judge(logOf([one(1), 2], [one(2), 3]), await seen(one(1))))).toEqual(["lost"]);
  });

  test("a record that nobody tried is invented", async () => {
    expect(kinds(judge(logOf([one(1), 2]), await seen(one(1), one(9))))).toEqual(["invented"]);
  });

  test("a hole in front of something that came through is a gap", async () => {
    expect(kinds(judge(logOf([one(1), 2], [one(2)], [one(3)]), await seen(one(1), one(3))))).toEqual(["gap"]);
  });

  test("another life may go on behind what the dead writer lost", async () => {
    const log = logOf([one(1), 2], [one(2)]);
    log.nextLife();
    log.hear({ e: "attempt", ...one(3) });
    log.hear({ e: "ack", id: 3, seq: 3, last: 3 });
    expect(judge(log, await seen(one(1), one(3)))).toEqual([]);
  });

  test("half a unit, at either end", async () => {
    const log = logOf([unit(1, 3)]);
    const whole = journalOf(unit(1, 3));
    expect(kinds(judge(log, await viewOf(whole.slice(0, 3))))).toEqual(["half"]);
    const headless = [whole[0]!, { ...whole[2]!, seq: 2 }, { ...whole[3]!, seq: 3 }];
    expect(kinds(judge(log, await viewOf(headless)))).toContain("half");
  });

  test("the same attempt twice", async () => {
    expect(kinds(judge(logOf([one(1), 2]), await seen(one(1), one(1))))).toEqual(["twice"]);
  });

  test("two attempts in the wrong order", async () => {
    expect(kinds(judge(logOf([one(1)], [one(2)]), await seen(one(2), one(1))))).toEqual(["order"]);
  });

  test("a byte that changed, and a text that was cut short", async () => {
    const log = logOf([one(1), 2]);
    const [segment, record] = journalOf(one(1)) as [JournalRecord, JournalRecord];
    const altered = { ...record, text: `X${String(record["text"]).slice(1)}` };
    expect(kinds(judge(log, await viewOf([segment, altered])))).toEqual(["altered"]);
    const cut = { ...record, text: String(record["text"]).slice(0, -1) };
    expect(kinds(judge(log, await viewOf([segment, cut])))).toEqual(["altered"]);
  });

  test("acknowledged with one seq, and stored at another", async () => {
    expect(kinds(judge(logOf([one(1), 7]), await seen(one(1))))).toEqual(["altered"]);
  });

  test("refused, yet there", async () => {
    const log = logOf([one(1)]);
    log.hear({ e: "refused", id: 1, code: "STORE_FULL", message: "" });
    expect(kinds(judge(log, await seen(one(1))))).toEqual(["refused"]);
    expect(judge(log, await seen())).toEqual([]);
  });

  test("refused leaves no hole: the next append goes on without it", async () => {
    const log = logOf([one(1)]);
    log.hear({ e: "refused", id: 1, code: "STORE_FULL", message: "" });
    log.hear({ e: "attempt", ...one(2) });
    log.hear({ e: "ack", id: 2, seq: 2, last: 2 });
    expect(judge(log, await seen(one(2)))).toEqual([]);
  });

  test("a keyed retry is one record, wherever the first or the second try put it", async () => {
    const keyed: Attempt = { ...one(1), key: "k" };
    const log = logOf([keyed], [one(2)]);
    log.nextLife();
    log.hear({ e: "attempt", ...one(3) });
    log.hear({ e: "ack", id: 3, seq: 2, last: 2 });
    log.hear({ e: "attempt", ...keyed });
    log.hear({ e: "ack", id: 1, seq: 3, last: 3 });
    expect(judge(log, await seen(one(3), keyed))).toEqual([]);
    expect(kinds(judge(log, await seen(keyed, one(3), keyed)))).toContain("twice");
  });

  test("a seq that is left out", async () => {
    const records = journalOf(one(1)).map((record) => ({ ...record, seq: record.seq === 2 ? 3 : record.seq }));
    expect(kinds(judge(logOf([one(1)]), await viewOf(records)))).toEqual(["gap"]);
  });

  test("what a reopening has shown may neither go nor change, acknowledged or not (P2)", async () => {
    const log = logOf([one(1), 2], [unit(2, 2)]);
    const before = await seen(one(1), unit(2, 2));
    expect(judge(log, before, before)).toEqual([]);
    expect(kinds(judge(log, await seen(one(1)), before))).toEqual(["shrunk"]);
    const other = { ...before, all: before.all.map((r, i) => (i === 3 ? { ...r, crc: "other" } : r)) };
    expect(kinds(judge(log, other, before))).toEqual(["shrunk"]);
  });
});

describe("the oracle: the old conversation or the new one (C7)", () => {
  const epoch: Attempt = { id: 3, kind: "epoch", parts: 2, chars: 40 };
  const log = logOf([one(1), 2], [one(2), 3], [epoch]);
  const all = journalOf(one(1), one(2), epoch);

  test("before the replacement: everything from the start", async () => {
    const old = await seen(one(1), one(2));
    expect(judgeEpoch(log, old, old)).toEqual([]);
  });

  test("after it: the new records alone", async () => {
    expect(judgeEpoch(log, await viewOf(all), await viewOf(all.slice(3)))).toEqual([]);
  });

  test("a mixture, or a half, is a fault", async () => {
    const history = await viewOf(all);
    expect(kinds(judgeEpoch(log, history, history))).toEqual(["epoch"]);
    expect(kinds(judgeEpoch(log, history, await viewOf(all.slice(4))))).toEqual(["epoch"]);
    expect(kinds(judgeEpoch(log, history, await viewOf([])))).toEqual(["epoch"]);
  });

  test("the current epoch must be the end of the history", async () => {
    expect(kinds(judgeEpoch(log, await viewOf(all), await viewOf(all.slice(3, 4))))).toEqual(["epoch"]);
  });
});

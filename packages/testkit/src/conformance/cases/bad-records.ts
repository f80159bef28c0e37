import assert from "node:assert/strict";
import { type ErrorCode, isHoldfastError, newId } from "holdfast";
import { RECORD_BYTES_MAX } from "holdfast/internal";
import type { NewRecord } from "holdfast/store";
import { type Case, conformanceCase } from "../case.ts";
import { countFrom, kindsOf, note, seqsOf, textsOf } from "../notes.ts";
import { all, refusal, type Trial } from "../trial.ts";

const cycle: Record<string, unknown> = { name: "cycle" };
cycle["self"] = { list: [cycle] };

class Point {
  readonly x = 1;
}

const NOT_JSON: Record<string, unknown> = {
  "a cycle": cycle,
  "a BigInt": { deep: [1n] },
  NaN: Number.NaN,
  Infinity: [Number.POSITIVE_INFINITY],
  "a Map": new Map([["a", 1]]),
  "a Set": new Set([1]),
  "a Date": new Date(0),
  "a Uint8Array": new Uint8Array(3),
  "an instance of a class": new Point(),
  "an object with toJSON": { toJSON: () => "other" },
  "a function": () => 1,
  "a symbol": Symbol("s"),
  "undefined in an array": [1, undefined],
  "a hole in an array": new Array(2),
};

const INVALID: Record<string, unknown> = {
  "no kind": { text: "x" },
  "an empty kind": { kind: "" },
  "a kind that is no string": { kind: 7 },
  null: null,
  ...Object.fromEntries(
    ["seq", "unit", "synced", "ahead", "at", "key", "summary", "crc"].map((name) => [
      `"${name}"`,
      { kind: "note", [name]: 1 },
    ]),
  ),
};

/**
 * The store rejects it alone and inside a unit, and writes nothing, not even if the writer has written nothing before.
 * The journal then continues.
 */
async function refuses(trial: Trial, bad: Record<string, unknown>, code: ErrorCode): Promise<void> {
  const store = await trial.open();
  const id = newId();
  await (await store.create(id, [note("created")])).close();
  const before = await all(store.history(id));
  const { journal } = await store.open(id);
  for (const [what, value] of Object.entries(bad)) {
    const record = value as NewRecord;
    try {
      await refusal(() => journal.append(record), code);
      await refusal(() => journal.append([note("with it"), record, note("with it")]), code);
    } catch (error) {
      throw new assert.AssertionError({ message: `${what}: ${(error as Error).message}` });
    }
    assert.equal(journal.head, before.length, what);
  }
  assert.deepEqual(await all(store.history(id)), before);
  assert.equal(journal.failure, null);
  const { seq } = await journal.append(note("goes on"));
  const history = await all(store.history(id));
  assert.deepEqual(textsOf(history), ["created", "goes on"]);
  assert.deepEqual(seqsOf(history), countFrom(1, history.length));
  assert.equal(history.at(-1)!.seq, seq);
}

export const badRecords: readonly Case[] = [
  conformanceCase(
    "bad records: a value that JSON would change fails with RECORD_NOT_JSON, and nothing is written",
    ["P8", "S5"],
    async (trial) => {
      const bad = Object.entries(NOT_JSON).map(([what, value]) => [what, { kind: "note", text: "bad", value }]);
      await refuses(trial, Object.fromEntries(bad), "RECORD_NOT_JSON");
    },
  ),

  conformanceCase(
    "bad records: an invalid record fails with RECORD_INVALID, and nothing is written",
    ["P8"],
    async (trial) => {
      await refuses(trial, INVALID, "RECORD_INVALID");
      const store = await trial.open();
      const journal = await store.create(newId(), []);
      await refusal(() => journal.append([]), "RECORD_INVALID");
      assert.equal(journal.head, 1);
    },
  ),

  conformanceCase("bad records: one among good ones in flight fails alone", ["P8"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, []);
    const results = await Promise.allSettled([
      journal.append(note("a")),
      (async () => journal.append({ kind: "note", text: Number.NaN }))(),
      journal.append(note("b")),
    ]);
    assert.deepEqual(
      results.map((result) => result.status),
      ["fulfilled", "rejected", "fulfilled"],
    );
    const history = await all(store.history(id));
    assert.deepEqual(kindsOf(history).slice(-2), ["note", "note"]);
    assert.deepEqual(textsOf(history), ["a", "b"]);
    assert.deepEqual(seqsOf(history), countFrom(1, history.length));
  }),

  conformanceCase(
    "bad records: one whose getter appends is recorded as it is, and so is what was acknowledged",
    ["P1", "P8"],
    async (trial) => {
      const store = await trial.open();
      const id = newId();
      const journal = await store.create(id, []);
      const nested: Promise<string | null>[] = [];
      const appending = (text: string): NewRecord => ({
        kind: "note",
        get text() {
          const inner = `${text} ${nested.length}`;
          const appended = (async () => journal.append(note(inner)))();
          nested.push(
            appended.then(
              () => inner,
              (error: unknown) => {
                assert.ok(isHoldfastError(error, "RECORD_INVALID"), String(error));
                return null;
              },
            ),
          );
          return text;
        },
      });
      const { seq, last } = await journal.append([note("a"), appending("b"), note("c")]);
      const written = (await Promise.all(nested)).filter((text) => text !== null);
      await journal.append(note("d"));
      const history = await all(store.history(id));
      assert.deepEqual(seqsOf(history), countFrom(1, history.length));
      assert.deepEqual(textsOf(history.filter((record) => record.seq >= seq && record.seq <= last)), ["a", "b", "c"]);
      assert.deepEqual(textsOf(history).toSorted(), ["a", "b", "c", "d", ...written].toSorted());
    },
  ),

  conformanceCase(
    "bad records: one that changes while it is read is recorded whole, or fails and leaves nothing",
    ["P1", "P8"],
    async (trial) => {
      const store = await trial.open();
      const id = newId();
      const journal = await store.create(id, []);
      const texts: string[] = [];
      let tries = 0;
      /** Something is not what it was from the n-th time on that it is read. */
      const changing = (n: number, change: (record: Record<string, unknown>) => unknown): NewRecord => {
        let reads = 0;
        const text = `try ${tries++}`;
        const kind = { enumerable: true, get: () => (reads++ < n ? "note" : change(record)) };
        const record = Object.defineProperties({}, { kind, text: { enumerable: true, value: text } });
        return record as NewRecord;
      };
      const later: ((record: Record<string, unknown>) => unknown)[] = [
        () => undefined,
        () => 7,
        () => "",
        () => ({ name: "note" }),
        (record) => {
          record["seq"] = 1;
          return "note";
        },
        (record) => {
          record["crc"] = "00000000";
          return "note";
        },
      ];
      for (const change of later) {
        for (let n = 0; n < 8; n++) {
          const record = changing(n, change);
          try {
            await journal.append(record);
            texts.push(String(record["text"]));
          } catch (error) {
            assert.ok(isHoldfastError(error, "RECORD_INVALID", "RECORD_NOT_JSON"), String(error));
          }
          texts.push(`after ${n}`);
          await journal.append(note(`after ${n}`));
        }
      }
      await journal.close();
      const { records, recovery } = await store.read(id);
      assert.deepEqual(recovery.damaged, []);
      assert.deepEqual(recovery.missing, []);
      const notes = records.filter(({ kind }) => kind === "note");
      assert.deepEqual(textsOf(notes), texts);
    },
  ),

  conformanceCase(
    "bad records: one of more than 64 MiB fails with RECORD_TOO_LARGE, and nothing is written",
    ["P8", "S4"],
    (trial) => refuses(trial, { "64 MiB": note("x".repeat(RECORD_BYTES_MAX)) }, "RECORD_TOO_LARGE"),
    { heavy: true },
  ),
];

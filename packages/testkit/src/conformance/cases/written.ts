import assert from "node:assert/strict";
import { type JournalRecord, newId } from "holdfast";
import type { Journal, Written } from "holdfast/store";
import { type Case, conformanceCase } from "../case.ts";
import { epoch, note, notes } from "../notes.ts";
import { all, later, refusal } from "../trial.ts";

/** Collects what a journal reports from now on. A copy, because the records may belong to the caller. */
function listen(journal: Journal): Written[] {
  const told: Written[] = [];
  journal.onWritten((written) => told.push(structuredClone({ ...written, records: [...written.records] })));
  return told;
}

/** The payload of each record, with its seq and time. */
function recordsIn(told: readonly Written[]): unknown[] {
  return told.flatMap(({ seq, at, records }) =>
    records.map((record, i) => JSON.parse(JSON.stringify({ ...record, seq: seq + i, at })) as unknown),
  );
}

function payloadOf({
  crc: _,
  synced: __,
  unit: ___,
  key: ____,
  ahead: _____,
  summary: ______,
  ...rest
}: JournalRecord) {
  return rest;
}

export const written: readonly Case[] = [
  conformanceCase(
    "written: a journal reports everything it writes in order, with its own records",
    ["P2", "S10"],
    async (trial) => {
      const store = await trial.open();
      const id = newId();
      const journal = await store.create(id, [note("created")]);
      const first = listen(journal);
      const pending = [later(journal.append(note("a"))), later(journal.append(notes(3)))];
      await Promise.all([...pending, later(journal.epoch(() => [epoch("now"), note("carried")]))]);
      await journal.append(note("b"), { durability: "process" });
      if (trial.capabilities.sync) journal.appendSync(note("c"));
      await journal.close();
      const { journal: second } = await store.open(id);
      const told = listen(second);
      await second.epoch(() => [epoch("first of a writer")]);
      await second.close();
      const history = await all(store.history(id));
      // `create` has written the first two, before anyone could listen.
      assert.deepEqual(recordsIn([...first, ...told]), history.slice(2).map(payloadOf));
    },
  ),

  conformanceCase("written: a journal reports a unit before it acknowledges it", ["S10"], async (trial) => {
    const store = await trial.open();
    const journal = await store.create(newId(), []);
    let last = 0;
    journal.onWritten(({ seq, records }) => {
      last = seq + records.length - 1;
    });
    const reported = async (appended: Promise<{ readonly last: number }>): Promise<void> => {
      const answer = await appended;
      assert.ok(last >= answer.last, `${answer.last} was acknowledged, and ${last} was reported`);
    };
    await reported(journal.append(note("a")));
    await Promise.all([
      reported(journal.append(notes(2))),
      reported(journal.append(note("b"), { durability: "process" })),
    ]);
    await reported(journal.epoch(() => [epoch("now")]));
  }),

  conformanceCase(
    "written: only what is written is reported, unchanged, and not to those who unsubscribed",
    ["P8", "S10"],
    async (trial) => {
      const store = await trial.open();
      const id = newId();
      const journal = await store.create(id, []);
      const told = listen(journal);
      const unsubscribed: Written[] = [];
      const stop = journal.onWritten((written) => unsubscribed.push(written));
      await journal.append(note("a"), { key: "k" });
      stop();
      const before = unsubscribed.length;
      await journal.append(note("again"), { key: "k" });
      await refusal(() => journal.append({ kind: "note", text: Number.NaN }), "RECORD_NOT_JSON");
      await refusal(() => journal.epoch(() => [epoch("bad"), { kind: "note", text: 1n }]), "RECORD_NOT_JSON");
      const record = { kind: "note", text: "before", list: [1] };
      const pending = later(journal.append(record));
      record.text = "after";
      record.list.push(2);
      await pending;
      assert.deepEqual(recordsIn(told), (await all(store.history(id))).slice(1).map(payloadOf));
      assert.ok(before > 0);
      assert.equal(unsubscribed.length, before);
    },
  ),
];

import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { newId } from "holdfast";
import { type Case, conformanceCase } from "../case.ts";
import { countFrom, note, notes, seqsOf, textsOf } from "../notes.ts";
import { all, later } from "../trial.ts";

export const units: readonly Case[] = [
  conformanceCase("unit: its records have consecutive seqs, and the first gives their count", ["S6"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, []);
    const appended = await journal.append(notes(3));
    assert.equal(appended.last, appended.seq + 2);
    await journal.append([note("alone")]);
    await store.close();
    const history = await all((await trial.open()).history(id));
    const found = history.filter((record) => record.kind === "note");
    assert.deepEqual(textsOf(found), ["note 1", "note 2", "note 3", "alone"]);
    assert.deepEqual(seqsOf(found), countFrom(appended.seq, 4));
    assert.deepEqual(
      found.map((record) => record.unit),
      [3, undefined, undefined, undefined],
    );
  }),

  conformanceCase("unit: a reader sees all of it or nothing, at any instant", ["S6"], async (trial) => {
    const store = await trial.open();
    const other = await trial.open();
    const id = newId();
    const journal = await store.create(id, []);
    const state = { writing: true };
    const writing = later(
      (async () => {
        for (const round of countFrom(1, 20)) await journal.append(notes(5, `round ${round}:`));
      })().finally(() => {
        state.writing = false;
      }),
    );
    const counts = new Set<number>();
    while (state.writing) {
      counts.add(textsOf((await other.read(id)).records).length);
      counts.add(textsOf(await all(other.history(id))).length);
      await turn();
    }
    await writing;
    for (const count of counts) assert.equal(count % 5, 0, `a reader saw ${count} records, written in units of 5`);
    assert.equal(textsOf((await other.read(id)).records).length, 100);
  }),

  conformanceCase("unit: history and follow can begin inside one", ["S6"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, []);
    const { seq, last } = await journal.append(notes(4));
    assert.deepEqual(seqsOf(await all(store.history(id, seq + 2))), [seq + 2, last]);
    const follower = trial.follow(store.follow(id, { after: seq + 1, signal: trial.signal }));
    assert.deepEqual(seqsOf(await follower.next(2)), [seq + 2, last]);
  }),
];

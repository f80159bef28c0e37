import assert from "node:assert/strict";
import { newId } from "holdfast";
import { type Case, conformanceCase } from "../case.ts";
import { countFrom, epoch, kindsOf, note, seqsOf, textsOf } from "../notes.ts";
import { all, later, refusal } from "../trial.ts";

export const closing: readonly Case[] = [
  conformanceCase("close: a closed journal rejects appends with JOURNAL_CLOSED", ["P8"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, [note("a")]);
    await journal.append(note("b"));
    await journal.close();
    const before = await all(store.history(id));
    await refusal(() => journal.append(note("late")), "JOURNAL_CLOSED");
    await refusal(() => journal.append(note("late"), { key: "k" }), "JOURNAL_CLOSED");
    await refusal(() => journal.epoch(() => [epoch("late")]), "JOURNAL_CLOSED");
    if (trial.capabilities.sync) await refusal(() => journal.appendSync(note("late")), "JOURNAL_CLOSED");
    const { journal: next } = await store.open(id);
    await refusal(() => journal.append(note("late")), "JOURNAL_CLOSED");
    await next.close();
    assert.deepEqual(await all(store.history(id)), before);
  }),

  conformanceCase("close: closing twice is harmless", [], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, [note("a")]);
    await Promise.all([journal.close(), journal.close()]);
    const { journal: next } = await store.open(id);
    await journal.close();
    await next.append(note("b"));
    await store.close();
    await store.close();
    await next.close();
    const history = await all((await trial.open()).history(id));
    assert.deepEqual(kindsOf(history), ["segment", "note", "closed", "opened", "note", "closed"]);
  }),

  conformanceCase("close: waits for appends in flight, and all of them are written", ["P1"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, []);
    const pending = countFrom(1, 20).map((i) => later(journal.append(note(`${i}`))));
    const closing = later(journal.close());
    const appended = await Promise.all(pending);
    await closing;
    const history = await all(store.history(id));
    assert.equal(history.at(-1)!.kind, "closed");
    assert.equal(history.at(-1)!.seq, appended.at(-1)!.last + 1);
    assert.equal(textsOf(history).length, 20);
    assert.deepEqual(seqsOf(history), countFrom(1, history.length));
  }),

  conformanceCase("close: a store closes its open journals", ["P6"], async (trial) => {
    const store = await trial.open();
    const ids = [newId(), newId(), newId()];
    const journals = await Promise.all(ids.map((id) => store.create(id, [note("a")])));
    const pending = journals.map((journal) => later(journal.append(note("in flight"))));
    await store.close();
    await Promise.all(pending);
    for (const journal of journals) await refusal(() => journal.append(note("late")), "JOURNAL_CLOSED");
    const again = await trial.open();
    for (const id of ids) {
      assert.equal(await again.holder(id), null);
      const { records, recovery } = await again.open(id);
      assert.deepEqual(kindsOf(records), ["segment", "note", "opened", "note", "closed"]);
      assert.equal(recovery.unclean, false);
    }
  }),

  conformanceCase("close: a closed store fails with STORE_CLOSED, and does nothing", [], async (trial) => {
    const store = await trial.open();
    const id = newId();
    await (await store.create(id, [note("a")])).close();
    await store.close();
    const other = newId();
    const calls = [
      () => store.create(other, [note("late")]),
      () => store.open(id),
      () => store.read(id),
      () => all(store.history(id)),
      () => all(store.follow(id, { signal: trial.signal })),
      () => store.has(id),
      () => store.holder(id),
      () => store.list(),
      () => store.delete(id),
      () => store.verify(id),
      () => store.gc({ graceMs: 0 }),
    ];
    for (const call of calls) await trial.within(refusal(call, "STORE_CLOSED"), "STORE_CLOSED");
    const again = await trial.open();
    assert.equal(await again.has(id), true);
    assert.equal(await again.has(other), false);
  }),

  conformanceCase("close: `await using` closes journal and store", [], async (trial) => {
    const id = newId();
    const outer = await trial.open();
    {
      await using store = await trial.open();
      {
        await using journal = await store.create(id, [note("a")]);
        await journal.append(note("b"));
      }
      assert.equal(await outer.holder(id), null);
      assert.equal((await outer.read(id)).records.at(-1)!.kind, "closed");
      const { journal } = await store.open(id);
      await journal.append(note("c"));
    }
    assert.equal(await outer.holder(id), null);
    const { records, recovery } = await outer.open(id);
    assert.deepEqual(textsOf(records), ["a", "b", "c"]);
    assert.equal(recovery.unclean, false);
  }),
];

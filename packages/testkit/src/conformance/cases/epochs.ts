import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { newId } from "holdfast";
import { type Case, conformanceCase } from "../case.ts";
import { countFrom, epoch, kindsOf, note, only, seqsOf, textsOf } from "../notes.ts";
import { all, later, refusal } from "../trial.ts";

export const epochs: readonly Case[] = [
  conformanceCase(
    "epoch: only the new records are current, and the old ones stay in the history",
    ["P2", "S15"],
    async (trial) => {
      const store = await trial.open();
      const id = newId();
      const journal = await store.create(id, [note("old 1")]);
      await journal.append(note("old 2"));
      const { seq, last } = await journal.epoch(() => [epoch("compaction"), note("carried")]);
      assert.equal(last, seq + 1, "the answer counts the records that were given, without the header");
      assert.equal(only((await store.read(id)).records, "epoch").seq, seq);
      assert.equal(journal.head, last);
      assert.ok(journal.durable >= last);
      await journal.append(note("new"));

      const check = async (reading: typeof store) => {
        const { records } = await reading.read(id);
        assert.deepEqual(kindsOf(records).slice(0, 3), ["segment", "epoch", "note"]);
        assert.deepEqual(textsOf(records), ["carried", "new"]);
        const history = await all(reading.history(id));
        assert.deepEqual(textsOf(history), ["old 1", "old 2", "carried", "new"]);
        assert.deepEqual(seqsOf(history), countFrom(1, history.length));
        assert.deepEqual(history.slice(-records.length), records);
      };
      await check(store);
      await check(await trial.open());
      await store.close();
      const again = await trial.open();
      await check(again);
      const { records, journal: reopened } = await again.open(id);
      assert.deepEqual(textsOf(records), ["carried", "new"]);
      await reopened.append(note("later"));
      assert.deepEqual(textsOf((await again.read(id)).records), ["carried", "new", "later"]);
    },
  ),

  conformanceCase("epoch: the header numbers the segment, and starts a new epoch", ["S15"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, []);
    await journal.append(note("a"), { key: "k" });
    await journal.epoch(() => [epoch("one")]);
    await journal.epoch(() => [epoch("two")]);
    const headers = (await all(store.history(id))).filter((record) => record.kind === "segment");
    assert.deepEqual(
      headers.map((header) => [header["session"], header["segment"], header["epoch"]]),
      [
        [id, 1, 1],
        [id, 2, 2],
        [id, 3, 3],
      ],
    );
    assert.deepEqual(
      headers.map((header) => (header["keys"] as unknown[] | undefined)?.length),
      [undefined, 1, 1],
    );
  }),

  conformanceCase(
    "epoch: build is called once, inside the call, and sees every append before it",
    ["S15"],
    async (trial) => {
      const store = await trial.open();
      const id = newId();
      const journal = await store.create(id, []);
      const first = await journal.append(note("acknowledged"));
      const pending = [later(journal.append(note("in flight 1"))), later(journal.append(note("in flight 2")))];
      const seen: number[] = [];
      const beginning = later(
        journal.epoch(() => {
          seen.push(journal.head);
          return [epoch("now"), note("carried")];
        }),
      );
      const after = later(journal.append(note("after")));
      await Promise.all([...pending, beginning, after]);
      assert.deepEqual(seen, [first.last + 2]);
      assert.deepEqual(textsOf((await store.read(id)).records), ["carried", "after"]);
      const history = await all(store.history(id));
      assert.deepEqual(textsOf(history), ["acknowledged", "in flight 1", "in flight 2", "carried", "after"]);
      assert.deepEqual(seqsOf(history), countFrom(1, history.length));
    },
  ),

  conformanceCase(
    "epoch: at every instant a reader sees the old records or the new ones",
    ["C7", "S15"],
    async (trial) => {
      const store = await trial.open();
      const other = await trial.open();
      const id = newId();
      const journal = await store.create(id, [note("0"), note("0")]);
      const state = { writing: true };
      const writing = later(
        (async () => {
          for (const round of countFrom(1, 10)) {
            await journal.epoch(() => [epoch("round"), note(`${round}`), note(`${round}`)]);
          }
        })().finally(() => {
          state.writing = false;
        }),
      );
      const views: string[][] = [];
      while (state.writing) {
        views.push(textsOf((await other.read(id)).records));
        await turn();
      }
      await writing;
      views.push(textsOf((await other.read(id)).records));
      let newest = 0;
      for (const view of views) {
        assert.equal(view.length, 2, `a reader saw ${JSON.stringify(view)}`);
        assert.equal(view[0], view[1]);
        assert.ok(Number(view[0]) >= newest, "a reader saw an older epoch after a newer one");
        newest = Number(view[0]);
      }
      assert.equal(newest, 10);
    },
  ),

  conformanceCase("epoch: if it fails, the old one continues", ["P8", "C7"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, [note("a")]);
    await journal.append(note("b"));
    const before = await all(store.history(id));
    const broken = new Error("build is broken");
    await assert.rejects(
      async () =>
        journal.epoch(() => {
          throw broken;
        }),
      (error) => error === broken,
    );
    await refusal(() => journal.epoch(() => [epoch("bad"), { kind: "note", text: 1n }]), "RECORD_NOT_JSON");
    await refusal(() => journal.epoch(() => [note("no epoch")]), "RECORD_INVALID");
    await refusal(() => journal.epoch(() => []), "RECORD_INVALID");
    assert.deepEqual(await all(store.history(id)), before);
    assert.equal(journal.failure, null);
    await journal.append(note("c"));
    assert.deepEqual(textsOf((await store.read(id)).records), ["a", "b", "c"]);
    await journal.epoch(() => [epoch("good"), note("carried")]);
    await store.close();
    const again = await trial.open();
    assert.deepEqual(textsOf((await again.read(id)).records), ["carried"]);
    const history = await all(again.history(id));
    assert.deepEqual(textsOf(history), ["a", "b", "c", "carried"]);
    assert.deepEqual(seqsOf(history), countFrom(1, history.length));
  }),

  conformanceCase("epoch: can be a writer's first write", ["S15"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    await (await store.create(id, [note("a")])).close();
    const { journal } = await store.open(id, { app: "second" });
    await journal.epoch(() => [epoch("clear")]);
    await journal.close();
    const { records, recovery } = await store.read(id);
    assert.deepEqual(kindsOf(records), ["segment", "epoch", "closed"]);
    assert.equal(recovery.unclean, false);
    const history = await all(store.history(id));
    assert.deepEqual(kindsOf(history), ["segment", "note", "closed", "opened", "segment", "epoch", "closed"]);
    assert.deepEqual(seqsOf(history), countFrom(1, history.length));
  }),

  conformanceCase(
    "epoch: current after its writer was killed",
    ["P1", "C7"],
    async (trial) => {
      let store = await trial.open();
      const id = newId();
      const journal = await store.create(id, [note("old")]);
      await journal.epoch(() => [epoch("now"), note("carried")]);
      await journal.close();
      store = await trial.writeAndDie(store, id, [{ records: [note("last words")] }]);
      const { records } = await store.open(id);
      assert.deepEqual(textsOf(records), ["carried", "last words"]);
      assert.deepEqual(textsOf(await all(store.history(id))), ["old", "carried", "last words"]);
    },
    { needs: (can) => can.dies },
  ),
];

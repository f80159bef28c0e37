import assert from "node:assert/strict";
import { hostname } from "node:os";
import { newId } from "holdfast";
import { type Case, conformanceCase } from "../case.ts";
import { countFrom, note, seqsOf, textsOf } from "../notes.ts";
import { all, refusal } from "../trial.ts";

export const leases: readonly Case[] = [
  conformanceCase("lease: a second opener learns who has it", ["P6", "C15"], async (trial) => {
    const store = await trial.open({ app: "from the store" });
    const other = await trial.open();
    const id = newId();
    const created = await store.create(id, [note("a")]);
    const check = async (app: string) => {
      for (const taker of [store, other]) {
        const { facts, message } = await refusal(() => taker.open(id), "SESSION_BUSY");
        assert.equal(facts["sameProcess"], true);
        const holder = facts["holder"] as unknown as { pid: number; host: string; app: string; since: string };
        assert.equal(holder.pid, process.pid);
        assert.equal(holder.host, hostname());
        assert.equal(holder.app, app);
        assert.ok(Number.isFinite(Date.parse(holder.since)));
        assert.ok(message.includes(id));
      }
    };
    await check("from the store");
    await created.close();
    const { journal } = await other.open(id, { app: "from the writer" });
    await check("from the writer");
    await journal.append(note("b"));
    assert.deepEqual(textsOf(await all(store.history(id))), ["a", "b"]);
  }),

  conformanceCase("lease: free when its holder closes, for the same store and for another", ["P6"], async (trial) => {
    const store = await trial.open();
    const other = await trial.open();
    const id = newId();
    const created = await store.create(id, []);
    await created.close();
    for (const [i, taker] of [other, store, store, other].entries()) {
      const { journal } = await taker.open(id);
      await refusal(() => store.open(id), "SESSION_BUSY");
      await journal.append(note(`${i}`));
      await journal.close();
    }
    assert.deepEqual(textsOf(await all(store.history(id))), ["0", "1", "2", "3"]);
  }),

  conformanceCase("lease: of several concurrent openers, one gets it", ["P6"], async (trial) => {
    const stores = [await trial.open(), await trial.open(), await trial.open()];
    const id = newId();
    await (await stores[0]!.create(id, [])).close();
    const results = await Promise.allSettled(stores.map((store) => store.open(id)));
    const won = results.filter((result) => result.status === "fulfilled");
    assert.equal(won.length, 1);
    for (const result of results) {
      if (result.status === "rejected") await refusal(() => Promise.reject(result.reason), "SESSION_BUSY");
    }
    await won[0]!.value.journal.append(note("the one"));
    const history = await all(stores[1]!.history(id));
    assert.deepEqual(textsOf(history), ["the one"]);
    assert.deepEqual(seqsOf(history), countFrom(1, history.length));
  }),

  conformanceCase("holder: names the writer, or nobody", ["P6"], async (trial) => {
    const store = await trial.open({ app: "tester" });
    const other = await trial.open();
    const id = newId();
    const created = await store.create(id, []);
    for (const reader of [store, other]) {
      const holder = await reader.holder(id);
      assert.equal(holder?.pid, process.pid);
      assert.equal(holder?.app, "tester");
      assert.equal(holder?.host, hostname());
    }
    await created.close();
    for (const reader of [store, other]) assert.equal(await reader.holder(id), null);
    const { journal } = await other.open(id);
    assert.equal((await store.holder(id))?.app, "holdfast");
    await other.close();
    assert.equal(await store.holder(id), null);
    await refusal(() => journal.append(note("late")), "JOURNAL_CLOSED");
  }),

  conformanceCase(
    "lease: nothing that others do to a live session releases it",
    ["P6", "C15", "C16"],
    async (trial) => {
      const store = await trial.open();
      const other = await trial.open();
      const id = newId();
      const journal = await store.create(id, [note("a")]);
      for (const reader of [store, other]) {
        await reader.read(id);
        await all(reader.history(id));
        await reader.verify(id);
        await reader.list();
        await reader.holder(id);
        await reader.gc({ graceMs: 0 });
        await trial.follow(reader.follow(id, { signal: trial.signal })).next(2);
        await refusal(() => reader.delete(id), "SESSION_BUSY");
        if (trial.capabilities.pack) await refusal(() => reader.pack(id), "SESSION_BUSY");
        await refusal(() => reader.open(id), "SESSION_BUSY");
        assert.equal((await reader.holder(id))?.pid, process.pid);
      }
      const third = await trial.open();
      await third.read(id);
      await third.close();
      await refusal(() => other.open(id), "SESSION_BUSY");
      await journal.append(note("b"));
      assert.equal(journal.failure, null);
      assert.deepEqual(textsOf(await all(other.history(id))), ["a", "b"]);
    },
  ),

  conformanceCase(
    "lease: free at once when its holder is killed",
    ["P6", "C15"],
    async (trial) => {
      let store = await trial.open();
      const id = newId();
      await (await store.create(id, [note("a")])).close();
      store = await trial.writeAndDie(store, id, [{ records: [note("b")] }]);
      assert.equal(await store.holder(id), null);
      const { journal, records } = await store.open(id);
      assert.deepEqual(textsOf(records), ["a", "b"]);
      await journal.append(note("c"));
      const history = await all(store.history(id));
      assert.deepEqual(textsOf(history), ["a", "b", "c"]);
      assert.deepEqual(seqsOf(history), countFrom(1, history.length));
    },
    { needs: (can) => can.dies && can.lease !== "fenced" },
  ),
];

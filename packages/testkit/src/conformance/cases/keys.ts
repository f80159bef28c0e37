import assert from "node:assert/strict";
import { newId } from "holdfast";
import type { JournalAppended, NewRecord } from "holdfast/store";
import { type Case, conformanceCase } from "../case.ts";
import { countFrom, epoch, note, notes, seqsOf, textsOf } from "../notes.ts";
import { all, later, refusal } from "../trial.ts";

/** How many keys survive an epoch (AppendOptions). */
const KEYS_BEYOND = 256;

/** A store may also add when it wrote. */
const numbersOf = ({ seq, last }: JournalAppended): JournalAppended => ({ seq, last });

export const keys: readonly Case[] = [
  conformanceCase("key: a repeated key returns the first seq, and writes nothing", ["S11b"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, []);
    const first = numbersOf(await journal.append(note("a"), { key: "k" }));
    const unit = numbersOf(await journal.append(notes(3), { key: "unit" }));
    const before = await all(store.history(id));
    assert.deepEqual(numbersOf(await journal.append(note("a"), { key: "k" })), first);
    assert.deepEqual(numbersOf(await journal.append(note("other words"), { key: "k" })), first);
    assert.deepEqual(numbersOf(await journal.append(notes(3), { key: "unit" })), unit);
    assert.deepEqual(await all(store.history(id)), before);
    assert.equal(before.find((record) => record.seq === first.seq)?.key, "k");
    assert.equal(before.find((record) => record.seq === unit.seq)?.key, "unit");
  }),

  conformanceCase("key: a different key, or none, is a separate append", ["S11b"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, []);
    await journal.append(note("same"), { key: "k" });
    await journal.append(note("same"), { key: "K" });
    await journal.append(note("same"));
    await journal.append(note("same"));
    assert.equal(textsOf(await all(store.history(id))).length, 4);
    const other = await store.create(newId(), []);
    const { seq } = await other.append(note("of another session"), { key: "k" });
    const history = await all(store.history(other.id));
    assert.deepEqual(textsOf(history), ["of another session"]);
    assert.equal(history.at(-1)!.seq, seq);
  }),

  conformanceCase("key: known while the first append is in flight", ["S11b"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, []);
    const results = await Promise.all([
      journal.append(note("a"), { key: "k" }),
      journal.append(note("a"), { key: "k" }),
      journal.append(note("b")),
      journal.append(note("a"), { key: "k" }),
    ]);
    assert.deepEqual(results[1], results[0]);
    assert.deepEqual(results[3], results[0]);
    assert.deepEqual(textsOf(await all(store.history(id))), ["a", "b"]);
  }),

  conformanceCase("key: a repeated key waits for the durability that it asks for", ["S11b", "P1"], async (trial) => {
    const store = await trial.open();
    const journal = await store.create(newId(), []);
    const first = await journal.append(note("a"), { key: "k", durability: "process" });
    await journal.append(note("a"), { key: "k", durability: "power" });
    assert.ok(journal.durable >= first.last, "written and not durable");
    // The same while the first append is in flight.
    const flying = later(journal.append(note("b"), { key: "l", durability: "process" }));
    const { last } = await journal.append(note("b"), { key: "l", durability: "power" });
    assert.ok(journal.durable >= last, "in flight and not durable");
    await flying;
  }),

  conformanceCase("key: known after closing and opening again", ["S11b"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, []);
    const first = numbersOf(await journal.append(note("a"), { key: "k" }));
    const unit = numbersOf(await journal.append(notes(2), { key: "unit" }));
    await store.close();
    const again = await trial.open();
    const before = await all(again.history(id));
    const { journal: reopened } = await again.open(id);
    assert.deepEqual(numbersOf(await reopened.append(note("a"), { key: "k" })), first);
    assert.deepEqual(numbersOf(await reopened.append(notes(2), { key: "unit" })), unit);
    await again.close();
    assert.deepEqual(await all((await trial.open()).history(id)), before, "a writer that wrote nothing left something");
  }),

  conformanceCase(
    "key: known over epochs, the newest 256 of them, also after opening again",
    ["S11b"],
    async (trial) => {
      const store = await trial.open();
      const id = newId();
      const journal = await store.create(id, []);
      const used = new Map<string, JournalAppended>();
      for (const i of countFrom(1, KEYS_BEYOND))
        used.set(`k${i}`, numbersOf(await journal.append(note(`${i}`), { key: `k${i}` })));
      await journal.epoch(() => [epoch("first")]);
      for (const [key, first] of used)
        assert.deepEqual(numbersOf(await journal.append(note("again"), { key })), first, key);
      await journal.epoch(() => [epoch("second")]);
      await store.close();
      const again = await trial.open();
      const { journal: reopened } = await again.open(id);
      for (const [key, first] of used)
        assert.deepEqual(numbersOf(await reopened.append(note("again"), { key })), first, key);
      const fresh = await reopened.append(note("fresh"), { key: "fresh" });
      assert.equal(fresh.seq, (await all(again.history(id))).at(-1)!.seq);
      assert.equal(textsOf(await all(again.history(id))).length, KEYS_BEYOND + 1);
    },
  ),

  conformanceCase(
    "key: an epoch with a key begins once, also while it is in flight, over another epoch, and after opening again",
    ["S11b", "S15"],
    async (trial) => {
      const store = await trial.open();
      const id = newId();
      const journal = await store.create(id, []);
      const older = numbersOf(await journal.append(note("a"), { key: "before" }));
      let built = 0;
      const build = (): NewRecord[] => {
        built += 1;
        return [epoch("once"), note("summary"), note("kept")];
      };
      const [first, second] = await Promise.all([
        journal.epoch(build, { key: "k" }),
        journal.epoch(build, { key: "k" }),
      ]);
      assert.deepEqual(numbersOf(second), numbersOf(first));
      assert.equal(built, 1);
      const place = numbersOf(first);
      assert.deepEqual(numbersOf(await journal.append(note("x"), { key: "k" })), place);
      await journal.epoch(() => [epoch("another")], { key: "l" });
      assert.deepEqual(numbersOf(await journal.epoch(build, { key: "k" })), place);
      await store.close();
      const again = await trial.open();
      const before = await all(again.history(id));
      const { journal: reopened } = await again.open(id);
      assert.deepEqual(numbersOf(await reopened.epoch(build, { key: "k" })), place);
      assert.deepEqual(numbersOf(await reopened.append(note("x"), { key: "before" })), older);
      await refusal(() => reopened.epoch(build, { key: "x".repeat(2000) }), "RECORD_INVALID");
      await again.close();
      assert.equal(built, 1);
      assert.deepEqual(await all((await trial.open()).history(id)), before);
      const own = before.filter(({ seq }) => seq >= place.seq && seq <= place.last);
      assert.deepEqual(textsOf(own), ["summary", "kept"]);
    },
  ),

  conformanceCase("key: a rejected append does not use up its key", ["S11b", "P8"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, []);
    await refusal(() => journal.append({ kind: "note", text: Number.NaN }, { key: "k" }), "RECORD_NOT_JSON");
    const { seq } = await journal.append(note("good"), { key: "k" });
    const history = await all(store.history(id));
    assert.deepEqual(textsOf(history), ["good"]);
    assert.equal(history.at(-1)!.seq, seq);
    assert.deepEqual(seqsOf(history), countFrom(1, history.length));
  }),

  conformanceCase(
    "key: known after the writer that used it was killed",
    ["S11b", "P1"],
    async (trial) => {
      let store = await trial.open();
      const id = newId();
      await (await store.create(id, [])).close();
      store = await trial.writeAndDie(store, id, [{ records: notes(2), key: "k" }]);
      const seq = (await all(store.history(id))).find((record) => record.key === "k")!.seq;
      const { journal } = await store.open(id);
      assert.deepEqual(numbersOf(await journal.append(notes(2), { key: "k" })), { seq, last: seq + 1 });
      assert.deepEqual(textsOf(await all(store.history(id))), ["note 1", "note 2"]);
    },
    { needs: (can) => can.dies },
  ),
];

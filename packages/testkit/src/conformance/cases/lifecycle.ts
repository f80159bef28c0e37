import assert from "node:assert/strict";
import { hostname } from "node:os";
import { newId } from "holdfast";
import { type Case, conformanceCase } from "../case.ts";
import { countFrom, kindsOf, note, notes, seqsOf } from "../notes.ts";
import { all, refusal } from "../trial.ts";

export const lifecycle: readonly Case[] = [
  conformanceCase(
    "opened: directly before a writer's first append, once, as a separate record",
    ["P5"],
    async (trial) => {
      const store = await trial.open({ app: "tester" });
      const id = newId();
      const journal = await store.create(id, [note("a")], { opened: { reason: "creating", n: 1 } });
      assert.deepEqual(kindsOf(await all(store.history(id))), ["segment", "note"]);
      const { seq } = await journal.append(notes(2));
      assert.equal(seq, 4);
      await journal.append(note("b"));
      await journal.close();
      const { journal: second } = await store.open(id, { app: "second", opened: { reason: "again" } });
      await second.append(note("c"), { key: "k" });
      await second.close();

      const history = await all(store.history(id));
      const kinds = ["segment", "note", "opened", "note", "note", "note", "closed", "opened", "note", "closed"];
      assert.deepEqual(kindsOf(history), kinds);
      assert.deepEqual(seqsOf(history), countFrom(1, kinds.length));
      const [first, later] = history.filter((record) => record.kind === "opened");
      assert.deepEqual(first?.["writer"], { pid: process.pid, host: hostname(), app: "tester" });
      assert.equal(first?.["unclean"], false);
      assert.equal(first?.["cutBytes"], 0);
      assert.equal(first?.["reason"], "creating");
      assert.equal(first?.["n"], 1);
      assert.equal(first?.unit, undefined);
      assert.deepEqual(later?.["writer"], { pid: process.pid, host: hostname(), app: "second" });
      assert.equal(later?.["reason"], "again");
      assert.equal(later?.key, undefined);
    },
  ),

  conformanceCase(
    "closed: the last record of a writer, with the mark that all before it is durable",
    ["S7"],
    async (trial) => {
      const store = await trial.open({ durability: "process" });
      const id = newId();
      const journal = await store.create(id, [note("a")]);
      await journal.append(notes(3));
      await journal.append(note("b"));
      await journal.close();
      const history = await all(store.history(id));
      const closed = history.at(-1)!;
      assert.equal(closed.kind, "closed");
      assert.equal(closed.synced, closed.seq - 1);
      assert.equal(history.filter((record) => record.kind === "closed").length, 1);
      for (const record of history.slice(1)) {
        assert.ok(record.synced === undefined || record.synced <= journal.head, `the mark of ${record.seq} is ahead`);
      }
      const [header] = history;
      assert.equal(header?.synced, 2, "the first records of a segment are durable before anybody sees them (S15)");
    },
  ),

  conformanceCase(
    "closed: written by a creator that appended nothing, never by a writer that only looked",
    ["S7"],
    async (trial) => {
      const store = await trial.open();
      const id = newId();
      await (await store.create(id, [note("a")])).close();
      assert.deepEqual(kindsOf(await all(store.history(id))), ["segment", "note", "closed"]);
      const { journal, recovery } = await store.open(id);
      assert.equal(recovery.unclean, false);
      await refusal(() => journal.append({ kind: "note", text: Number.NaN }), "RECORD_NOT_JSON");
      await journal.close();
      assert.deepEqual(kindsOf(await all(store.history(id))), ["segment", "note", "closed"]);
      assert.equal((await store.open(id)).recovery.unclean, false);
    },
  ),

  conformanceCase(
    "unclean: reported to everybody after a writer was killed, until the next one closes in order",
    ["P5", "C10"],
    async (trial) => {
      let store = await trial.open();
      const id = newId();
      await (await store.create(id, [note("a")])).close();
      store = await trial.writeAndDie(store, id, [{ records: [note("b")] }, { records: notes(2) }]);
      assert.equal((await store.read(id)).recovery.unclean, true);
      const verified = await store.verify(id);
      assert.equal(verified.unclean, true);
      assert.equal(verified.beingWritten, false);

      const looked = await store.open(id);
      assert.equal(looked.recovery.unclean, true);
      assert.deepEqual(looked.recovery.damaged, []);
      assert.deepEqual(looked.recovery.missing, []);
      assert.equal(looked.recovery.cutBytes, 0);
      assert.equal(looked.journal.durable, looked.journal.head);
      await looked.journal.close();

      const { journal, recovery } = await store.open(id);
      assert.equal(recovery.unclean, true, "one who only looked has changed nothing");
      await journal.append(note("c"));
      await journal.close();
      const history = await all(store.history(id));
      // A store may start a segment where a writer was killed.
      const kinds = kindsOf(history).filter((kind, i) => i === 0 || kind !== "segment");
      assert.deepEqual(kinds, [
        "segment",
        "note",
        "closed",
        "opened",
        "note",
        "note",
        "note",
        "opened",
        "note",
        "closed",
      ]);
      assert.deepEqual(
        history.filter((record) => record.kind === "opened").map((record) => record["unclean"]),
        [false, true],
      );
      assert.equal((await store.open(id)).recovery.unclean, false);
    },
    { needs: (can) => can.dies },
  ),
];

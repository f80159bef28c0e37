import assert from "node:assert/strict";
import { newId } from "holdfast";
import { type Case, conformanceCase } from "../case.ts";
import { countFrom, note, seqsOf, textsOf } from "../notes.ts";
import { all, later, refusal } from "../trial.ts";

const needsSync = { needs: (can: { readonly sync: boolean }) => can.sync };
const needsNoSync = { needs: (can: { readonly sync: boolean }) => !can.sync };

export const synchronous: readonly Case[] = [
  conformanceCase(
    "appendSync: the records are written and durable when it returns",
    ["P1"],
    async (trial) => {
      const store = await trial.open();
      const id = newId();
      const journal = await store.create(id, [note("a")]);
      const appended = journal.appendSync([note("b"), note("c")]);
      assert.equal(journal.head, appended.last);
      assert.ok(journal.durable >= appended.last);
      const history = await all((await trial.open()).history(id));
      assert.deepEqual(textsOf(history), ["a", "b", "c"]);
      assert.equal(history.find((record) => record["text"] === "b")?.seq, appended.seq);
      assert.equal(history.find((record) => record["text"] === "b")?.unit, 2);
    },
    needsSync,
  ),

  conformanceCase(
    "appendSync: keeps its place among appends that are in flight",
    ["S10"],
    async (trial) => {
      const store = await trial.open();
      const id = newId();
      const journal = await store.create(id, []);
      const first = later(journal.append(note("a")));
      const second = journal.appendSync(note("b"));
      const third = later(journal.append(note("c")));
      const appended = [await first, second, await third];
      const history = await all(store.history(id));
      assert.deepEqual(textsOf(history), ["a", "b", "c"]);
      assert.deepEqual(seqsOf(history), countFrom(1, history.length));
      const seqs = history.filter((record) => record.kind === "note").map((record) => record.seq);
      assert.deepEqual(
        appended.map(({ seq }) => seq),
        seqs,
      );
    },
    needsSync,
  ),

  conformanceCase(
    "appendSync: a key is the same key as append's",
    ["S11b"],
    async (trial) => {
      const store = await trial.open();
      const id = newId();
      const journal = await store.create(id, []);
      const first = journal.appendSync(note("a"), { key: "k" });
      assert.deepEqual(journal.appendSync(note("again"), { key: "k" }), first);
      assert.deepEqual(await journal.append(note("again"), { key: "k" }), first);
      const pending = later(journal.append(note("b"), { key: "l" }));
      const second = journal.appendSync(note("again"), { key: "l" });
      assert.deepEqual(await pending, second);
      assert.deepEqual(textsOf(await all(store.history(id))), ["a", "b"]);
    },
    needsSync,
  ),

  conformanceCase(
    "appendSync: throws for a bad record, and nothing is written",
    ["P8"],
    async (trial) => {
      const store = await trial.open();
      const id = newId();
      const journal = await store.create(id, []);
      await refusal(() => journal.appendSync([note("a"), { kind: "note", text: 1n }]), "RECORD_NOT_JSON");
      await refusal(() => journal.appendSync({ kind: "" }), "RECORD_INVALID");
      assert.deepEqual(textsOf(await all(store.history(id))), []);
      journal.appendSync(note("b"));
      const history = await all(store.history(id));
      assert.deepEqual(textsOf(history), ["b"]);
      assert.deepEqual(seqsOf(history), countFrom(1, history.length));
    },
    needsSync,
  ),

  conformanceCase(
    "flushSync: everything written is durable when it returns",
    ["P1"],
    async (trial) => {
      const store = await trial.open({ durability: "process" });
      const id = newId();
      const journal = await store.create(id, []);
      const pending = later(journal.append(note("a")));
      journal.flushSync();
      assert.equal(journal.durable, journal.head);
      await pending;
      assert.deepEqual(textsOf(await all(store.history(id))), ["a"]);
    },
    needsSync,
  ),

  conformanceCase(
    "appendSync, flushSync: NOT_SUPPORTED, and nothing is written",
    ["S28"],
    async (trial) => {
      const store = await trial.open();
      const id = newId();
      const journal = await store.create(id, []);
      await refusal(() => journal.appendSync(note("a")), "NOT_SUPPORTED");
      await refusal(() => journal.flushSync(), "NOT_SUPPORTED");
      await journal.append(note("b"));
      assert.deepEqual(textsOf(await all(store.history(id))), ["b"]);
    },
    needsNoSync,
  ),
];

import assert from "node:assert/strict";
import { type JournalRecord, newId } from "holdfast";
import { lineOf, openMemoryStore } from "holdfast/internal";
import type { JournalStore, VerbatimLine } from "holdfast/store";
import { type Case, conformanceCase } from "../case.ts";
import { epoch, note, noteSummariser, notes, textsOf, title } from "../notes.ts";
import { all, refusal } from "../trial.ts";

/** Skips a store without `adopt`. */
type Adopt = NonNullable<JournalStore["adopt"]>;

function adopterOf(store: JournalStore): Adopt | null {
  return store.adopt ? (id, lines) => store.adopt!(id, lines) : null;
}

/** A journal from another store, with two epochs, units and keys; `closed` or not. */
async function elsewhere(id: string, closed = true): Promise<JournalRecord[]> {
  const clock = () => Date.parse("2029-05-05T05:05:05.005Z");
  const store = await openMemoryStore({ summariser: noteSummariser, clock });
  const journal = await store.create(id, [title("elsewhere"), note("a")]);
  await journal.append([note("b"), note("c with ü and \u0000 and \ud800")], { key: "first" });
  await journal.epoch(() => [epoch("now"), note("d")]);
  await journal.append(notes(30), { key: "second" });
  if (closed) await journal.close();
  return all(store.history(id));
}

function linesOf(records: readonly JournalRecord[]): VerbatimLine[] {
  return records.map((record) => lineOf(record)!);
}

/** In small chunks. */
async function* some(lines: readonly VerbatimLine[]): AsyncGenerator<readonly VerbatimLine[]> {
  for (let at = 0; at < lines.length; at += 7) yield lines.slice(at, at + 7);
}

export const adopting: readonly Case[] = [
  conformanceCase("adopt: the same records, with their seqs, times and checksums, in all epochs", [], async (trial) => {
    const store = await trial.open();
    const adopt = adopterOf(store);
    if (!adopt) return;
    for (const closed of [true, false]) {
      const id = newId();
      const records = await elsewhere(id, closed);
      await adopt(id, some(linesOf(records)));
      for (const reader of [store, await trial.open()]) {
        assert.deepEqual(await all(reader.history(id)), records);
        const { records: current, recovery } = await reader.read(id);
        assert.deepEqual(current, records.slice(-current.length));
        assert.deepEqual(textsOf(current)[0], "d", "the current epoch, and nothing before it");
        assert.equal(recovery.unclean, !closed);
        const { records: count, damaged, missing } = await reader.verify(id);
        assert.deepEqual([count, damaged, missing], [records.length, [], []]);
      }
    }
  }),

  conformanceCase("adopt: an adopted session continues as if it had been written here", ["P4"], async (trial) => {
    const store = await trial.open({ summariser: noteSummariser });
    const adopt = adopterOf(store);
    if (!adopt) return;
    const id = newId();
    const records = await elsewhere(id);
    await adopt(id, some(linesOf(records)));
    assert.equal(await store.holder(id), null);
    const { journal } = await store.open(id);
    assert.equal(journal.head, records.length);
    const { seq } = await journal.append(note("twice"), { key: "second" });
    assert.equal(records[seq - 1]!.key, "second", "a key is still known");
    await journal.append(note("after"));
    await journal.epoch(() => [epoch("here"), note("last")]);
    await journal.close();
    const history = await all(store.history(id));
    assert.deepEqual(history.slice(0, records.length), records);
    assert.deepEqual(textsOf(history.slice(records.length)), ["after", "last"]);
    assert.deepEqual(
      history.map((record) => record.seq),
      history.map((_, index) => index + 1),
    );
    assert.deepEqual(textsOf((await store.read(id)).records), ["last"]);
  }),

  conformanceCase("adopt: lists show it unchanged", ["S20"], async (trial) => {
    const store = await trial.open({ summariser: noteSummariser });
    const adopt = adopterOf(store);
    if (!adopt) return;
    for (const closed of [true, false]) {
      const id = newId();
      const records = await elsewhere(id, closed);
      await adopt(id, some(linesOf(records)));
      for (const reader of [store, await trial.open({ summariser: noteSummariser })]) {
        const { sessions } = await reader.list();
        const listed = sessions.find((found) => found.id === id);
        const summary = { title: "elsewhere", notes: 34, last: "note 30" };
        assert.deepEqual(
          { ...listed, holder: null },
          { id, at: records[0]!.at, head: records.length, closed, summary, holder: null },
        );
      }
    }
  }),

  conformanceCase("adopt: all or nothing, and a failed attempt can be repeated", [], async (trial) => {
    const store = await trial.open();
    const adopt = adopterOf(store);
    if (!adopt) return;
    const id = newId();
    const lines = linesOf(await elsewhere(id));
    const looks: boolean[] = [];
    async function* watched(fails: boolean): AsyncGenerator<readonly VerbatimLine[]> {
      for await (const few of some(lines)) {
        yield few;
        looks.push(await store.has(id), (await store.list()).sessions.length > 0);
      }
      if (fails) throw new Error("the other store is away");
    }
    await assert.rejects(async () => adopt(id, watched(true)));
    assert.equal(await store.has(id), false);
    assert.deepEqual((await (await trial.open()).list()).sessions, []);
    await adopt(id, watched(false));
    assert.ok(!looks.includes(true), "it was there before it was whole");
    assert.equal((await all(store.history(id))).length, lines.length);
  }),

  conformanceCase("adopt: rejects a taken id, and lines that are not its journal", [], async (trial) => {
    const store = await trial.open();
    const adopt = adopterOf(store);
    if (!adopt) return;
    const id = newId();
    const lines = linesOf(await elsewhere(id));
    await refusal(() => adopt(id, some(lines.toReversed())), "RECORD_INVALID");
    await refusal(() => adopt(id, some([lines[0]!, lines[0]!])), "RECORD_INVALID");
    await refusal(() => adopt(id, some([])), "RECORD_INVALID");
    await refusal(() => adopt(newId(), some(lines)), "RECORD_INVALID");
    await refusal(() => adopt("../x", some(lines)), "ID_INVALID");
    assert.deepEqual((await store.list()).sessions, []);
    const journal = await store.create(id, [note("mine")]);
    await refusal(() => adopt(id, some(lines)), "SESSION_EXISTS");
    await journal.close();
    await refusal(() => adopt(id, some(lines)), "SESSION_EXISTS");
    assert.deepEqual(textsOf((await store.read(id)).records), ["mine"]);
    await store.delete(id);
    await adopt(id, some(lines));
    assert.equal((await all(store.history(id))).length, lines.length);
  }),
];

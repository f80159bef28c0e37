import assert from "node:assert/strict";
import { type JournalRecord, newId } from "holdfast";
import { type Case, conformanceCase } from "../case.ts";
import { countFrom, epoch, note, notes, seqsOf, textsOf } from "../notes.ts";
import { all, later, refusal } from "../trial.ts";

export const reading: readonly Case[] = [
  conformanceCase("read, history: need no lease, and show the same as opening", ["P6", "C16"], async (trial) => {
    const store = await trial.open();
    const other = await trial.open();
    const id = newId();
    const journal = await store.create(id, notes(2));
    await journal.append(note("third"));
    const { id: found, records, recovery } = await other.read(id);
    assert.equal(found, id);
    assert.deepEqual(textsOf(records), ["note 1", "note 2", "third"]);
    assert.deepEqual(recovery.damaged, []);
    assert.deepEqual(recovery.missing, []);
    assert.deepEqual(await all(other.history(id)), records);
    assert.deepEqual(await all(store.history(id)), records);
    await journal.append(note("fourth"));
    await journal.close();
    const read = await other.read(id);
    const opened = await other.open(id);
    assert.deepEqual(opened.records, read.records);
    assert.deepEqual(opened.recovery, read.recovery);
    assert.equal(opened.id, id);
  }),

  conformanceCase(
    "open: hands out each record of the epoch once, as it is read or at the end",
    ["P1"],
    async (trial) => {
      const store = await trial.open();
      const id = newId();
      const journal = await store.create(id, notes(2));
      await journal.epoch(() => [epoch("now"), note("carried")]);
      for (const text of countFrom(1, 300).map((i) => `later ${i}`)) void later(journal.append(note(text)));
      await journal.close();
      const read = await store.read(id);
      const seen: JournalRecord[] = [];
      const opened = await store.open(id, { onRecord: (record) => seen.push(record) });
      // A store that hands them out as they are read does not hand them out again.
      assert.deepEqual(seen.length > 0 ? seen : opened.records, read.records);
      assert.deepEqual(seen.length > 0 ? opened.records : seen, []);
      assert.equal(opened.journal.head, read.records.at(-1)!.seq);
      await opened.journal.append(note("after"));
      await opened.journal.close();
      assert.deepEqual(textsOf(await all(store.history(id))).slice(-2), ["later 300", "after"]);
    },
  ),

  conformanceCase("history: starts at any seq, over all epochs", [], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, notes(3));
    await journal.append(notes(2, "later"));
    await journal.epoch(() => [epoch("now"), note("carried")]);
    await journal.append(note("last"));
    const whole = await all(store.history(id));
    assert.deepEqual(seqsOf(whole), countFrom(1, journal.head));
    for (const from of countFrom(1, whole.length)) {
      assert.deepEqual(await all(store.history(id, from)), whole.slice(from - 1), `from ${from}`);
    }
    assert.deepEqual(await all(store.history(id, journal.head + 1)), []);
    assert.deepEqual(await all(store.history(id, journal.head + 1000)), []);
  }),

  conformanceCase("history: ends, and can be abandoned midway", [], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, notes(10));
    const collecting = later(
      (async () => {
        const seen: string[] = [];
        for await (const record of store.history(id)) {
          seen.push(...textsOf([record]));
          if (seen.length < 50) await journal.append(note("while reading"));
        }
        return seen;
      })(),
    );
    const seen = await trial.within(collecting, "the end of the history");
    assert.deepEqual(seen.slice(0, 10), textsOf(await all(store.history(id))).slice(0, 10));
    for await (const record of store.history(id)) {
      assert.equal(record.seq, 1);
      break;
    }
    await journal.append(note("goes on"));
    assert.equal(textsOf(await all(store.history(id))).at(-1), "goes on");
  }),

  conformanceCase("reading writes nothing", ["P2", "S8", "C16"], async (trial) => {
    const store = await trial.open();
    const other = await trial.open();
    const live = newId();
    const journal = await store.create(live, notes(2));
    await journal.append(note("third"));
    const ended = newId();
    await (await store.create(ended, notes(2))).close();
    for (const id of [live, ended]) {
      const before = await all(store.history(id));
      const verified = await store.verify(id);
      for (const reader of [store, other]) {
        await reader.read(id);
        await reader.verify(id);
        await reader.list();
        await reader.has(id);
        await reader.holder(id);
        await trial.follow(reader.follow(id, { signal: trial.signal })).next(before.length);
        await reader.gc();
      }
      assert.deepEqual(await all(store.history(id)), before);
      assert.deepEqual(await store.verify(id), verified);
    }
    const { seq } = await journal.append(note("fourth"));
    assert.equal((await all(other.history(live))).at(-1)!.seq, seq);
  }),

  conformanceCase("opening a session only to look at it writes nothing", ["P2"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    await (await store.create(id, notes(2))).close();
    const before = await all(store.history(id));
    for (const _ of countFrom(1, 3)) {
      const { journal } = await store.open(id, { opened: { reason: "looking" } });
      await journal.flush();
      await journal.close();
    }
    assert.deepEqual(await all(store.history(id)), before);
    const { recovery } = await store.open(id);
    assert.equal(recovery.unclean, false);
  }),

  conformanceCase("a missing session fails with SESSION_NOT_FOUND", [], async (trial) => {
    const store = await trial.open();
    await store.create(newId(), [note("of another")]);
    const id = newId();
    assert.equal(await store.has(id), false);
    assert.equal(await store.holder(id), null);
    const calls = [
      () => store.open(id),
      () => store.read(id),
      () => all(store.history(id)),
      () => all(store.follow(id, { signal: trial.signal })),
      () => store.verify(id),
      () => store.delete(id),
      ...(trial.capabilities.pack ? [() => store.pack(id)] : []),
    ];
    for (const call of calls) await trial.within(refusal(call, "SESSION_NOT_FOUND"), "SESSION_NOT_FOUND");
    assert.equal(await store.has(id), false);
    assert.equal((await store.list()).sessions.length, 1);
    await store.create(id, [note("now it is")]);
    assert.equal(await store.has(id), true);
  }),

  conformanceCase("verify: counts everything, and reports whether it is being written", ["S8"], async (trial) => {
    const store = await trial.open();
    const other = await trial.open();
    const id = newId();
    const journal = await store.create(id, notes(3));
    await journal.append(notes(2));
    await journal.epoch(() => [epoch("now")]);
    await journal.append(note("last"));
    const during = await other.verify(id);
    assert.equal(during.beingWritten, true);
    assert.equal(during.records, journal.head);
    assert.equal(during.cutBytes, 0);
    await journal.close();
    const after = await other.verify(id);
    assert.equal(after.id, id);
    assert.equal(after.beingWritten, false);
    assert.equal(after.records, (await all(store.history(id))).length);
    assert.ok(after.segments >= 1);
    assert.ok(
      after.bytes > during.bytes && during.bytes > during.records * 50,
      `${during.bytes}, ${after.bytes} bytes`,
    );
    assert.equal(after.unclean, false);
    assert.equal(after.cutBytes, 0);
    assert.deepEqual(after.damaged, []);
    assert.deepEqual(after.missing, []);
  }),
];

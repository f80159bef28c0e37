import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { newId } from "holdfast";
import { type Case, conformanceCase } from "../case.ts";
import { note, textsOf } from "../notes.ts";
import { all, refusal } from "../trial.ts";

export const deleting: readonly Case[] = [
  conformanceCase("delete: the session is gone for everybody, and only this one", ["S18"], async (trial) => {
    const store = await trial.open();
    const other = await trial.open();
    const [id, kept] = [newId(), newId()];
    for (const session of [id, kept]) await (await store.create(session, [note(session)])).close();
    await other.list();
    await store.delete(id);
    for (const reader of [store, other, await trial.open()]) {
      assert.equal(await reader.has(id), false);
      assert.equal(await reader.has(kept), true);
      assert.deepEqual(
        (await reader.list()).sessions.map((listed) => listed.id),
        [kept],
      );
      const calls = [
        () => reader.open(id),
        () => reader.read(id),
        () => all(reader.history(id)),
        () => all(reader.follow(id, { signal: trial.signal })),
        () => reader.verify(id),
        () => reader.delete(id),
      ];
      for (const call of calls) await trial.within(refusal(call, "SESSION_NOT_FOUND"), "SESSION_NOT_FOUND");
      assert.equal(await reader.holder(id), null);
    }
    assert.deepEqual(textsOf((await store.open(kept)).records), [kept]);
  }),

  conformanceCase(
    "delete: fails with SESSION_BUSY while somebody writes, and touches nothing",
    ["P6", "C16"],
    async (trial) => {
      const store = await trial.open();
      const other = await trial.open();
      const id = newId();
      const journal = await store.create(id, [note("a")]);
      for (const deleter of [store, other]) await refusal(() => deleter.delete(id), "SESSION_BUSY");
      await journal.append(note("b"));
      assert.deepEqual(textsOf(await all(other.history(id))), ["a", "b"]);
      await journal.close();
      await other.delete(id);
      assert.equal(await store.has(id), false);
    },
  ),

  conformanceCase("restore: a session comes back as it was, for everybody, and can go on", ["S18"], async (trial) => {
    const store = await trial.open();
    if (!store.trashed || !store.restore) return;
    const other = await trial.open();
    const [id, kept] = [newId(), newId()];
    for (const session of [id, kept]) await (await store.create(session, [note(session), note("more")])).close();
    await store.delete(id);
    // The trash counts in milliseconds: of two in the same one, nobody knows which came last.
    for (const deletedMs = Date.now(); Date.now() <= deletedMs; ) await sleep(1);
    await store.delete(kept);
    const ofThese = (found: readonly { readonly id: string }[]) => found.map((one) => one.id);
    assert.deepEqual(ofThese(await other.trashed!()), [kept, id], "the last one deleted comes first");
    for (const { trashedAt } of await other.trashed!()) assert.ok(!Number.isNaN(Date.parse(trashedAt)));
    await other.restore!(id);
    for (const reader of [store, other, await trial.open()]) {
      assert.equal(await reader.has(id), true);
      assert.deepEqual(ofThese((await reader.list()).sessions), [id]);
      assert.deepEqual(textsOf(await all(reader.history(id))), [id, "more"]);
      assert.deepEqual(ofThese(await reader.trashed!()), [kept]);
      assert.equal((await reader.verify(id)).damaged.length, 0);
    }
    const { journal } = await store.open(id);
    await journal.append(note("goes on"));
    await journal.close();
    assert.deepEqual(textsOf((await other.open(id)).records), [id, "more", "goes on"]);
  }),

  conformanceCase("restore: refuses what is not in the trash, and never replaces a session", ["S18"], async (trial) => {
    const store = await trial.open();
    if (!store.trashed || !store.restore) return;
    const id = newId();
    await refusal(() => store.restore!(id), "SESSION_NOT_FOUND");
    await refusal(() => store.restore!("../etc"), "ID_INVALID");
    await (await store.create(id, [note("first")])).close();
    await refusal(() => store.restore!(id), "SESSION_EXISTS");
    await store.delete(id);
    await sleep(5);
    const second = await store.create(id, [note("second")]);
    await refusal(() => store.restore!(id), "SESSION_EXISTS");
    await second.append(note("untouched"));
    await second.close();
    assert.deepEqual(textsOf(await all(store.history(id))), ["second", "untouched"]);
    // The last one deleted comes back; the one before it stays in the trash.
    await store.delete(id);
    await store.restore!(id);
    assert.deepEqual(textsOf(await all(store.history(id))), ["second", "untouched"]);
    assert.equal((await store.trashed!()).length, 1);
    await store.delete(id);
    await sleep(20);
    await store.gc({ graceMs: 0 });
    assert.deepEqual(await store.trashed!(), []);
    await refusal(() => store.restore!(id), "SESSION_NOT_FOUND");
  }),

  conformanceCase("gc: deletes what has been in the trash long enough, and reports it once", ["S18"], async (trial) => {
    const store = await trial.open();
    const [id, kept] = [newId(), newId()];
    for (const session of [id, kept]) await (await store.create(session, [note(session)])).close();
    await store.delete(id);
    const found = (removed: readonly string[]) => removed.filter((one) => one.includes(id));
    assert.deepEqual(found((await store.gc()).removed), [], "removed before its week was over");
    assert.deepEqual(found((await store.gc({ graceMs: 3_600_000 })).removed), [], "removed before its hour was over");
    await sleep(20);
    assert.deepEqual(found((await store.gc({ graceMs: 0 })).removed), [id]);
    assert.deepEqual(found((await store.gc({ graceMs: 0 })).removed), []);
    assert.equal(await store.has(id), false);
    assert.deepEqual(textsOf((await store.open(kept)).records), [kept]);
  }),

  conformanceCase("gc: never deletes a live session, however new, empty or idle", ["C17"], async (trial) => {
    const store = await trial.open();
    const other = await trial.open();
    const ids = [newId(), newId(), newId()];
    const live = await store.create(ids[0]!, []);
    await (await store.create(ids[1]!, [])).close();
    const idle = await store.create(ids[2]!, [note("a")]);
    await idle.append(note("b"));
    await idle.close();
    await sleep(20);
    for (const reader of [other, store]) {
      const { removed } = await reader.gc({ graceMs: 0 });
      for (const id of ids) assert.ok(!removed.some((name) => name.includes(id)), "a session was removed");
    }
    for (const id of ids) assert.equal(await other.has(id), true);
    await live.append(note("goes on"));
    assert.deepEqual(textsOf(await all(other.history(ids[0]!))), ["goes on"]);
    assert.deepEqual(textsOf((await other.open(ids[2]!)).records), ["a", "b"]);
  }),
];

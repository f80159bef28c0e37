import assert from "node:assert/strict";
import { newId } from "holdfast";
import { type Case, conformanceCase } from "../case.ts";
import { countFrom, epoch, note, notes, seqsOf, textsOf } from "../notes.ts";
import { all, refusal } from "../trial.ts";

export const packing: readonly Case[] = [
  conformanceCase(
    "pack: everything reads the same afterwards, and the journal continues",
    ["S17", "P2"],
    async (trial) => {
      const store = await trial.open();
      const other = await trial.open();
      const id = newId();
      const journal = await store.create(id, notes(20));
      for (const round of countFrom(1, 3)) {
        await journal.append(notes(100, `round ${round}, which says the same thing again and again:`));
        await journal.append(note("with a key"), { key: `k${round}` });
        await journal.epoch(() => [epoch("round"), note(`carried ${round}`)]);
      }
      await journal.append(note("live"));
      await refusal(() => store.pack(id), "SESSION_BUSY");
      await journal.close();
      const before = await all(store.history(id));
      const current = await store.read(id);
      const verified = await store.verify(id);

      const { segments, bytesBefore, bytesAfter } = await store.pack(id);
      assert.ok(segments >= 1);
      assert.ok(bytesAfter > 0 && bytesAfter < bytesBefore, `${bytesBefore} bytes became ${bytesAfter}`);
      for (const reader of [store, other, await trial.open()]) {
        assert.deepEqual(await all(reader.history(id)), before);
        assert.deepEqual(await all(reader.history(id, 50)), before.slice(49));
        assert.deepEqual((await reader.read(id)).records, current.records);
        assert.deepEqual((await reader.verify(id)).damaged, []);
        assert.equal((await reader.verify(id)).records, verified.records);
        const follower = trial.follow(reader.follow(id, { signal: trial.signal }));
        assert.deepEqual(await follower.next(before.length), before);
      }
      assert.equal((await store.pack(id)).segments, 0, "packed again");
      const { journal: next } = await store.open(id);
      await next.append(note("goes on"));
      const history = await all(store.history(id));
      assert.deepEqual(seqsOf(history), countFrom(1, history.length));
      assert.equal(textsOf(history).at(-1), "goes on");
    },
    { needs: (can) => can.pack },
  ),

  conformanceCase(
    "pack: NOT_SUPPORTED, and nothing is touched",
    ["S17"],
    async (trial) => {
      const store = await trial.open();
      const id = newId();
      await (await store.create(id, [note("a")])).close();
      const before = await all(store.history(id));
      await refusal(() => store.pack(id), "NOT_SUPPORTED");
      assert.deepEqual(await all(store.history(id)), before);
    },
    { needs: (can) => !can.pack },
  ),
];

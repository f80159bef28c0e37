import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { newId } from "holdfast";
import { cursorOf } from "holdfast/internal";
import { type Case, conformanceCase } from "../case.ts";
import { countFrom, epoch, kindsOf, note, notes, seqsOf } from "../notes.ts";
import { all, later, refusal } from "../trial.ts";

export const following: readonly Case[] = [
  conformanceCase("follow: every record once and in order, existing and new ones", ["C18", "S19"], async (trial) => {
    const store = await trial.open();
    const other = await trial.open();
    const id = newId();
    const journal = await store.create(id, notes(3));
    await journal.append(note("before"));
    const followers = [
      trial.follow(store.follow(id, { signal: trial.signal })),
      trial.follow(other.follow(id, { signal: trial.signal })),
      trial.follow(journal.follow({ signal: trial.signal })),
    ];
    const there = journal.head;
    for (const follower of followers) assert.deepEqual(seqsOf(await follower.next(there)), countFrom(1, there));
    for (const round of countFrom(1, 100)) {
      const appending = later(journal.append(round % 5 === 0 ? notes(4, `unit ${round}:`) : note(`round ${round}`)));
      if (round % 3 === 0) await appending;
      if (round % 10 === 0) await turn();
    }
    await journal.flush();
    const history = await all(store.history(id));
    for (const follower of followers) {
      assert.deepEqual(await follower.next(history.length - there), history.slice(there));
    }
  }),

  conformanceCase(
    "follow: in the writer's process a record comes when it is acknowledged",
    ["P1", "S19"],
    async (trial) => {
      const store = await trial.open({ durability: "power" });
      const id = newId();
      const journal = await store.create(id, []);
      const followers = [
        trial.follow(journal.follow({ signal: trial.signal })),
        trial.follow(store.follow(id, { signal: trial.signal })),
      ];
      const pending = countFrom(1, 50).map((i) => later(journal.append(note(`${i}`))));
      const { head } = journal;
      for (const seq of countFrom(1, head)) {
        for (const follower of followers) {
          const [record] = await follower.next(1);
          assert.equal(record?.seq, seq);
          assert.ok(journal.durable >= seq, `record ${seq} was given out, and only ${journal.durable} are durable`);
        }
      }
      await Promise.all(pending);
    },
  ),

  conformanceCase("follow: a unit comes as a whole", ["S6", "C18"], async (trial) => {
    const store = await trial.open();
    const other = await trial.open();
    const id = newId();
    const journal = await store.create(id, []);
    const followers = [store, other].map((reader) => trial.follow(reader.follow(id, { signal: trial.signal })));
    const writing = later(
      (async () => {
        for (const round of countFrom(1, 20)) await journal.append(notes(4, `round ${round}:`));
      })(),
    );
    for (const follower of followers) {
      await follower.next(2);
      for (const round of countFrom(1, 20)) {
        const [first] = await follower.next(1);
        assert.equal(first?.unit, 4, `round ${round} does not begin with a unit`);
        const there = await all(other.history(id, first.seq));
        assert.ok(there.length >= 4, `the rest of the unit at ${first.seq} is not there yet`);
        const rest = await follower.next(3);
        assert.deepEqual(seqsOf(rest), countFrom(first.seq + 1, 3));
      }
    }
    await writing;
  }),

  conformanceCase("follow: starts after a seq or after a cursor", ["S19"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, notes(5));
    const history = await all(store.history(id));
    const places = [0, ...seqsOf(history), ...history.map(cursorOf)];
    const followers = places.map((after) => {
      const seq = typeof after === "number" ? after : Number.parseInt(after, 10);
      return { seq, follower: trial.follow(store.follow(id, { after, signal: trial.signal })) };
    });
    await journal.append(note("new"));
    const whole = await all(store.history(id));
    for (const { seq, follower } of followers) {
      assert.deepEqual(await follower.next(whole.length - seq), whole.slice(seq));
    }
    const own = trial.follow(journal.follow({ after: cursorOf(whole.at(-2)!), signal: trial.signal }));
    assert.deepEqual(await own.next(1), whole.slice(-1));
  }),

  conformanceCase(
    "follow: a cursor whose record changed or is gone fails with CURSOR_STALE",
    ["S19"],
    async (trial) => {
      const store = await trial.open();
      const id = newId();
      const journal = await store.create(id, notes(3));
      const last = (await all(store.history(id))).at(-1)!;
      const otherCrc = last.crc === "00000000" ? "00000001" : "00000000";
      for (const after of [`${last.seq}-${otherCrc}`, `${last.seq + 1}-${last.crc}`, `2-${last.crc}`, "nonsense", ""]) {
        const following = trial.follow(store.follow(id, { after, signal: trial.signal })).next(1);
        await refusal(() => following, "CURSOR_STALE");
      }
      const own = trial.follow(journal.follow({ after: `${last.seq}-${otherCrc}`, signal: trial.signal })).next(1);
      await refusal(() => own, "CURSOR_STALE");
    },
  ),

  conformanceCase("follow: ends when its signal fires", ["S19"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, notes(3));
    for (const follow of [journal.follow.bind(journal), store.follow.bind(store, id)]) {
      const stop = new AbortController();
      const follower = trial.follow(follow({ signal: stop.signal }));
      await follower.next(4);
      const waiting = later(follower.rest());
      await turn();
      stop.abort();
      assert.deepEqual(await waiting, []);
      assert.deepEqual(await trial.follow(follow({ signal: AbortSignal.abort() })).rest(), []);
    }
    await journal.append(note("goes on"));
  }),

  conformanceCase("follow: continues over epochs, started before one or after", ["S19"], async (trial) => {
    const store = await trial.open();
    const other = await trial.open();
    const id = newId();
    const journal = await store.create(id, notes(2));
    const before = [store, other].map((reader) => trial.follow(reader.follow(id, { signal: trial.signal })));
    for (const follower of before) await follower.next(3);
    for (const round of countFrom(1, 5)) {
      await journal.append(note(`before ${round}`));
      await journal.epoch(() => [epoch("round"), note(`carried ${round}`)]);
      await journal.append(notes(2, `after ${round}:`));
    }
    const after = [store, other].map((reader) => trial.follow(reader.follow(id, { signal: trial.signal })));
    const history = await all(store.history(id));
    for (const follower of before) assert.deepEqual(await follower.next(history.length - 3), history.slice(3));
    for (const follower of after) assert.deepEqual(await follower.next(history.length), history);
  }),

  conformanceCase("follow: continues from one writer to the next", ["S19"], async (trial) => {
    const store = await trial.open();
    const reader = await trial.open();
    const id = newId();
    const journal = await store.create(id, [note("a")]);
    const follower = trial.follow(reader.follow(id, { signal: trial.signal }));
    await journal.close();
    const { journal: second } = await store.open(id);
    await second.append(note("b"));
    await store.close();
    const records = await follower.until((record) => record.kind === "closed" && record.seq > 3);
    assert.deepEqual(kindsOf(records), ["segment", "note", "closed", "opened", "note", "closed"]);
    assert.deepEqual(seqsOf(records), countFrom(1, 6));
  }),

  conformanceCase(
    "follow: a slow follower loses nothing, and one that stops affects no other",
    ["C18"],
    async (trial) => {
      const store = await trial.open();
      const id = newId();
      const journal = await store.create(id, []);
      const slow = trial.follow(store.follow(id, { signal: trial.signal }));
      const quitter = trial.follow(store.follow(id, { signal: trial.signal }));
      await slow.next(1);
      await quitter.next(1);
      await quitter.stop();
      for (const i of countFrom(1, 300)) await journal.append(note(`${i}`), { durability: "process" });
      await journal.flush();
      for (const seq of countFrom(2, journal.head - 1)) {
        const [record] = await slow.next(1);
        assert.equal(record?.seq, seq);
        if (seq % 50 === 0) await turn();
      }
    },
  ),

  conformanceCase("follow: ends when the session is deleted", ["S19"], async (trial) => {
    const store = await trial.open();
    const other = await trial.open();
    const id = newId();
    const journal = await store.create(id, [note("a")]);
    const followers = [store, other].map((reader) => trial.follow(reader.follow(id, { signal: trial.signal })));
    for (const follower of followers) await follower.next(2);
    await journal.close();
    for (const follower of followers) assert.deepEqual(kindsOf(await follower.next(1)), ["closed"]);
    const waiting = followers.map((follower) => later(follower.rest()));
    await turn();
    await store.delete(id);
    assert.deepEqual(await Promise.all(waiting), [[], []]);
  }),

  conformanceCase("follow: does not hang when its store is closed", [], async (trial) => {
    const store = await trial.open();
    const id = newId();
    await store.create(id, [note("a")]);
    const follower = trial.follow(store.follow(id, { signal: trial.signal }));
    await follower.next(2);
    const waiting = later(
      follower.rest().catch((error: unknown) => refusal(() => Promise.reject(error), "STORE_CLOSED")),
    );
    await turn();
    await trial.within(store.close(), "closing a store that somebody follows");
    await waiting;
  }),
];

import assert from "node:assert/strict";
import { newId } from "holdfast";
import type { ListHints } from "holdfast/internal";
import type { JournalStore, Listed, ListOptions, Summariser } from "holdfast/store";
import { type Case, conformanceCase } from "../case.ts";
import { countFrom, epoch, note, noteSummariser, notes, title } from "../notes.ts";
import { steppingClock, type Trial } from "../trial.ts";

/** All pages, in order. */
async function pages(store: JournalStore, options: ListOptions = {}): Promise<Listed[]> {
  const found: Listed[] = [];
  for (let after: string | undefined; ; ) {
    const page = await store.list(after === undefined ? options : { ...options, after });
    if (options.limit !== undefined)
      assert.ok(page.sessions.length <= options.limit, "a page is longer than its limit");
    found.push(...page.sessions);
    if (page.next === undefined) return found;
    assert.notEqual(page.next, after, "a list that does not move on");
    after = page.next;
  }
}

function idsOf(sessions: readonly Listed[]): string[] {
  return sessions.map((listed) => listed.id);
}

async function row(store: JournalStore, id: string): Promise<Listed> {
  const listed = (await pages(store)).find((found) => found.id === id);
  assert.ok(listed, `session ${id} is not in the list`);
  return listed;
}

/** Sessions written one after the other, oldest first. */
async function makeSessions(store: JournalStore, count: number): Promise<string[]> {
  const ids = countFrom(1, count).map(() => newId());
  for (const [i, id] of ids.entries()) {
    const journal = await store.create(id, [title(i % 2 === 0 ? "even" : "odd"), ...notes(i % 3)]);
    await journal.close();
  }
  return ids;
}

/** A second store at the same place, which has seen nothing yet. */
function cold(trial: Trial): Promise<JournalStore> {
  return trial.open({ summariser: noteSummariser });
}

/** A row with a nested object: each note is a member with the value "there". */
const tagSummariser: Summariser = {
  add(row, record) {
    const before = (row ?? { title: "", tags: {}, notes: 0 }) as {
      title: string;
      tags: Record<string, string>;
      notes: number;
    };
    if (record.kind === "title") return { ...before, title: String(record["text"]) };
    if (record.kind !== "note") return { ...before };
    return { ...before, notes: before.notes + 1, tags: { ...before.tags, [String(record["text"])]: "there" } };
  },
  carries: () => false,
};

const HOUR_MS = 3_600_000;

export const listing: readonly Case[] = [
  conformanceCase("list: an empty store has an empty list", [], async (trial) => {
    const store = await trial.open();
    assert.deepEqual(await store.list(), { sessions: [] });
    const id = newId();
    const journal = await store.create(id, []);
    await journal.close();
    assert.deepEqual(idsOf(await pages(store)), [id]);
    await store.delete(id);
    assert.deepEqual((await store.list()).sessions, []);
  }),

  conformanceCase("list: newest first, by the newest record", ["P7"], async (trial) => {
    const clock = steppingClock();
    const store = await trial.open({ clock });
    const ids = await makeSessions(store, 6);
    assert.deepEqual(idsOf(await pages(store)), ids.toReversed());
    const { journal } = await store.open(ids[2]!);
    await journal.append(note("touched"));
    const order = [ids[2], ids[5], ids[4], ids[3], ids[1], ids[0]];
    assert.deepEqual(idsOf(await pages(store)), order);
    await journal.close();
    assert.deepEqual(idsOf(await pages(store)), order);
    assert.deepEqual(idsOf(await pages(await cold(trial))), order);
  }),

  conformanceCase("list: a clock that was ahead and is corrected does not change the order", ["C23"], async (trial) => {
    const today = Date.parse("2030-01-01T00:00:00Z");
    const wrong = await trial.open({ clock: steppingClock(today + HOUR_MS), summariser: noteSummariser });
    const [first, second] = await makeSessions(wrong, 2);
    await wrong.close();
    const clock = steppingClock(today);
    const right = await trial.open({ clock, summariser: noteSummariser });
    const check = async (...order: (string | undefined)[]) => {
      for (const reader of [right, await cold(trial)]) {
        assert.deepEqual(idsOf(await pages(reader)), order);
        assert.deepEqual(idsOf(await pages(reader, { limit: 1 })), order, "in pages");
      }
    };
    await check(second, first);
    const [third] = await makeSessions(right, 1);
    await check(third, second, first);
    const listed = await row(right, third!);
    assert.equal(listed.at, (await right.read(third!)).records.at(-1)!.at, "the time is the clock's all the same");
    assert.ok(Date.parse(listed.at) < today + HOUR_MS);
    // Written to and still open; a row whose journal has continued; closed.
    const { journal } = await right.open(first!);
    await check(third, second, first);
    await journal.append(note("a"));
    await check(first, third, second);
    await journal.append(note("b"));
    await check(first, third, second);
    await journal.close();
    await check(first, third, second);
    const [fourth] = await makeSessions(right, 1);
    await check(fourth, first, third, second);
    // Correct again once the clock has passed all of that.
    clock.set(today + 24 * HOUR_MS);
    const later = await trial.open({ clock, summariser: noteSummariser });
    const [fifth] = await makeSessions(later, 1);
    await check(fifth, fourth, first, third, second);
    assert.equal((await row(later, fifth!)).stamp, undefined);
  }),

  conformanceCase("list: a clock that is set back meanwhile does not change the order", ["C23"], async (trial) => {
    const clock = steppingClock();
    const store = await trial.open({ clock });
    const [first, second, third] = await makeSessions(store, 3);
    const { journal: one } = await store.open(first!);
    const { journal: two } = await store.open(second!);
    const check = async (...order: (string | undefined)[]) => {
      assert.deepEqual(idsOf(await pages(store)), order);
      assert.deepEqual(idsOf(await pages(await cold(trial), { limit: 2 })), order, "in pages of a cold list");
    };
    await one.append(note("a"));
    await check(first, third, second);
    clock.set(clock() - HOUR_MS);
    await two.append(note("a"));
    await check(second, first, third);
    clock.set(clock() - HOUR_MS);
    await one.epoch(() => [epoch("now"), note("b")]);
    await check(first, second, third);
    await two.close();
    await check(second, first, third);
    clock.set(clock() - HOUR_MS);
    await one.close();
    await check(first, second, third);
    const [fourth] = await makeSessions(store, 1);
    await check(fourth, first, second, third);
  }),

  conformanceCase(
    "list: while clocks are wrong, pages neither lose nor repeat sessions",
    ["C23", "P7"],
    async (trial) => {
      const clock = steppingClock();
      const store = await trial.open({ clock });
      const ids: string[] = [];
      for (let i = 0; i < 6; i++) {
        clock.set(clock() - HOUR_MS);
        ids.push(...(await makeSessions(store, 1)));
      }
      const first = await store.list({ limit: 2 });
      assert.deepEqual(idsOf(first.sessions), [ids[5], ids[4]]);
      clock.set(clock() - HOUR_MS);
      const { journal } = await store.open(ids[4]!);
      await journal.append(note("touched"));
      await journal.close();
      const second = await store.list({ limit: 2, after: first.next! });
      assert.deepEqual(idsOf(second.sessions), [ids[3], ids[2]]);
      const hints = { since: (await row(store, ids[5]!)).at };
      const found = (await pages(store, { hints, limit: 2 })).filter(({ at }) => at >= hints.since);
      assert.deepEqual(
        idsOf(found),
        [ids[5], ids[3], ids[2], ids[1], ids[0]],
        "a hint is about the time, not the order",
      );
    },
  ),

  conformanceCase(
    "list: a session whose writer was killed, with a clock that is behind all others, was written to last",
    ["C23", "S20"],
    async (trial) => {
      // Years ahead of the clock of the writer that dies.
      const options = { clock: steppingClock(), summariser: noteSummariser };
      let store = await trial.open(options);
      const [first, second] = await makeSessions(store, 2);
      const steps = [{ records: [note("a")] }, { records: [note("b")] }];
      store = await trial.writeAndDie(store, first!, steps, options);
      for (const reader of [store, await cold(trial)]) assert.deepEqual(idsOf(await pages(reader)), [first, second]);
      const [third] = await makeSessions(await trial.open({ clock: steppingClock(), summariser: noteSummariser }), 1);
      for (const reader of [store, await cold(trial)])
        assert.deepEqual(idsOf(await pages(reader)), [third, first, second]);
    },
    { needs: (can) => can.dies },
  ),

  conformanceCase("list: a row has the newest seq, its time, and whether its writer ended", ["C10"], async (trial) => {
    const store = await trial.open();
    const other = await trial.open();
    const id = newId();
    const check = async (closed: boolean) => {
      const { records } = await store.read(id);
      const newest = records.at(-1)!;
      for (const reader of [store, other]) {
        const listed = await row(reader, id);
        assert.equal(listed.head, newest.seq);
        assert.equal(listed.at, newest.at);
        assert.equal(listed.closed, closed);
        assert.equal(listed.summary, null);
      }
    };
    const journal = await store.create(id, []);
    await check(false);
    await journal.append(notes(3));
    await check(false);
    await journal.epoch(() => [epoch("now")]);
    await check(false);
    await journal.close();
    await check(true);
    const { journal: second } = await store.open(id);
    await check(true);
    await second.append(note("again"));
    await check(false);
  }),

  conformanceCase("list: limit and next return every session once", ["P7"], async (trial) => {
    const store = await trial.open();
    const ids = await makeSessions(store, 7);
    for (const limit of [1, 2, 3, 7, 8]) {
      const found = idsOf(await pages(store, { limit }));
      assert.deepEqual(found.toSorted(), ids.toSorted(), `in pages of ${limit}`);
      assert.deepEqual(found, idsOf(await pages(store)));
    }
    assert.equal((await store.list({ limit: 3 })).sessions.length, 3);
  }),

  conformanceCase("list: sessions of the same instant are all listed, in pages too", ["P7"], async (trial) => {
    const store = await trial.open({ clock: () => Date.parse("2030-01-01T00:00:00Z") });
    const ids = await makeSessions(store, 5);
    assert.deepEqual(idsOf(await pages(store, { limit: 2 })).toSorted(), ids.toSorted());
  }),

  conformanceCase(
    "list: while sessions appear, change and disappear, pages neither lose nor repeat the others",
    ["P7"],
    async (trial) => {
      const store = await trial.open({ clock: steppingClock() });
      const ids = await makeSessions(store, 9);
      const first = await store.list({ limit: 3 });
      assert.deepEqual(idsOf(first.sessions), [ids[8], ids[7], ids[6]]);
      const { journal } = await store.open(ids[7]!);
      await journal.append(note("touched"));
      await journal.close();
      await store.delete(ids[6]!);
      await makeSessions(store, 2);
      const second = await store.list({ limit: 3, after: first.next! });
      assert.deepEqual(idsOf(second.sessions), [ids[5], ids[4], ids[3]]);
      await store.delete(ids[3]!);
      await store.delete(ids[1]!);
      const third = await store.list({ limit: 3, after: second.next! });
      assert.deepEqual(idsOf(third.sessions), [ids[2], ids[0]]);
    },
  ),

  conformanceCase("list: the summary is the summariser's result over all records", ["S20"], async (trial) => {
    const store = await trial.open({ summariser: noteSummariser });
    const id = newId();
    const journal = await store.create(id, [title("first title"), note("a")]);
    const check = async (expected: { title: string; notes: number; last: string }) => {
      assert.deepEqual((await row(store, id)).summary, expected);
      assert.deepEqual((await row(await cold(trial), id)).summary, expected);
    };
    await check({ title: "first title", notes: 1, last: "a" });
    await journal.append([note("b"), note("c")]);
    await check({ title: "first title", notes: 3, last: "c" });
    await journal.append(title("second title"));
    await journal.append(note("d"));
    await check({ title: "second title", notes: 4, last: "d" });
    await journal.epoch(() => [epoch("now"), note("e")]);
    await check({ title: "second title", notes: 5, last: "e" });
    await journal.append(note("f"));
    await journal.close();
    await check({ title: "second title", notes: 6, last: "f" });
    const { journal: reopened } = await store.open(id);
    await reopened.append(note("g"));
    await check({ title: "second title", notes: 7, last: "g" });
  }),

  conformanceCase("list: header, closed and what the summariser names carry the summary", ["S20"], async (trial) => {
    const store = await trial.open({ summariser: noteSummariser });
    const id = newId();
    const journal = await store.create(id, [title("t"), note("a")]);
    await journal.append(note("b"));
    await journal.epoch(() => [epoch("now"), note("c")]);
    await journal.close();
    const carried: [string, unknown][] = [];
    for await (const record of store.history(id)) {
      if (record.summary !== undefined) carried.push([record.kind, record.summary]);
    }
    assert.deepEqual(carried.slice(1), [
      ["title", { title: "t", notes: 0, last: "" }],
      ["segment", { title: "t", notes: 2, last: "b" }],
      ["closed", { title: "t", notes: 3, last: "c" }],
    ]);
    assert.equal(carried[0]![0], "segment");
  }),

  conformanceCase("list: where selects the sessions whose summary has these members", ["P7"], async (trial) => {
    const store = await trial.open({ summariser: noteSummariser, clock: steppingClock() });
    const ids = await makeSessions(store, 9);
    const expect = (keep: (i: number) => boolean) => ids.filter((_, i) => keep(i)).toReversed();
    for (const reader of [store, await cold(trial)]) {
      const find = async (options: ListOptions) => idsOf(await pages(reader, options));
      assert.deepEqual(
        await find({ where: { title: "odd" } }),
        expect((i) => i % 2 === 1),
      );
      assert.deepEqual(
        await find({ where: { title: "even" }, limit: 2 }),
        expect((i) => i % 2 === 0),
      );
      assert.deepEqual(
        await find({ where: { title: "even", notes: 2 } }),
        expect((i) => i % 2 === 0 && i % 3 === 2),
      );
      assert.deepEqual(
        await find({ where: { notes: 0 } }),
        expect((i) => i % 3 === 0),
      );
      assert.deepEqual(await find({ where: { title: "neither" } }), []);
      assert.deepEqual(await find({ where: { notes: "0" } }), []);
    }
  }),

  conformanceCase("list: a hint drops no match", ["P7"], async (trial) => {
    const store = await trial.open({ summariser: tagSummariser, clock: steppingClock() });
    const ids = await makeSessions(store, 9);
    const { journal } = await store.open(ids[4]!);
    await journal.append([note("with \u0000 in it"), note('and "quotes" % _')]);
    const rows = await pages(store);
    const middle = rows[4]!.at;
    const asked: [ListHints, (listed: Listed, row: { title: string; notes: number; tags: object }) => boolean][] = [
      [{ since: middle }, ({ at }) => at >= middle],
      [{ until: middle }, ({ at }) => at < middle],
      [{ within: { tags: { "note 1": "there" } } }, (_, { notes }) => notes > 0],
      [{ within: { tags: { 'and "quotes" % _': "there" } } }, ({ id }) => id === ids[4]],
      [{ within: { tags: { "with \u0000 in it": "there" } } }, ({ id }) => id === ids[4]],
      [{ within: { tags: {} } }, () => true],
      [{ noneOf: { title: ["odd", "neither"] } }, (_, { title: found }) => found === "even"],
      [{ noneOf: { missing: ["odd"] } }, () => true],
      [{ anyOf: ["missing", "notes"] }, (_, { notes }) => notes > 0],
      [{ anyOf: ["tags", "notes"] }, (_, { notes }) => notes > 0],
      [{ anyOf: ["title"] }, () => true],
      [{ since: middle, noneOf: { title: ["even"] } }, ({ at }, row) => at >= middle && row.title === "odd"],
    ];
    for (const reader of [store, await trial.open({ summariser: tagSummariser })]) {
      for (const [hints, fits] of asked) {
        const expected = rows.filter((listed) => fits(listed, listed.summary as never));
        for (const limit of [100, 2]) {
          const found = (await pages(reader, { hints, limit })).filter((listed) =>
            fits(listed, listed.summary as never),
          );
          assert.deepEqual(idsOf(found), idsOf(expected), `${JSON.stringify(hints)} in pages of ${limit}`);
        }
      }
    }
  }),

  conformanceCase("list: a row with a holder agrees with holder()", ["S14"], async (trial) => {
    const store = await trial.open();
    const other = await trial.open();
    const id = newId();
    const check = async () => {
      for (const reader of [store, other]) {
        const listed = await row(reader, id);
        if (listed.holder !== undefined) assert.deepEqual(listed.holder, await reader.holder(id));
      }
    };
    const journal = await store.create(id, [], { app: "first" });
    await check();
    await journal.append(note("a"));
    await check();
    await journal.close();
    await check();
    const { journal: second } = await other.open(id, { app: "second" });
    await check();
    await second.append(note("b"));
    await check();
  }),

  conformanceCase(
    "list: shows a session whose writer was killed, up to its last record",
    ["C10", "S20"],
    async (trial) => {
      const options = { summariser: noteSummariser };
      let store = await trial.open(options);
      const id = newId();
      const journal = await store.create(id, [title("t"), note("a")]);
      await journal.close();
      await row(store, id);
      const steps = [{ records: [note("b")] }, { records: [note("c"), note("d")] }];
      store = await trial.writeAndDie(store, id, steps, options);
      for (const reader of [store, await cold(trial)]) {
        const listed = await row(reader, id);
        assert.equal(listed.closed, false);
        assert.equal(listed.head, (await store.read(id)).records.at(-1)!.seq);
        assert.deepEqual(listed.summary, { title: "t", notes: 4, last: "d" });
      }
    },
    { needs: (can) => can.dies },
  ),

  conformanceCase(
    "list: lists 1,000 sessions, newest first",
    ["P7", "C27"],
    async (trial) => {
      const clock = steppingClock();
      const store = await trial.open({ clock, summariser: noteSummariser });
      const ids = await makeSessions(store, 1000);
      assert.deepEqual(idsOf(await pages(store)), ids.toReversed());
      const other = await cold(trial);
      assert.deepEqual(idsOf(await pages(other, { limit: 300 })), ids.toReversed());
      assert.equal((await pages(other, { where: { title: "odd" }, limit: 64 })).length, 500);
    },
    { heavy: true },
  ),
];

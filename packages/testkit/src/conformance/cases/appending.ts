import assert from "node:assert/strict";
import { newId } from "holdfast";
import type { NewRecord } from "holdfast/store";
import { type Case, conformanceCase } from "../case.ts";
import { countFrom, note, only, seqsOf, textsOf } from "../notes.ts";
import { all, later, steppingClock } from "../trial.ts";

/** Values that JSON preserves, but careless stores do not. */
const AWKWARD: NewRecord = {
  kind: "awkward",
  empty: "",
  nothing: null,
  no: false,
  zero: 0,
  small: 5e-324,
  large: Number.MAX_VALUE,
  safe: Number.MAX_SAFE_INTEGER,
  nested: { list: [[], {}, [null, [1.5, "x"]]], "": "empty name", "a.b": "dot", $ref: "#" },
  quotes: `"quoted" 'single' \\ / \u0000 \b\f\n\r\t\u2028\u2029`,
  trailer: '{"seq":1,"kind":"x","crc":"00000000"}\n{"seq":2',
  text: "e\u0301 \u00e9 \u{1f9ea} \u200f\u202e\u001b[31mred\u001b[0m <script>",
  half: "\ud800 alone",
};

export const appending: readonly Case[] = [
  conformanceCase("append: others read acknowledged records unchanged", ["P1"], async (trial) => {
    const store = await trial.open();
    const other = await trial.open();
    const id = newId();
    const journal = await store.create(id, [note("first")]);
    const appended = await journal.append({ text: "second", kind: "note", extra: [1, { two: 3 }] });
    assert.equal(appended.last, appended.seq);
    assert.equal(journal.head, appended.last);
    const record = (await other.read(id)).records.at(-1)!;
    assert.equal(record.seq, appended.seq);
    assert.equal(record.kind, "note");
    assert.equal(record["text"], "second");
    assert.deepEqual(record["extra"], [1, { two: 3 }]);
    assert.equal(record.unit, undefined);
    assert.match(record.at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.match(record.crc, /^[0-9a-f]{8}$/);
  }),

  conformanceCase("append: acknowledged records survive closing and reopening", ["P1", "P2"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, [note("created")]);
    for (const text of ["a", "b", "c"]) await journal.append(note(text));
    const before = await all(store.history(id));
    await store.close();
    const again = await trial.open();
    const { records, journal: reopened, recovery } = await again.open(id);
    assert.deepEqual(textsOf(records), ["created", "a", "b", "c"]);
    assert.deepEqual(records.slice(0, before.length), before);
    assert.equal(reopened.head, records.at(-1)!.seq);
    // Nothing depends on the last record of the previous writer, `closed`.
    assert.ok(reopened.durable >= before.at(-1)!.seq);
    assert.deepEqual(recovery, { unclean: false, cutBytes: 0, damaged: [], missing: [] });
    await reopened.append(note("d"));
    await again.close();
    const texts = textsOf(await all((await trial.open()).history(id)));
    assert.deepEqual(texts, ["created", "a", "b", "c", "d"]);
  }),

  conformanceCase("append: concurrent calls are numbered in call order, without gaps", ["P2", "S10"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, [note("created")]);
    const expected: string[] = ["created"];
    const units = countFrom(0, 200).map((i) => countFrom(0, i % 7 === 0 ? 3 : 1).map((j) => `${i}.${j}`));
    const pending = units.map((texts) => {
      expected.push(...texts);
      return later(journal.append(texts.map(note)));
    });
    const appended = await Promise.all(pending);
    for (const [i, { seq, last }] of appended.entries()) {
      assert.equal(last - seq + 1, units[i]!.length);
      if (i > 0) assert.equal(seq, appended[i - 1]!.last + 1);
    }
    const records = await all(store.history(id));
    assert.deepEqual(seqsOf(records), countFrom(1, records.length));
    assert.deepEqual(textsOf(records), expected);
    assert.equal(records.find((record) => record["text"] === "7.0")?.seq, appended[7]!.seq);
    assert.equal(journal.head, records.length);
  }),

  conformanceCase("append: sessions of one store do not mix", [], async (trial) => {
    const store = await trial.open();
    const ids = [newId(), newId(), newId()];
    const journals = await Promise.all(ids.map((id) => store.create(id, [note(id)])));
    const pending = countFrom(0, 30).map((i) => later(journals[i % 3]!.append(note(`${ids[i % 3]} ${i}`))));
    await Promise.all(pending);
    for (const id of ids) {
      const records = await all(store.history(id));
      assert.deepEqual(seqsOf(records), countFrom(1, records.length));
      assert.equal(textsOf(records).length, 11);
      assert.ok(textsOf(records).every((text) => text.startsWith(id)));
    }
  }),

  conformanceCase("append: changes the caller makes after the call are not stored", ["S10"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, [note("created")]);
    const record = { kind: "note", text: "before", list: [1] };
    const unit = [record, { kind: "note", text: "second" }];
    const pending = later(journal.append(unit));
    record.text = "after";
    record.list.push(2);
    unit[1]!.text = "changed";
    unit.pop();
    await pending;
    const records = (await store.read(id)).records;
    assert.deepEqual(textsOf(records), ["created", "before", "second"]);
    assert.deepEqual(records.find((found) => found["text"] === "before")?.["list"], [1]);
  }),

  conformanceCase("append: a reader that changes a record does not affect other readers", [], async (trial) => {
    const store = await trial.open();
    const id = newId();
    await store.create(id, [{ kind: "note", text: "kept", list: [1, 2] }]);
    const spoil = (record: object | undefined) => {
      assert.ok(record && "list" in record);
      Reflect.set(record, "text", "spoilt");
      Reflect.set(record.list as object, 0, "spoilt");
    };
    spoil((await store.read(id)).records.at(-1));
    spoil((await all(store.history(id))).at(-1));
    const [first, second] = [store.follow(id, { signal: trial.signal }), store.follow(id, { signal: trial.signal })];
    spoil((await trial.follow(first).next(2)).at(-1));
    const seen = [
      (await store.read(id)).records.at(-1),
      (await all(store.history(id))).at(-1),
      (await trial.follow(second).next(2)).at(-1),
    ];
    for (const record of seen) {
      assert.equal(record?.["text"], "kept");
      assert.deepEqual(record?.["list"], [1, 2]);
    }
  }),

  conformanceCase("append: every JSON value comes back unchanged", ["C25", "S5"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, []);
    await journal.append({ ...AWKWARD, dropped: undefined });
    await journal.append(note("after"));
    await store.close();
    const records = await all((await trial.open()).history(id));
    const { seq: _, at: __, crc: ___, synced: ____, ...members } = only(records, "awkward");
    assert.deepEqual(members, AWKWARD);
    assert.deepEqual(textsOf(records), ["after"]);
  }),

  conformanceCase("append: unknown kinds are kept, complete and in place", ["P10", "C21"], async (trial) => {
    const store = await trial.open();
    const id = newId();
    const journal = await store.create(id, [note("a")]);
    await journal.append({ kind: "x-from-the-future", format: "9.9", payload: { deep: [1] } });
    await journal.append({ kind: "x-must-be-known", must: true });
    await journal.append(note("b"));
    await store.close();
    const again = await trial.open();
    const { records, journal: reopened } = await again.open(id);
    const future = only(records, "x-from-the-future");
    assert.equal(future["format"], "9.9");
    assert.deepEqual(future["payload"], { deep: [1] });
    assert.equal(only(records, "x-must-be-known").must, true);
    assert.deepEqual(textsOf(records), ["a", "b"]);
    await reopened.append(note("c"));
    const history = await all(again.history(id));
    assert.deepEqual(seqsOf(history), countFrom(1, history.length));
  }),

  conformanceCase(
    "append: the time is the clock's, and setting the clock back keeps the order",
    ["C23"],
    async (trial) => {
      const clock = steppingClock();
      const start = clock();
      const store = await trial.open({ clock });
      const id = newId();
      const journal = await store.create(id, [note("a")]);
      await journal.append(note("b"));
      clock.set(start - 3_600_000);
      await journal.append(note("c"));
      await store.close();
      clock.set(start - 7_200_000);
      const again = await trial.open({ clock });
      const { journal: reopened, records } = await again.open(id);
      assert.deepEqual(textsOf(records), ["a", "b", "c"]);
      await reopened.append(note("d"));
      const history = await all(again.history(id));
      assert.deepEqual(textsOf(history), ["a", "b", "c", "d"]);
      assert.deepEqual(seqsOf(history), countFrom(1, history.length));
      const followed = await trial.follow(again.follow(id, { signal: trial.signal })).next(history.length);
      assert.deepEqual(seqsOf(followed), seqsOf(history));
      const at = (text: string) => Date.parse(history.find((record) => record["text"] === text)!.at);
      assert.ok(at("a") > start && at("a") < start + 60_000);
      assert.ok(at("c") < start && at("c") > start - 3_600_000);
      assert.ok(at("d") < start - 3_600_000);
    },
  ),

  conformanceCase("flush: everything written is durable afterwards", ["P1"], async (trial) => {
    const store = await trial.open({ durability: "process" });
    const id = newId();
    const journal = await store.create(id, [note("a")]);
    const pending = [later(journal.append(note("b"))), later(journal.append(note("c")))];
    const { head } = journal;
    await journal.flush();
    assert.ok(journal.durable >= head, `durable is ${journal.durable}, and ${head} was written before the flush`);
    await Promise.all(pending);
    const { last } = await journal.append(note("d"), { durability: "power" });
    assert.ok(journal.durable >= last, `durable is ${journal.durable}, and ${last} was acknowledged with power`);
    assert.ok(journal.durable <= journal.head);
    await journal.flush();
    assert.equal(journal.durable, journal.head);
    assert.deepEqual(textsOf(await all(store.history(id))), ["a", "b", "c", "d"]);
  }),
];

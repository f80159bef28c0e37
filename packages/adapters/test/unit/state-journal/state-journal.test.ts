import type { JournalRecord } from "holdfast";
import { newId } from "holdfast";
import { Memory, openMemoryStore } from "holdfast/internal";
import type { JournalStore } from "holdfast/store";
import { describe, expect, test, vi } from "vitest";
import { type FoldedState, StateJournal, type StateJournalParts } from "../../../src/state-journal/state-journal.ts";

/** A session that is written by change: what each caller learns, and what is stored. */

class Words implements FoldedState {
  end: FoldedState["end"] = null;
  readonly said: string[] = [];

  read({ kind, seq, at, word }: JournalRecord): void {
    this.end = { seq, at };
    if (kind === "test.word") this.said.push(String(word));
  }
}

type Plan = Parameters<StateJournal<Words>["write"]>[0];

const says = (word: string): Plan => ({
  plan: (state) => {
    state.said.push(word);
    return [{ kind: "test.word", word }];
  },
});

class Place implements AsyncDisposable {
  readonly session = newId();
  readonly #memory = new Memory();
  readonly #stores: JournalStore[] = [];

  /** The session in a process of its own. */
  async process(
    more: Partial<StateJournalParts<Words>> = {},
  ): Promise<{ journals: JournalStore; words: StateJournal<Words> }> {
    const journals = await openMemoryStore({ memory: this.#memory });
    this.#stores.push(journals);
    const words = new StateJournal<Words>({
      ...{ journals, session: this.session, app: "test", releaseMs: 3_600_000, empty: () => new Words() },
      attributes: { kind: "session", dialect: "anthropic", app: "test" },
      ...more,
    });
    return { journals, words };
  }

  /** What is stored, as another process reads it. */
  async stored(): Promise<string[]> {
    const { words } = await this.process();
    return (await words.read())?.said ?? [];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const store of this.#stores) await store.close();
  }
}

test("the first change creates the session; one that has nothing to write does not", async () => {
  await using place = new Place();
  const { words, journals } = await place.process();
  expect([await words.read(), words.inMemory, words.isIdle]).toEqual([null, null, true]);
  await words.write({ plan: () => [] });
  expect(await words.read()).toBe(null);
  await words.write(says("one"));
  expect(words.isIdle, "its lease is kept").toBe(false);
  const append = vi.spyOn(journals, "open");
  await words.write(says("two"));
  await words.write({ plan: () => [] });
  expect(append).not.toHaveBeenCalled();
  expect(words.inMemory?.said).toEqual(["one", "two"]);
  expect(await words.read()).toBe(words.inMemory);
  expect(await place.stored()).toEqual(["one", "two"]);
});

test("changes that wait are appended together, in their order", async () => {
  await using place = new Place();
  const { words } = await place.process();
  await words.write(says("0"));
  const all = Array.from({ length: 130 }, (_, n) => String(n + 1));
  const done: string[] = [];
  await Promise.all(all.map((word) => words.write(says(word)).then(() => done.push(word))));
  expect(done).toEqual(all);
  expect(await place.stored()).toEqual(["0", ...all]);
});

test("a change that fails fails alone: when it is made, when it is planned, and when it is too large", async () => {
  await using place = new Place();
  const { words } = await place.process();
  const unready: Plan = { ...says("unready"), ready: Promise.reject(new Error("not serialized")) };
  const unplanned: Plan = {
    plan: () => {
      throw new Error("not planned");
    },
  };
  const large: Plan = { plan: () => [{ kind: "test.word", word: "x".repeat(100_000_000) }] };
  for (const round of ["a", "b"]) {
    const results = await Promise.allSettled([
      words.write(says(`${round}1`)),
      words.write(unready),
      words.write(says(`${round}2`)),
      words.write(unplanned),
      words.write(large),
      words.write(says(`${round}3`)),
    ]);
    expect(results.map((one) => (one.status === "rejected" ? String(one.reason).slice(0, 40) : "done"))).toEqual([
      "done",
      "Error: not serialized",
      "done",
      "Error: not planned",
      expect.stringMatching(/HoldfastError/),
      "done",
    ]);
  }
  expect(await place.stored()).toEqual(["a1", "a2", "a3", "b1", "b2", "b3"]);
  expect((await words.read())?.said).toEqual(["a1", "a2", "a3", "b1", "b2", "b3"]);
  await expect(words.write(unready)).rejects.toThrow("not serialized");
  await expect(words.write(large)).rejects.toMatchObject({ code: "RECORD_TOO_LARGE" });
});

describe("two processes", () => {
  test("see what the other has written, also since they looked last", async () => {
    await using place = new Place();
    const [one, two] = [await place.process(), await place.process()];
    await one.words.write(says("one"));
    expect((await two.words.read())?.said).toEqual(["one"]);
    await one.words.write(says("two"));
    const read = vi.spyOn(two.journals, "read");
    expect((await two.words.read())?.said, "only what is new is read").toEqual(["one", "two"]);
    expect(read).not.toHaveBeenCalled();
    await one.words.release();
    expect(one.words.isIdle).toBe(true);
    await two.words.write(says("three"));
    await two.words.release();
    await one.words.write(says("four"));
    expect(one.words.inMemory?.said).toEqual(["one", "two", "three", "four"]);
    expect(await place.stored()).toEqual(["one", "two", "three", "four"]);
  });

  test("write one after the other: who may not wait is told at once, and who may waits", async () => {
    await using place = new Place();
    const [one, two, patient] = [
      await place.process(),
      await place.process(),
      await place.process({ waitMs: 3_600_000 }),
    ];
    await one.words.write(says("one"));
    await expect(two.words.write(says("two"))).rejects.toMatchObject({ code: "SESSION_BUSY" });
    const waits = patient.words.write(says("three"));
    await one.words.release();
    await waits;
    expect(await place.stored()).toEqual(["one", "three"]);
  });

  test("a session that the other has just created is not created twice", async () => {
    await using place = new Place();
    const [one, two] = [await place.process(), await place.process()];
    const { open } = two.journals;
    two.journals.open = async (...all) => {
      two.journals.open = open;
      await expect(open.apply(two.journals, all)).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
      await one.words.write(says("one"));
      await one.words.release();
      return open.apply(two.journals, [newId(), all[1]]);
    };
    await two.words.write(says("two"));
    expect(two.words.inMemory?.said).toEqual(["one", "two"]);
    expect(await place.stored()).toEqual(["one", "two"]);
  });

  test("a session that was deleted and made again is read from its beginning", async () => {
    await using place = new Place();
    const [one, two] = [await place.process(), await place.process()];
    await one.words.write(says("old"));
    expect((await two.words.read())?.said).toEqual(["old"]);
    await one.words.delete();
    expect([await one.words.read(), await two.words.read()]).toEqual([null, null]);
    await one.words.delete();
    await one.words.write(says("new"));
    expect((await two.words.read())?.said).toEqual(["new"]);
  });
});

test("the lease is free some time after the last write", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  using _ = { [Symbol.dispose]: () => vi.useRealTimers() };
  await using place = new Place();
  const { words, journals } = await place.process({ releaseMs: 1000 });
  await words.write(says("one"));
  await vi.advanceTimersByTimeAsync(900);
  await words.write(says("two"));
  await vi.advanceTimersByTimeAsync(900);
  expect(await journals.holder(place.session)).not.toBe(null);
  await vi.advanceTimersByTimeAsync(200);
  expect([await journals.holder(place.session), words.isIdle]).toEqual([null, true]);
  expect(words.inMemory?.said).toEqual(["one", "two"]);
});

test("what runs alone has the lease, and what it wrote is read again", async () => {
  await using place = new Place();
  const { words, journals } = await place.process();
  expect(await words.exclusively(async () => "ran")).toBe(null);
  await words.write(says("one"));
  const order: string[] = [];
  const alone = words.exclusively(async (journal, state) => {
    expect(state.said).toEqual(["one"]);
    expect(await journals.holder(place.session)).not.toBe(null);
    await journal.append([{ kind: "test.word", word: "two" }]);
    order.push("alone");
    return "ran";
  });
  const after = words.read().then((state) => order.push(...state!.said));
  expect(await alone).toBe("ran");
  expect(await journals.holder(place.session)).toBe(null);
  await after;
  expect(order).toEqual(["alone", "one", "two"]);
  const fails = words.exclusively(() => Promise.reject(new Error("no")));
  await expect(fails).rejects.toThrow("no");
  expect(await journals.holder(place.session)).toBe(null);
  await words.write(says("three"));
  expect(await place.stored()).toEqual(["one", "two", "three"]);
});

test("what it is to wait for is over before anything else is done", async () => {
  await using place = new Place();
  const { words } = await place.process();
  const { promise, resolve } = Promise.withResolvers<void>();
  words.waitFor(promise);
  let isRead = false;
  const read = words.read().then(() => {
    isRead = true;
  });
  await new Promise(setImmediate);
  expect(isRead).toBe(false);
  resolve();
  await read;
  words.waitFor(Promise.reject(new Error("of another")));
  await words.write(says("one"));
  expect(await place.stored()).toEqual(["one"]);
});

test("after a write that failed, the state is what is stored", async () => {
  await using place = new Place();
  const { words, journals } = await place.process();
  await words.write(says("one"));
  await words.release();
  const { open } = journals;
  journals.open = () => Promise.reject(new Error("the disk is gone"));
  await expect(words.write(says("two"))).rejects.toThrow("the disk is gone");
  journals.open = open;
  await words.write(says("three"));
  expect(words.inMemory?.said).toEqual(["one", "three"]);
  expect(await place.stored()).toEqual(["one", "three"]);
});

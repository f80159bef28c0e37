import { openStore, type Session, type Store } from "holdfast";
import { openMemoryStore } from "holdfast/internal";
import { type Journal, type JournalStore, openStoreWith } from "holdfast/store";
import { describe, expect, test } from "vitest";
import { inArray, judged, type Made, Speaker, spoken } from "./sync-agents.ts";

/**
 * P7, R14 c: what a sync costs is what is new in the array, also where the application changes what is old. Counted,
 * not timed.
 */

const MESSAGES = 1000;

interface Written {
  bytes: number;
  records: number;
}

/** A store in memory that counts what is written to it. */
async function openCountingStore(options: Made, written: Written): Promise<JournalStore> {
  const inner = await openMemoryStore(options);
  const count = (records: unknown): Made => {
    const all = [records].flat();
    written.records += all.length;
    written.bytes += JSON.stringify(all).length;
    return records;
  };
  const counting = (journal: Journal): Journal =>
    withMembers(journal, {
      append: (records: Made, ...rest: Made[]) => journal.append(count(records), ...rest),
      epoch: (build: () => Made) => journal.epoch(() => count(build())),
    });
  return withMembers(inner, {
    create: async (...given: Made[]) => counting(await inner.create(...(given as [Made, Made]))),
    open: async (...given: Made[]) => {
      const opened = await inner.open(...(given as [Made]));
      return { ...opened, journal: counting(opened.journal) };
    },
  });
}

function withMembers<T extends object>(of: T, members: Made): T {
  return new Proxy(of, {
    get: (target, name) => {
      if (Object.hasOwn(members, name)) return members[name];
      const member: unknown = Reflect.get(target, name, target);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}

describe.each(spoken)("%s", (_name, voice) => {
  const { user, says, calls, result } = new Speaker(voice);

  /** How often each function of the dialect is called. */
  function counted(): { dialect: Made; worked: Map<string, number> } {
    const worked = new Map<string, number>();
    const members = Object.entries(voice.dialect).map(([name, member]) => [
      name,
      typeof member === "function"
        ? (...given: Made[]) => {
            worked.set(name, (worked.get(name) ?? 0) + 1);
            return (member as Made)(...given);
          }
        : member,
    ]);
    return { dialect: Object.fromEntries(members), worked };
  }

  const turnOf = (n: number, text = "x".repeat(500)): Made[] => [
    user(`question ${n}`),
    ...calls(`call_${n}`),
    result(`call_${n}`, text),
    ...says(`answer ${n}`),
  ];

  async function begun(messages: number): Promise<Begun> {
    const { dialect, worked } = counted();
    const written = { bytes: 0, records: 0 };
    const store = await openStoreWith((given) => openCountingStore(given, written));
    const session = await store.create<Made>({ dialect });
    const array = Array.from({ length: messages / 4 }, (_, n) => turnOf(n)).flat();
    await session.sync(array);
    const cost = async (act: () => Promise<unknown>): Promise<Cost> => {
      Object.assign(written, { bytes: 0, records: 0 });
      worked.clear();
      await act();
      const asked = [...worked.values()].reduce((sum, count) => sum + count, 0);
      return { ...written, same: worked.get("same") ?? 0, calls: asked };
    };
    return { store, session, array, cost };
  }

  interface Begun {
    readonly store: Store;
    readonly session: Session<Made>;
    readonly array: Made[];
    cost(act: () => Promise<unknown>): Promise<Cost>;
  }
  interface Cost {
    readonly bytes: number;
    readonly records: number;
    readonly same: number;
    readonly calls: number;
  }

  /**
   * Bytes and comparisons of a step: those of its five messages. What is asked of the dialect for the first time is
   * asked of all messages, and remembered.
   */
  function expectNew({ bytes, records, same, calls: asked }: Cost, isFirst: boolean): void {
    expect(bytes).toBeLessThan(4096);
    expect(records).toBeLessThan(12);
    expect(same).toBeLessThan(30);
    if (!isFirst) expect(asked).toBeLessThan(150);
  }

  test("an agent that clears one old result per step writes what is new", async () => {
    const { store, session, array, cost } = await begun(MESSAGES);
    for (let step = 0; step < 20; step++) {
      array[step * 4 + 2] = result(`call_${step}`, "[cleared]");
      array.push(...turnOf(MESSAGES + step, "short"));
      expectNew(await cost(() => session.sync(array)), step === 0);
    }
    expect(inArray(session.entries)).toEqual(array);
    expect(judged(voice, session.messages)).toEqual([]);
    await store.close();
  });

  test("so does one that was resumed, and goes on with what it loaded", async () => {
    const { store, session: before, array: old, cost } = await begun(MESSAGES);
    await before.close();
    const session = await store.resume<Made>(before.id);
    const array = [...session.messages];
    await session.sync(array);
    for (let step = 0; step < 5; step++) {
      const at = array.findIndex((message, n) => n > step * 4 && voice.dialect.results(message).length > 0);
      array[at] = result(voice.dialect.results(array[at])[0]!.call, "[cleared]");
      array.push(...turnOf(MESSAGES + step, "short"));
      expectNew(await cost(() => session.sync(array)), step === 0);
    }
    expect(array.length).toBe(old.length + 20);
    await store.close();
  });

  test("an agent that keeps the last messages only, too", async () => {
    const { store, session, array, cost } = await begun(MESSAGES);
    for (let step = 0; step < 20; step++) {
      array.splice(0, 4);
      array.push(...turnOf(MESSAGES + step, "short"));
      expectNew(await cost(() => session.sync(array)), step === 0);
    }
    expect(inArray(session.entries)).toEqual(array);
    expect(judged(voice, session.messages)).toEqual([]);
    await store.close();
  });

  test("and one that trims the last result, or strips the last call, at every step", async () => {
    const { store, session, array, cost } = await begun(MESSAGES);
    array.push(user("and now?"));
    await session.sync(array);
    for (let step = 0; step < 10; step++) {
      const id = `last_${step}`;
      array.push(...calls(id), result(id, "y".repeat(500)));
      await session.sync(array);
      array[array.length - 1] = result(id, "trimmed");
      array[array.length - 2] = { ...array[array.length - 2], note: step };
      expectNew(await cost(() => session.sync(array)), step === 0);
    }
    expect(session.turn?.number).toBe(MESSAGES / 4 + 1);
    expect(judged(voice, session.messages)).toEqual([]);
    await store.close();
  });

  test("what the array no longer has is bounded by what it has: now and then there is a new epoch, paid for by as many changes", async () => {
    const { store, session, array } = await begun(40);
    let epochs = 0;
    for (let step = 0; step < 200; step++) {
      array.splice(0, 4);
      array.push(...turnOf(1000 + step));
      if ((await session.sync(array)).epoch) epochs += 1;
      expect(session.entries.length).toBeLessThanOrEqual(2 * 40 + 8);
    }
    expect(epochs).toBeGreaterThan(5);
    expect(epochs).toBeLessThan(40);
    // One message alone that is another one at every step.
    const first = [user("it is 0 o'clock"), ...array.slice(1)];
    for (let step = 0; step < 100; step++) {
      first[0] = user(`it is ${step} o'clock`);
      await session.sync(first);
      expect(session.entries.length).toBeLessThanOrEqual(2 * 40 + 8);
    }
    expect(inArray(session.entries)).toEqual(first);
    await store.close();
  });

  test("large results that are cleared do not stay: a new epoch comes before they are more than the rest", async () => {
    const { store, session, array } = await begun(40);
    let epochs = 0;
    for (let step = 0; step < 20; step++) {
      array.push(...turnOf(1000 + step, "z".repeat(100_000)));
      await session.sync(array);
      array[array.length - 2] = result(`call_${1000 + step}`, "[cleared]");
      array.push(user("go on"), ...says("yes"));
      if ((await session.sync(array)).epoch) epochs += 1;
      expect(JSON.stringify(session.entries).length).toBeLessThan(600_000);
    }
    expect(epochs).toBeGreaterThan(3);
    await store.close();
  });

  test("a compaction costs what is kept, however much there was", async () => {
    const costs: Cost[] = [];
    for (const messages of [MESSAGES, MESSAGES * 4]) {
      const { store, session, array, cost } = await begun(messages);
      const short = [user("in short"), ...array.slice(-20)];
      costs.push(await cost(() => session.sync(short)));
      expect(inArray(session.entries)).toEqual(short);
      await store.close();
    }
    for (const { bytes, records, same } of costs) {
      expect(bytes).toBeLessThan(16 * 1024);
      expect(records).toBeLessThan(30);
      expect(same).toBeLessThan(30);
    }
    expect(costs[1]!.calls, "nothing is asked of what was dropped").toBeLessThan(costs[0]!.calls + 10);
  });
});

test("labels are written with every turn: they have a limit, and cost no more than that", async () => {
  await using store = await openStore("memory:");
  const many = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`label ${n}`, "x".repeat(1000)]));
  await expect(store.create({ dialect: "openai-chat", labels: many })).rejects.toMatchObject({
    code: "ATTRIBUTE_INVALID",
    facts: { member: "labels", limitChars: 16_384 },
  });
  const labels = Object.fromEntries(Array.from({ length: 80 }, (_, n) => [`label ${n}`, "x".repeat(80)]));
  const session = await store.create<Made>({ dialect: "openai-chat", labels });
  for (let turn = 0; turn < 10; turn++) {
    await session.sync([
      ...session.messages,
      { role: "user", content: `${turn}` },
      { role: "assistant", content: "ok" },
    ]);
  }
  const records = await Array.fromAsync(store.history(session.id));
  expect(JSON.stringify(records).length).toBeLessThan(25 * 8192);
  expect((await store.list({ labels: { "label 7": "x".repeat(80) } })).sessions).toHaveLength(1);
});

test.each([
  ["title", { title: "x".repeat(70_000) }],
  ["app", { app: "x".repeat(5000) }],
  ["cwd", { cwd: `/${"x".repeat(10_000)}` }],
  ["parent", { parent: { session: "x".repeat(5000) } }],
  ["labels that are no texts", { labels: { a: 1 } }],
  ["labels that are no object", { labels: ["a"] }],
  ["a title that is no text", { title: 7 }],
])("what stands in the row for lists has a limit, and is what it should be: %s", async (_what, given) => {
  await using store = await openStore("memory:");
  await expect(store.create({ dialect: "openai-chat", ...given } as Made)).rejects.toMatchObject({
    code: "ATTRIBUTE_INVALID",
  });
});

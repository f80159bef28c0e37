import { openMemoryStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { expect, test } from "vitest";
import { Histories } from "../../../src/reading/histories.ts";

/** The real store, which counts what is read of it. */
async function stage() {
  const store = await openStoreWith(() => openMemoryStore());
  let read = 0;
  const sessions = {
    history: async function* (id: string, from?: number) {
      for await (const record of store.history(id, from)) {
        read++;
        yield record;
      }
    },
  };
  const said = () => ({ role: "user", text: "", calls: [], answers: [] });
  let inMemory: (() => []) | null = null;
  const hub = { since: () => inMemory?.() ?? null };
  const followed = async () => ({ hub, release: () => {} });
  const histories = new Histories({ host: { sessions, said }, followed } as never);
  const session = await store.create({ dialect: "ai-sdk" });
  const count = async (work: () => Promise<unknown>): Promise<number> => {
    const before = read;
    await work();
    return read - before;
  };
  const remember = (): void => {
    inMemory = () => [];
  };
  return { store, session, histories, count, remember };
}

test("a journal is read from its beginning once, and then only from where it was left", async () => {
  const { store, session, histories, count, remember } = await stage();
  for (let turn = 0; turn < 50; turn++) await (await session.startTurn({ role: "user", content: "x" })).end();
  const whole = await count(() => histories.of(session.id));
  expect(whole).toBeGreaterThan(100);
  expect(await count(() => histories.of(session.id))).toBe(1);
  await (await session.startTurn({ role: "user", content: "y" })).end();
  const { timeline } = await histories.of(session.id);
  expect(timeline.happenings(true).filter(({ kind }) => kind === "turn")).toHaveLength(51);
  expect(await count(() => Promise.all([1, 2, 3].map(() => histories.of(session.id))))).toBe(1);
  // What the followers of the session have in memory is not read again.
  remember();
  expect(await count(() => histories.of(session.id))).toBe(0);
  await store.close();
});

test("few long sessions are kept, or many short ones", async () => {
  const { store, session, histories, count } = await stage();
  await (await session.startTurn({ role: "user", content: "x" })).end();
  await histories.of(session.id);
  for (let other = 0; other < 64; other++) {
    const { id } = await store.create({ dialect: "ai-sdk" });
    await histories.of(id);
  }
  expect(await count(() => histories.of(session.id))).toBeGreaterThan(1);
  await store.close();
});

test("a journal that ends differently now is read again", async () => {
  const { store, session, histories } = await stage();
  await (await session.startTurn({ role: "user", content: "x" })).end();
  const before = await histories.of(session.id);
  // What a power cut takes from the end, another record replaces.
  Object.defineProperty(before.timeline, "last", { value: { ...before.timeline.last, cursor: "5-ffffffff" } });
  expect(await histories.of(session.id)).not.toBe(before);
  await store.close();
});

import { newId, openStore } from "holdfast";
import { openMemoryStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { expect, test } from "vitest";
import { place } from "../../place.ts";

const user = (content: string) => ({ role: "user" as const, content });

test("a conversation that was replaced can still be read, by its last record", async () => {
  using folder = place();
  await using store = await openStore(folder.path);
  await using session = await store.create({ dialect: "ai-sdk", title: "long" });
  const ends: number[] = [];
  const epoch = async (): Promise<void> => {
    const kinds = await Array.fromAsync(store.history(session.id));
    ends.push(kinds.findLast(({ kind }) => kind === "epoch")!.seq - 1);
  };
  for (const prompt of ["one", "two"]) await (await session.startTurn(user(prompt))).end();
  await session.replace([user("summary")], { reason: "compaction" });
  await epoch();
  await (await session.startTurn(user("three"))).end();
  await session.replace([], { reason: "clear" });
  await epoch();
  await (await session.startTurn(user("four"))).end();

  const textsOf = async (until?: number): Promise<unknown[]> =>
    (await store.read(session.id, { dialect: "ai-sdk", ...(until === undefined ? {} : { until }) })).entries.map(
      ({ message }) => message.content,
    );
  expect(await textsOf(ends[0])).toEqual(["one", "two"]);
  expect(await textsOf(ends[1])).toEqual(["summary", "three"]);
  expect(await textsOf()).toEqual(["four"]);
  expect(await store.read(session.id, { until: ends[0]! })).toMatchObject({
    holder: null,
    attributes: { title: "long" },
  });
  await expect(store.read(newId(), { until: 5 })).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
  await expect(store.read(session.id, { dialect: "anthropic", until: 5 })).rejects.toMatchObject({
    code: "DIALECT_UNKNOWN",
  });
});

test("a store says which process has a session open", async () => {
  await using store = await openStoreWith(() => openMemoryStore(), { app: "agent" });
  const session = await store.create({ dialect: "ai-sdk" });
  expect(await store.holder(session.id)).toMatchObject({ app: "agent" });
  await session.close();
  expect(await store.holder(session.id)).toBeNull();
});

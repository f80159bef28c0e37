import { expect, test } from "vitest";
import { openStore } from "../../../src/index.ts";
import { cursorOf } from "../../../src/internal.ts";

test("a reading names the newest record that it shows, and the store follows from there", async () => {
  await using store = await openStore("memory:");
  const session = await store.create({ dialect: "anthropic" });
  const { cursor } = await store.read(session.id);
  const records = await Array.fromAsync(store.history(session.id));
  expect(cursor).toBe(cursorOf(records.at(-1)!));

  await session.rename("later");
  const seen: string[] = [];
  for await (const record of store.follow(session.id, cursor)) {
    seen.push(record.kind);
    if (record["title"] === "later") break;
  }
  expect(seen.filter((kind) => kind === "session")).toEqual(["session"]);
});

test("a cursor that is not in the journal is refused", async () => {
  await using store = await openStore("memory:");
  const { id } = await store.create({ dialect: "anthropic" });
  for (const cursor of ["1-00000000", "99-00000000", "x"]) {
    const following = store.follow(id, cursor)[Symbol.asyncIterator]();
    await expect(following.next()).rejects.toMatchObject({ code: "CURSOR_STALE" });
  }
});

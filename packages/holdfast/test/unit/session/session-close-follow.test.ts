import { setTimeout as sleep } from "node:timers/promises";
import { openStore } from "holdfast";
import { expect, test } from "vitest";
import { place } from "../../place.ts";
import { type M, user } from "./session-failures-life.ts";

test.each([
  ["folder", (path: string) => path],
  ["sqlite", (path: string) => `sqlite:${path}/store.db`],
  ["memory", () => "memory:"],
])("following a session ends when it is closed, with all its records, in the %s store", async (_, url) => {
  using here = place();
  const store = await openStore(url(here.path));
  const session = await store.create<M>({ dialect: "anthropic" });
  const kinds: string[] = [];
  const slow: string[] = [];
  const following = (async () => {
    for await (const { kind } of session.follow()) kinds.push(kind);
  })();
  const followingSlowly = (async () => {
    for await (const { kind } of session.follow({ after: 2 })) {
      await sleep(2);
      slow.push(kind);
    }
  })();
  const turn = await session.startTurn(user("x"));
  await turn.end();
  await session.close();
  await Promise.all([following, followingSlowly]);
  expect(slow).toEqual(kinds.slice(2));
  const late = await Array.fromAsync(session.follow(), ({ kind }) => kind);
  expect(late).toEqual(kinds);
  expect(kinds.filter((kind) => kind !== "closed")).toEqual([
    ...["segment", "session", "opened", "turn.started", "message", "turn.ended"],
  ]);
  await store.close();
});

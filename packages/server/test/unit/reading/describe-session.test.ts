import { openMemoryStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { expect, test } from "vitest";
import type { ServedHost } from "../../../src/contract/served-host.ts";
import { describeSession } from "../../../src/reading/sessions.ts";

test("a session that did not change is not made readable again for each request", async () => {
  await using store = await openStoreWith(() => openMemoryStore());
  await using session = await store.create({ dialect: "ai-sdk" });
  await (await session.startTurn({ role: "user", content: "x" })).end();
  await session.close();
  let made = 0;
  const host = {
    sessions: store,
    items: () => {
      made++;
      return [{}];
    },
    queue: () => [],
    interruption: () => null,
    account: () => ({}),
    damageWords: () => [],
    finishesAfterRestart: () => false,
  } as unknown as ServedHost;
  const view = await store.read(session.id);
  let copies = 0;
  // The entries are copied at each look, as they may hold bytes that the caller changes.
  const reading = new Proxy(view, {
    get: (target, name) => {
      if (name === "entries") copies++;
      return Reflect.get(target, name);
    },
  });
  for (let request = 0; request < 5; request++)
    expect(await describeSession(host, { reading, cursor: null }, null)).toMatchObject({ count: 1, status: "idle" });
  expect({ made, copies }).toEqual({ made: 1, copies: 0 });
});

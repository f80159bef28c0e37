import { type ClaimOptions, type ClaimResult, type Finish, isHoldfastError, openStore, type Store } from "holdfast";
import { expect, test } from "vitest";
import { place } from "../../../place.ts";

// What a worker does on every store is in the conformance suite (`work: …`), and with the numbers of its options in
// packages/postgres/test/kill/claims.test.ts.

async function cutOff(store: Store): Promise<string> {
  const session = await store.create({ dialect: "anthropic" });
  await session.startTurn({ role: "user", content: "go" });
  await session.close();
  return session.id;
}

const finish: Finish = async (session) => {
  const turn = await session.resumeTurn();
  await turn.append({ role: "assistant", content: "done" }, { end: true });
};

const AT_ONCE: ClaimOptions = { backoffMs: 0 };

test("a function that closes the session, and fails: the try counts all the same", async () => {
  await using store = await openStore("memory:");
  const id = await cutOff(store);
  const closes: Finish = async (session) => {
    await session.resumeTurn();
    await session.close();
    throw new Error("no");
  };
  const outcomes: (ClaimResult | null)[] = [];
  for (let n = 0; n < 3; n++) outcomes.push(await store.claimNext({ ...AT_ONCE, maxTries: 2 }, closes));
  expect(outcomes).toMatchObject([{ outcome: "failed" }, { outcome: "gave-up" }, null]);
  expect((await store.read(id)).state).toBe("parked");
});

test.each<[string, Finish, ClaimResult["outcome"], string]>([
  ["throws after the turn has completed", (s, c) => Promise.resolve(finish(s, c)).then(fails), "finished", "idle"],
  [
    "throws after it has left the turn to a person",
    async (session) => (await session.resumeTurn()).suspend({ reason: "approval" }).then(fails),
    "waiting",
    "waiting",
  ],
  [
    "throws after a person has stopped the turn",
    async (session) => (await session.resumeTurn()).abort({ by: "the user" }).then(fails),
    "ended",
    "stopped",
  ],
  [
    "ends the turn as failed, and throws: it is tried again",
    async (session) => (await session.resumeTurn()).fail(new Error("overloaded")).then(fails),
    "failed",
    "paused",
  ],
  [
    "puts the turn to sleep",
    async (session) => (await session.resumeTurn()).suspend({ reason: "a pause", until: Date.now() + 60_000 }),
    "paused",
    "paused",
  ],
  ["does nothing", () => {}, "failed", "paused"],
])("a function that %s", async (_, how, outcome, state) => {
  await using store = await openStore("memory:");
  const id = await cutOff(store);
  expect(await store.claimNext({ backoffMs: 3_600_000 }, how)).toMatchObject({ outcome, tries: 1 });
  expect((await store.read(id)).state).toBe(state);
  expect(await store.claimNext({}, how)).toBeNull();
});

function fails(): never {
  throw new Error("and then this");
}

test("a hand-over of the whole store, in the middle of the work, is no try", async () => {
  using here = place();
  const store = await openStore(here.path);
  const id = await cutOff(store);
  const result = await store.claimNext({}, async (session) => {
    const turn = await session.resumeTurn();
    const closing = store.close({ handOver: true });
    // The loop wants to go on, and is refused.
    try {
      turn.request();
    } finally {
      await closing;
    }
  });
  expect(result).toMatchObject({ session: id, outcome: "given-back" });
  expect(isHoldfastError(result!.error, "TURN_HANDED_OVER")).toBe(true);
  await using again = await openStore(here.path);
  expect((await again.read(id)).interruption).toMatchObject({ how: { kind: "handed-over" }, attempts: 0 });
});

test("work that is stopped does not wait for a function that never returns", async () => {
  await using store = await openStore("memory:");
  const id = await cutOff(store);
  const stop = new AbortController();
  const results: ClaimResult[] = [];
  await store.work({ signal: stop.signal, onResult: (one) => void results.push(one) }, async (session) => {
    await session.resumeTurn();
    stop.abort();
    return new Promise(() => {});
  });
  expect(results).toMatchObject([{ session: id, outcome: "given-back" }]);
  expect((await store.read(id)).interruption?.how.kind).toBe("handed-over");
});

test("a session that cannot be opened stops no other, and is left alone for a while", async () => {
  await using store = await openStore("memory:");
  const odd = await store.create({ dialect: "openai-chat" });
  await odd.startTurn({ role: "user", content: "go" });
  await odd.close();
  const fine = await cutOff(store);
  const passed: string[] = [];
  const options: ClaimOptions = {
    backoffMs: 3_600_000,
    // The program names the dialect that it knows.
    open: { dialect: "anthropic" },
    onPassedOver: (id, { code }) => void passed.push(`${id} ${code}`),
  };
  expect(await store.claimNext(options, finish)).toMatchObject({ session: fine, outcome: "finished" });
  expect(await store.claimNext(options, finish)).toBeNull();
  expect(passed).toEqual([`${odd.id} DIALECT_UNKNOWN`]);
});

test("who works wakes up for a turn that is due before the next look", async () => {
  await using store = await openStore("memory:");
  const session = await store.create({ dialect: "anthropic" });
  await (await session.startTurn({ role: "user", content: "go" })).suspend({
    reason: "a pause",
    until: Date.now() + 50,
  });
  await session.close();
  const stop = new AbortController();
  const options = { signal: stop.signal, pollMs: 600_000, onResult: () => stop.abort() };
  await store.work(options, finish);
  expect((await store.read(session.id)).state).toBe("idle");
});

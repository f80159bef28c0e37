import { setImmediate as tick } from "node:timers/promises";
import { validateAnthropic } from "@holdfast/testkit";
import { isHoldfastError, type Session, type Store } from "holdfast";
import { openStoreWith } from "holdfast/store";
import { afterEach, expect, test } from "vitest";
import { endsNow, type Guarded } from "../../../src/session/guarded.ts";
import { seedOf } from "../../seed.ts";
import { openLaterStore } from "./session-async-store-later.ts";
import { calls, LIFE, type Life, type M, says, user } from "./session-failures-life.ts";

const seed = seedOf(import.meta.url, "unit");
let state = seed;
/** A number below `n`; a linear congruence is random enough to put promises out of step. */
function random(n: number): number {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
  return Math.floor((state / 2 ** 32) * n);
}
const someTicks = async (): Promise<void> => {
  for (let n = random(4); n > 0; n--) await tick();
};

const unhandled: unknown[] = [];
process.on("unhandledRejection", (error) => unhandled.push(error));
afterEach(async () => {
  await tick();
  expect(unhandled.splice(0)).toEqual([]);
});

async function begin(): Promise<{ store: Store; session: Session<M> }> {
  const store = await openStoreWith((options) => openLaterStore(options, someTicks), { recordsToolStarts: true });
  const session = await store.create<M>({ dialect: "anthropic", draftMs: 1 });
  return { store, session };
}

const untimed = (session: Pick<Session<M>, "entries">): unknown => session.entries.map(({ at: _at, ...rest }) => rest);

async function expectAsRecorded(store: Store, session: Session<M>): Promise<void> {
  await session.flush();
  const read = await store.read<M>(session.id);
  expect(untimed(session)).toEqual(untimed(read));
  for (const member of ["messages", "usage", "attributes"] as const) expect(session[member]).toEqual(read[member]);
  expect(session.queue.map(({ id }) => id)).toEqual(read.queue.map(({ id }) => id));
}

test("a whole life on a store that answers later", async () => {
  const { store, session } = await begin();
  const life: Life = {
    ...{ store, session, turn: null as never, draft: null as never },
    ...{ runs: new Map(), outcomes: new Map() },
  };
  for (const [, step] of LIFE) {
    await step(life);
    await expectAsRecorded(store, life.session);
  }
  await store.close();
});

test.each(Array.from({ length: 20 }, (_, n) => n))(
  "nothing is awaited, and all is recorded in the order of the calls (%i)",
  async () => {
    const { store, session } = await begin();
    const turn = await session.startTurn(user("go"));
    const message = { role: "assistant", content: [{ type: "text", text: "as it was" }] };
    const all: Promise<unknown>[] = [];
    all.push(turn.append(message as never, { id: "m1" }));
    message.content[0]!.text = "changed later";
    all.push(turn.append(user("more"), { id: "m2" }), turn.append(calls("a", "b"), { id: "m3" }));
    const ran: string[] = [];
    all.push(
      turn.tool("a", () => ran.push("a")),
      turn.tool("b", () => ran.push("b")),
    );
    for (let n = 0; n < 4; n++) all.push(session.enqueue(user("queued"), { id: "q" }));
    all.push(session.patch("m1", { seen: true }), session.note("n", 1));
    await Promise.all(all);
    all.length = 0;
    expect(ran.sort()).toEqual(["a", "b"]);
    const { draft } = turn.request();
    for (let n = 0; n < 5; n++) {
      draft.push({ text: `${n}` });
      await someTicks();
    }
    all.push(draft.commit(says("01234"), { usage: { outputTokens: 1 } }));
    all.push(draft.commit(says("01234"), { usage: { outputTokens: 1 } }));
    all.push(turn.append(user("and?"), { id: "m4" }), turn.append(user("and?"), { id: "m4" }));
    all.push(turn.append(says("that is all"), { id: "m5" }), turn.end());
    all.push(session.startTurn(session.queue[0]!));
    await Promise.all(all);
    const ids = session.entries.map(({ id }) => id).filter((id) => /^[mq]/.test(id));
    expect(ids).toEqual(["m1", "m2", "m3", "m4", "m5", "q"]);
    expect(JSON.stringify(session.messages)).toContain("as it was");
    expect(session.usage).toEqual({ outputTokens: 1 });
    expect(session.entries[1]?.metadata).toEqual({ seen: true });
    expect(validateAnthropic(session.messages as never)).toEqual([]);
    await expectAsRecorded(store, session);
    await session.close();
    const records = await Array.fromAsync(session.follow());
    expect(records.filter(({ kind }) => kind === "queue.put")).toHaveLength(1);
    await store.close();
  },
);

test("what was acknowledged is in the conversation, also where the store answers out of order", async () => {
  for (let n = 0; n < 20; n++) {
    const { store, session } = await begin();
    const turn = await session.startTurn(user("go"));
    const ids = ["a", "b", "c", "d"];
    await turn.append(calls(...ids));
    await Promise.all(ids.map((id) => turn.toolStarted(id)));
    const isThere = (id: string): boolean => JSON.stringify(session.entries).includes(`done by ${id}`);
    const told = ids.map((id) => turn.toolEnded(id, { value: `done by ${id}` }).then(() => isThere(id)));
    expect(await Promise.all(told)).toEqual(ids.map(() => true));
    await store.close();
  }
});

test("a replacement while messages are on their way: those that came before it are seen, those behind it stay", async () => {
  for (let n = 0; n < 20; n++) {
    const { store, session } = await begin();
    const turn = await session.startTurn(user("go"), { id: "p" });
    const all: Promise<unknown>[] = [
      turn.append(says("one"), { id: "m1" }),
      session.enqueue(user("queued"), { id: "q" }),
    ];
    all.push(session.replace([user("a summary")], { reason: "compaction" }));
    all.push(turn.append(says("two"), { id: "m2" }), turn.usage({ outputTokens: 2 }), session.note("n", 2));
    await Promise.all(all);
    expect(session.entries.map(({ id }) => id)).toContain("m2");
    expect(session.queue.map(({ id }) => id)).toEqual(["q"]);
    expect(session.usage).toEqual({ outputTokens: 2 });
    expect(session.attributes.notes).toEqual({ n: 2 });
    await expectAsRecorded(store, session);
    await store.close();
  }
});

test("a prompt while the abort of the turn before it is being written says who stopped that", async () => {
  const { store, session } = await begin();
  const turn = await session.startTurn(user("go"));
  await turn.append(calls("a"));
  const [, next] = await Promise.all([turn.abort({ by: "user" }), session.startTurn(user("other"))]);
  expect(JSON.stringify(session.messages)).toContain("user stopped it");
  expect(session.turn).toBe(next);
  await expectAsRecorded(store, session);
  await store.close();
});

test("R17: told that the process ends, it answers a promise, and then all is there", async () => {
  for (let n = 0; n < 10; n++) {
    const { store, session } = await begin();
    const starting = session.startTurn(user("go"));
    const ending = { signal: "SIGTERM" };
    if (n % 2 === 0) {
      const turn = await starting;
      turn.request().draft.push({ text: "Once upon" });
    }
    await Promise.all([store, session].map((one) => (one as unknown as Guarded)[endsNow](ending)));
    await starting;
    const records = await Array.fromAsync(store.follow(session.id, 0, { signal: AbortSignal.timeout(20) }));
    expect(records.filter(({ kind }) => kind === "signal")).toHaveLength(1);
    expect(records.filter(({ kind }) => kind === "draft")).toHaveLength(n % 2 === 0 ? 1 : 0);
    await store.close();
  }
});

test("closed in the middle of everything, all that was called before is recorded or refused, and nothing hangs", async () => {
  for (let n = 0; n < 30; n++) {
    const { store, session } = await begin();
    const turn = await session.startTurn(user("go"));
    const { draft } = turn.request();
    draft.push({ text: "words" });
    const ids: string[] = [];
    const all = [
      turn.append(calls("a"), { id: "m1" }).then(() => ids.push("m1")),
      turn.append(user("x"), { id: "m2" }).then(() => ids.push("m2")),
      turn.tool("a", () => "x"),
      session.replace([...session.entries], { reason: "compaction" }),
      session.enqueue(user("q"), { id: "q" }),
    ];
    for (let ticks = random(6); ticks > 0; ticks--) await tick();
    const closing = session.close();
    all.push(session.note("late", 1), session.startTurn(user("late")) as never, turn.append(user("later")) as never);
    expect(session.close()).toBe(closing);
    const settled = Promise.allSettled(all);
    await closing;
    for (const one of await settled) {
      if (one.status === "rejected") expect(isHoldfastError(one.reason), String(one.reason)).toBe(true);
    }
    draft.push({ text: "after everything" });
    await expect(turn.toolEnded("a", { value: 1 })).rejects.toMatchObject({ code: "SESSION_CLOSED" });
    const read = await store.read<M>(session.id);
    const recorded = read.entries.map(({ id }) => id);
    for (const id of ids) expect(recorded).toContain(id);
    expect(read.interruption?.how).toEqual({ kind: "aborted", by: "close" });
    await store.close();
  }
});

test("R19: what is changed after a call that waits changes nothing of what it records: metadata and usage, too", async () => {
  const { store, session } = await begin();
  const options = () => ({
    metadata: { seen: { by: ["me"] } },
    usage: { outputTokens: 1, cost: { amount: 1, currency: "EUR" } },
  });
  const given = Array.from({ length: 4 }, options);
  const turn = await session.startTurn(user("go"));
  // The store is behind from here on.
  const all: Promise<unknown>[] = [session.note("n", 1)];
  all.push(turn.append(says("one"), { ...given[0]!, id: "m1" }));
  all.push(turn.request().draft.commit(says("two"), { ...given[1]!, id: "m2" }));
  all.push(session.enqueue(user("later"), { ...given[2]!, id: "q1" }));
  all.push(turn.end());
  all.push(session.startTurn(user("next"), { ...given[3]!, id: "m3" }));
  for (const { metadata, usage } of given) {
    metadata.seen.by.push("somebody else");
    usage.outputTokens = 100;
    usage.cost.amount = 100;
  }
  await Promise.all(all);
  const told = session.entries.map(({ metadata }) => metadata);
  expect(told.slice(1)).toEqual([{ seen: { by: ["me"] } }, { seen: { by: ["me"] } }, { seen: { by: ["me"] } }]);
  expect(session.queue.map(({ metadata }) => metadata)).toEqual([{ seen: { by: ["me"] } }]);
  expect(session.usage).toEqual({ outputTokens: 3, cost: { amount: 3, currency: "EUR" } });
  const bad = session.note("n", 2);
  await expect(session.turn!.append(says("x"), { metadata: { at: 1n as never } })).rejects.toMatchObject({
    code: "MESSAGE_NOT_JSON",
  });
  await bad;
  await expectAsRecorded(store, session);
  await store.close();
});

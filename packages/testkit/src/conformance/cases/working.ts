import assert from "node:assert/strict";
import { type ClaimOptions, type ClaimResult, type Finish, HoldfastError, type Session, type Store } from "holdfast";
import { type JournalStore, openStoreWith } from "holdfast/store";
import { type Case, conformanceCase } from "../case.ts";
import type { Trial } from "../trial.ts";

const HOUR_MS = 3_600_000;
/** Nothing waits between tries. */
const AT_ONCE: ClaimOptions<object> = { backoffMs: 0, backoffMaxMs: 0 };
const LATER: ClaimOptions<object> = { backoffMs: HOUR_MS, backoffMaxMs: HOUR_MS };

const user = (content: string): object => ({ role: "user", content });
const answer = { role: "assistant", content: [{ type: "text", text: "done" }] };
const call = { role: "assistant", content: [{ type: "tool_use", id: "c", name: "work", input: {} }] };

/** Sessions on a store of the trial. */
function sessionsIn(trial: Trial): Promise<Store> {
  return openStoreWith((options) => trial.open(options), { recordsToolStarts: true });
}

async function begun(store: Store, options: object = {}): Promise<Session<object>> {
  const session = await store.create<object>({ dialect: "anthropic", ...options });
  await session.startTurn(user("the task"));
  return session;
}

/** A turn that was cut off. */
async function cutOff(store: Store, options: object = {}): Promise<string> {
  const session = await begun(store, options);
  await session.close();
  return session.id;
}

const finish: Finish<object> = async (session) => {
  const turn = await session.resumeTurn();
  await turn.append(answer, { end: true });
};

const fails = async (session: Session<object>): Promise<void> => {
  await session.resumeTurn();
  throw new Error("the model is away");
};

/** A store that loses what a worker records would have it work for ever. */
const RESULTS_MAX = 64;

/** Until nothing is due. */
async function all(
  store: Store,
  options: ClaimOptions<object> = {},
  how: Finish<object> = finish,
): Promise<ClaimResult[]> {
  const results: ClaimResult[] = [];
  for (;;) {
    const result = await store.claimNext(options, how);
    if (!result) return results;
    results.push(result);
    assert.ok(results.length <= RESULTS_MAX, "the same work is found again and again");
  }
}

const told = (results: readonly ClaimResult[]): string[] =>
  results.map(({ session, tries, outcome }) => `${session} ${outcome} ${tries}`);

/** Sessions whose last turn nobody works on, and the workers that continue it: from lists, leases and records. */
export const working: readonly Case[] = [
  conformanceCase(
    "work: a turn that was cut off, was handed over, or is to continue by now is claimed once, and no other is",
    ["R16"],
    async (trial) => {
      await using store = await sessionsIn(trial);
      const cut = await cutOff(store);
      const handedOver = await begun(store);
      await handedOver.close({ handOver: true });
      const awake = await begun(store);
      await awake.turn!.suspend({ reason: "a pause", until: Date.now() });
      const asleep = await begun(store);
      const until = new Date(Date.now() + HOUR_MS);
      await asleep.turn!.suspend({ reason: "a pause", until });
      const waiting = await begun(store);
      await waiting.turn!.suspend({ reason: "approval" });
      const completed = await begun(store);
      await completed.turn!.append(answer, { end: true });
      const aborted = await begun(store);
      await aborted.turn!.abort({ by: "the user" });
      const failed = await begun(store);
      await failed.turn!.fail(new Error("no credit"));
      const child = await begun(store, { parent: { session: cut } });
      for (const one of [awake, asleep, waiting, completed, aborted, failed, child]) await one.close();
      const running = await begun(store);
      assert.ok((await store.nextDue())! <= new Date());
      const results = await all(store);
      const wanted = [cut, handedOver.id, awake.id].map((id) => `${id} finished 1`);
      assert.deepEqual(told(results).sort(), wanted.sort());
      assert.equal((await store.nextDue())?.getTime(), until.getTime());
      assert.deepEqual(
        (await all(store, { ended: true })).map(({ session }) => session).sort(),
        [aborted.id, failed.id].sort(),
      );
      assert.equal(running.state, "running");
    },
  ),

  conformanceCase(
    "work: of several sessions, each worker gets another one, and the longest due come first",
    ["P6"],
    async (trial) => {
      await using store = await sessionsIn(trial);
      const ids: string[] = [];
      for (let n = 0; n < 6; n++) {
        ids.push(await cutOff(store));
        // A clock tells no less.
        const before = Date.now();
        while (Date.now() === before) await new Promise(setImmediate);
      }
      await using other = trial.capabilities.shared ? await sessionsIn(trial) : null;
      const workers = [store, other ?? store];
      const first = await store.claimNext<object>({}, finish);
      assert.equal(first?.session, ids[0]);
      const results = (await Promise.all(workers.map((worker) => all(worker)))).flat();
      assert.deepEqual(
        told(results).sort(),
        ids
          .slice(1)
          .map((id) => `${id} finished 1`)
          .sort(),
      );
    },
  ),

  conformanceCase(
    "work: a try that fails is recorded, and after the last one the turn is parked until somebody says retry",
    ["R16"],
    async (trial) => {
      await using store = await sessionsIn(trial);
      const id = await cutOff(store);
      const twice: ClaimOptions<object> = { ...AT_ONCE, maxTries: 2 };
      assert.deepEqual(told(await all(store, { ...LATER, maxTries: 2 }, fails)), [`${id} failed 1`]);
      const [paused] = (await store.list()).sessions;
      assert.deepEqual([paused?.status, paused?.attempts], ["paused", 1]);
      const due = await store.nextDue();
      assert.equal(due?.toISOString(), paused?.wakeAt);
      assert.ok(due!.getTime() > Date.now() + HOUR_MS / 2, "the next try waits");
      // A person need not wait.
      await (await (await store.resume<object>(id)).resumeTurn()).suspend({ reason: "a pause", until: Date.now() });
      await store.live(id)!.close();

      assert.deepEqual(told(await all(store, twice, fails)), [`${id} failed 1`, `${id} gave-up 2`]);
      const [parked] = (await store.list({ status: "parked" })).sessions;
      assert.deepEqual([parked?.id, parked?.attempts], [id, 2]);
      const how = (await store.read(id)).interruption?.how;
      assert.deepEqual(how, { kind: "suspended", reason: "the model is away", parked: 2 });
      assert.deepEqual(await all(store, { ...twice, ended: true }), []);
      assert.equal(await store.retry(id), true);
      assert.equal(await store.retry(id), false);
      assert.deepEqual(told(await all(store, twice)), [`${id} finished 1`]);
    },
  ),

  conformanceCase("work: the death of a worker is a try, unless the turn has come further", ["R16"], async (trial) => {
    let journals!: JournalStore;
    await using store = await openStoreWith(async (options) => {
      journals = await trial.open(options);
      return journals;
    });
    const id = await cutOff(store);
    /** What a worker writes that dies then. */
    const dies = async (...records: readonly { readonly kind: string }[]): Promise<void> => {
      const { journal } = await journals.open(id);
      await journal.append(records.map((record) => ({ turn: 1, n: 1, ...record })));
      await journal.close();
    };
    const three: ClaimOptions<object> = { ...AT_ONCE, maxTries: 3 };
    await dies({ kind: "turn.claimed" });
    await dies({ kind: "turn.claimed" }, { kind: "turn.resumed" });
    assert.equal((await store.list()).sessions[0]?.attempts, 2);
    assert.equal(await store.claimNext({ ...LATER, maxTries: 3 }, finish), null, "it waits, as after a failure");
    assert.ok((await store.nextDue(LATER))! > new Date());
    const comesFurther = async (session: Session<object>): Promise<void> => {
      const turn = await session.resumeTurn();
      await turn.append(call);
      await turn.tool("c", () => "done");
      throw new Error("the model is away");
    };
    assert.deepEqual(told([(await store.claimNext(three, comesFurther))!]), [`${id} failed 1`]);
    for (let n = 0; n < 3; n++) await dies({ kind: "turn.claimed" });
    assert.deepEqual(told(await all(store, three)), [`${id} gave-up 4`]);
    assert.equal((await store.read(id)).state, "parked");
  }),

  conformanceCase(
    "work: a stop hands the turn over, and what the store could not do is no try",
    ["R16"],
    async (trial) => {
      await using store = await sessionsIn(trial);
      const id = await cutOff(store);
      for (const isResumed of [false, true]) {
        const stop = new AbortController();
        const stops: Finish<object> = async (session) => {
          const turn = isResumed ? await session.resumeTurn() : null;
          stop.abort();
          if (turn) await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
        };
        const result = await store.claimNext({ signal: stop.signal }, stops);
        assert.deepEqual(told([result!]), [`${id} given-back 1`]);
        assert.equal((await store.read(id)).interruption?.how.kind, "handed-over");
      }
      const isFull = (): never => {
        throw new HoldfastError("STORE_FULL", "The disk is full.");
      };
      assert.deepEqual(told(await all(store, { ...LATER, maxTries: 1 }, isFull)), [`${id} given-back 1`]);
      assert.ok((await store.nextDue())! > new Date(Date.now() + HOUR_MS / 2));
      await (await (await store.resume<object>(id)).resumeTurn()).suspend({ reason: "a pause", until: Date.now() });
      await store.live(id)!.close();
      assert.deepEqual(told(await all(store)), [`${id} finished 1`]);
    },
  ),

  conformanceCase("work: by label, program, folder and age", [], async (trial) => {
    await using store = await sessionsIn(trial);
    const orders = await cutOff(store, { labels: { queue: "orders", team: "a" } });
    const mails = await cutOff(store, { app: "mailer", cwd: "/srv/mails" });
    const none = async (options: ClaimOptions<object>): Promise<void> =>
      assert.deepEqual(await all(store, options), []);
    await none({ labels: { queue: "orders", team: "b" } });
    await none({ app: "somebody" });
    await none({ cwd: "/srv" });
    await none({ olderThanMs: HOUR_MS });
    assert.ok((await store.nextDue({ olderThanMs: HOUR_MS }))! > new Date());
    assert.equal((await store.claimNext<object>({ app: "mailer", cwd: "/srv/mails" }, finish))?.session, mails);
    assert.equal((await store.claimNext<object>({ labels: { queue: "orders" } }, finish))?.session, orders);
    await using old = await openStoreWith((options) =>
      trial.open({ ...options, clock: () => Date.now() - 25 * HOUR_MS }),
    );
    const forgotten = await cutOff(old);
    await none({});
    assert.equal((await store.claimNext<object>({ youngerThanMs: 26 * HOUR_MS }, finish))?.session, forgotten);
  }),
];

import fc from "fast-check";
import { type AnthropicMessage, type Draft, isHoldfastError, openStore, type Session, type Store } from "holdfast";
import { expect, test } from "vitest";
import { seedOf } from "../../seed.ts";
import { calls, says, user } from "./anthropic-messages.ts";

/**
 * Two sessions do the same. In one of them everything that can be read is read after every step: the records are equal.
 */
const seed = seedOf(import.meta.url, "unit");

type M = AnthropicMessage;

interface Life {
  readonly session: Session<M>;
  /** The application's own array, for sync. */
  array: M[];
  draft: Draft<M> | null;
  count: number;
}

const openCall = ({ session }: Life): string => session.turn?.open[0]?.id ?? "call_0";

const acts: Record<string, (life: Life) => unknown> = {
  start: (life) => life.session.startTurn(user(`question ${life.count}`)),
  resume: ({ session }) => session.resumeTurn({ calls: "rerun", draft: "keep" }),
  request: (life) => {
    life.draft = life.session.turn?.request().draft ?? null;
  },
  push: (life) => life.draft?.push({ text: `word ${life.count} ` }),
  flush: ({ session }) => session.flush(),
  commit: (life) => life.draft?.commit(says(`answer ${life.count}`)),
  "commit calls": (life) => life.draft?.commit(calls(`call_${life.count}`, `call_${life.count}b`)),
  append: (life) => life.session.turn?.append(says(`answer ${life.count}`)),
  "append call": (life) => life.session.turn?.append(calls(`call_${life.count}`)),
  steer: (life) => life.session.turn?.append(user(`steer ${life.count}`)),
  "tool started": (life) => life.session.turn?.toolStarted(openCall(life)),
  "tool ended": (life) => life.session.turn?.toolEnded(`call_${life.count - 2}`, { value: `result ${life.count}` }),
  tool: (life) => life.session.turn?.tool(openCall(life), () => `result ${life.count}`),
  end: ({ session }) => session.turn?.end(),
  abort: ({ session }) => session.turn?.abort({ by: "user" }),
  enqueue: (life) => life.session.enqueue(user(`queued ${life.count}`)),
  edit: (life) => {
    const { entries } = life.session;
    const last = entries.findLast(({ replacedBy, message }) => !replacedBy && typeof message.content === "string");
    return last && life.session.edit([last.id], [user(`edited ${life.count}`)], { reason: "test", now: true });
  },
  compact: (life) => life.session.replace([user(`summary ${life.count}`)], { reason: "compaction" }),
  load: (life) => {
    life.array = structuredClone([...life.session.messages]);
  },
  "sync prompt": (life) => life.session.sync(push(life, user(`question ${life.count}`))),
  "sync call": (life) => life.session.sync(push(life, calls(`call_${life.count}`))),
  "sync answer": (life) => life.session.sync(push(life, says(`answer ${life.count}`))),
  "sync growing": (life) => life.session.sync([...life.array, says(`growing ${life.count}`)], { open: true }),
  "sync changed": (life) => {
    const at = life.count % Math.max(1, life.array.length);
    life.array = life.array.map((message, n) =>
      n === at ? { ...message, content: `changed ${life.count}` } : message,
    );
    return life.session.sync(life.array, { rewrite: "epoch" });
  },
  "sync copied": (life) => {
    life.array = structuredClone(life.array);
    return life.session.sync(life.array, { rewrite: "epoch" });
  },
  "sync dropped": (life) => {
    life.array = life.array.slice(0, -1);
    return life.session.sync(life.array, { rewrite: "epoch" });
  },
};

function push(life: Life, message: M): M[] {
  life.array.push(message);
  return life.array;
}

/** Every getter of the session, its turn, and a reading of it. */
async function readAll(store: Store, session: Session<M>): Promise<void> {
  for (const one of [session, session.turn, await store.read<M>(session.id)]) {
    if (!one) continue;
    const names = new Set([...Object.keys(one), ...Object.getOwnPropertyNames(Object.getPrototypeOf(one))]);
    for (const name of names) void (one as unknown as Record<string, unknown>)[name];
  }
}

/** What each act answered, and the records; ids are numbered in the order in which they appear, times are left out. */
async function live(names: readonly string[], reads: boolean): Promise<string[]> {
  await using store = await openStore("memory:", { recordsToolStarts: true });
  const session = await store.create<M>({ dialect: "anthropic", draftMs: 1e6 });
  const life: Life = { session, array: [], draft: null, count: 0 };
  const told: string[] = [];
  for (const name of names) {
    life.count += 1;
    try {
      await acts[name]!(life);
      told.push("done");
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
      told.push(error.code);
    }
    if (reads) await readAll(store, session);
  }
  const messages = JSON.stringify(session.messages);
  await session.close();
  const all = await Array.fromAsync(store.history(session.id));
  const records = all.map(({ at: _at, crc: _crc, ...record }) => JSON.stringify(record));
  const seen = new Map<string, string>();
  const numbered = (text: string): string =>
    text
      .replace(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g, (id) => {
        if (!seen.has(id)) seen.set(id, `id ${seen.size}`);
        return seen.get(id)!;
      })
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "time")
      .replace(/"ms":\d+/g, '"ms":0');
  return [...told, ...records, messages].map(numbered);
}

test("reading changes nothing: the records are the same whether or not everything is read at every step", async () => {
  const names = Object.keys(acts);
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...names), { minLength: 4, maxLength: 25 }), async (chosen) => {
      expect(await live(chosen, true)).toEqual(await live(chosen, false));
    }),
    { seed, numRuns: 200 * Number(process.env["HOLDFAST_EFFORT"] ?? 1) },
  );
});

test.each([
  ["an answer while a tool runs", ["start", "append call", "tool started", "append", "tool ended", "steer"]],
  ["a request made before a result", ["start", "append call", "request", "tool", "push", "commit", "steer"]],
  ["a second request after steering", ["start", "request", "push", "steer", "request", "commit", "steer"]],
  ["a changed array", ["sync prompt", "sync answer", "sync prompt", "sync copied", "sync changed", "sync copied"]],
])("reading changes nothing: %s", async (_what, names) => {
  expect(await live(names, true)).toEqual(await live(names, false));
});

test("what `store.read` returns can be copied and printed with all its members", async () => {
  await using store = await openStore("memory:");
  const session = await store.create({ dialect: "anthropic" });
  await session.startTurn({ role: "user", content: "go" });
  const reading = await store.read(session.id);
  const members = [
    "id",
    "recovery",
    "holder",
    "cursor",
    "messages",
    "entries",
    "state",
    "calls",
    "interruption",
    "running",
    "draft",
    "queue",
    "usage",
    "usageByTurn",
  ];
  expect(Object.keys({ ...reading })).toEqual([...members, "attributes", "appState", "warnings"]);
  expect(JSON.parse(JSON.stringify(reading))).toMatchObject({ messages: [{ role: "user", content: "go" }] });
});

import { closeSync, existsSync, openSync, statSync } from "node:fs";
import { devNull } from "node:os";
import { join } from "node:path";
import { errnoOf } from "../../src/errors.ts";
import { isHoldfastError, openStore, type Store } from "../../src/index.ts";

/** Does everything a store can do with no, one, two … descriptors left, then with all of them. Prints what is wrong. */
const [kind, folder] = process.argv.slice(2) as [string, string];
const COUNT_MAX = 12;
const CANTOPEN = 14;

const taken: number[] = [];
function starve(left: number): void {
  try {
    for (;;) taken.push(openSync(devNull, "r"));
  } catch (error) {
    if (errnoOf(error) !== "EMFILE") throw error;
  }
  for (let i = 0; i < left; i++) closeSync(taken.pop()!);
}
function feed(): void {
  for (const fd of taken.splice(0)) closeSync(fd);
}

function must(holds: boolean, words: string): void {
  if (!holds) throw new Error(words);
}

const acts: Readonly<Record<string, (store: Store, id: string) => Promise<unknown>>> = {
  create: async (store) => (await store.create({ dialect: "ai-sdk" })).close(),
  record: async (store, id) => (await store.record(id)).close(),
  resume: async (store, id) => (await store.resume(id)).close(),
  resumeLatest: async (store) => {
    const session = await store.resumeLatest();
    must(session !== null, "there is no latest session");
    await session!.close();
  },
  read: async (store, id) => must((await store.read(id)).entries.length === 2, "entries are missing"),
  list: async (store) => must((await store.list()).sessions.length === 2, "sessions are missing"),
  search: async (store) => must((await Array.fromAsync(store.search("words"))).length > 0, "nothing was found"),
  has: async (store, id) => must(await store.has(id), "it is not there"),
  holder: (store, id) => store.holder(id),
  verify: async (store, id) => must((await store.verify(id)).damaged.length === 0, "it is damaged"),
  fork: async (store, id) => (await store.fork(id)).close(),
  once: (store, id) => store.once(id, "key", "content"),
  history: async (store, id) => must((await Array.fromAsync(store.history(id))).length > 3, "records are missing"),
  heal: (store, id) => store.heal(id),
  trashed: (store) => store.trashed(),
  gc: (store) => store.gc({ graceMs: 0 }),
  ...(kind === "folder" ? { pack: (store: Store, id: string) => store.pack(id) } : {}),
  delete: (store, id) => store.delete(id),
};

/** Null if it succeeds, or fails as it should. */
async function wrong(act: () => Promise<unknown>): Promise<unknown> {
  try {
    await act();
    return null;
  } catch (error) {
    if (!isHoldfastError(error, "STORE_IO")) return error;
    // SQLite does not say which. By the time it has closed the files that it could open, it cannot be found out.
    const isTold = error.facts["errno"] === "EMFILE" || error.facts["sqlite"] === CANTOPEN;
    return isTold && error.message.includes("ulimit -n") ? null : error;
  }
}

async function fill(store: Store): Promise<string> {
  const session = await store.create({ dialect: "ai-sdk" });
  const turn = await session.startTurn({ role: "user", content: "words" });
  await turn.append({ role: "assistant", content: "an answer" });
  await turn.end();
  await session.close();
  return session.id;
}

const address = (name: string): string => (kind === "folder" ? join(folder, name) : `sqlite:${join(folder, name)}`);

let tries = 0;
for (let left = 0; left < COUNT_MAX; left++) {
  const opening = address(`opened-${left}`);
  starve(left);
  const failure = await wrong(async () => (await openStore(opening)).close());
  feed();
  if (failure) console.log(`open, ${left} left:`, failure);
  await (await openStore(opening)).close();
  for (const [name, act] of Object.entries(acts)) {
    const place = address(`${name}-${left}`);
    const store = await openStore(place);
    const ids = [await fill(store), await fill(store)];
    const catalogue = (): number => statSync(join(place, "catalog.sqlite")).ino;
    if (kind === "folder") await store.list();
    const before = kind === "folder" ? catalogue() : 0;
    starve(left);
    const id = ids[0]!;
    const failure = await wrong(() => act(store, id));
    feed();
    tries += 1;
    if (failure) console.log(`${name}, ${left} left:`, failure);
    if (kind === "folder" && catalogue() !== before) console.log(`${name}, ${left} left: the catalogue was replaced`);
    try {
      await act(store, name === "delete" ? ids[1]! : id);
    } catch (error) {
      console.log(`${name} again, after ${left} were left:`, error);
    }
    if (kind === "folder" && name === "search" && !existsSync(join(place, "search.sqlite")))
      console.log(`search again, after ${left} were left: the index stays in memory`);
    await store.close();
  }
}
console.log(`tried ${tries}`);

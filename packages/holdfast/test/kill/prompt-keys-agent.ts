import { writeSync } from "node:fs";
import { type AnthropicMessage, idFrom, isHoldfastError, type Session, type Store, type Turn } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { deadlyDisk } from "../deadly-disk.ts";

/**
 * A program that gives each of its prompts a key, and each message a state, and does everything again when it is
 * started again.
 */

type M = AnthropicMessage;

export interface Orders {
  readonly folder: string;
  /** SIGKILL at the nth write to the journal; 0: never. */
  readonly killAt: number;
  /** How much of that write reaches the file. */
  readonly written: "all" | "half";
}

export const ID = idFrom("prompt keys");
export const KEYS = ["a", "b", "c", "d"];
const promptOf = (key: string): M => ({ role: "user", content: `prompt ${key}` });

/** Null if the prompt with this key has its turn already. */
async function known<T>(made: Promise<T>): Promise<T | null> {
  return made.catch((error) => {
    if (isHoldfastError(error, "PROMPT_KNOWN")) return null;
    throw error;
  });
}

/** What the state says after this message. */
export const stateAt = (at: string) => ({ appState: { at } });

async function answer(turn: Turn<M> | null): Promise<void> {
  if (!turn) return;
  const said = `answer ${turn.number}`;
  await turn.append({ role: "assistant", content: said }, { end: true, ...stateAt(said) });
}

async function buy(turn: Turn<M> | null): Promise<Turn<M> | null> {
  const id = `call ${turn?.open.length}`;
  await turn?.append(
    { role: "assistant", content: [{ type: "tool_use", id, name: "buy", input: {} }] },
    stateAt("call"),
  );
  await turn?.tool(id, () => "bought", { appState: () => stateAt("outcome").appState });
  return turn;
}

export async function live(store: Store): Promise<Session<M>> {
  const isFirst = !(await store.has(ID));
  const session = !isFirst
    ? await store.resume(ID, { dialect: "anthropic" })
    : await store.create({ dialect: "anthropic", id: ID });
  const start = (key: string) => known(session.startTurn(promptOf(key), { key, ...stateAt(`prompt ${key}`) }));
  await answer(await buy(await start("a")));
  await known(session.enqueue(promptOf("b"), { key: "b" }));
  await session.replace([{ role: "user", content: "a summary" }], { reason: "compaction" });
  await answer(await start("b"));
  const turn = await start("c");
  const steering = turn && (await known(session.enqueue(promptOf("d"), { key: "d" })));
  if (steering) await turn.append(steering, stateAt("prompt d"));
  await answer(turn);
  // What is killed in here stays taken back.
  if (!isFirst) return session;
  await session.replace([], { reason: "clear" });
  await session.undo();
  const { entries, id } = session;
  await session.replace(entries.slice(0, -1), { reason: "rewind" });
  await session.undo();
  const forked = await store.fork(id, { at: entries.at(-2)!.id, dialect: "anthropic" });
  await forked.close();
  return session;
}

if (import.meta.main) {
  const { folder, killAt, written } = JSON.parse(process.argv[2]!) as Orders;
  const disk = deadlyDisk({ killAfter: killAt, written });
  const store = await openStoreWith((options) => openFolderStore(folder, { ...options, disk }));
  await live(store);
  writeSync(1, "done\n");
  await store.close();
}

import { writeSync } from "node:fs";
import { type AnthropicMessage, idFrom, isHoldfastError, type Session, type Store, type Turn } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { deadlyDisk } from "../deadly-disk.ts";

/** A program that gives each of its prompts a key, and does everything again when it is started again. */

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

const answer = (turn: Turn<M> | null | undefined): Promise<unknown> | undefined =>
  turn?.append({ role: "assistant", content: `answer ${turn.number}` }, { end: true });

export async function live(store: Store): Promise<Session<M>> {
  const session = (await store.has(ID))
    ? await store.resume(ID, { dialect: "anthropic" })
    : await store.create({ dialect: "anthropic", id: ID });
  await answer(await known(session.startTurn(promptOf("a"), { key: "a" })));
  await known(session.enqueue(promptOf("b"), { key: "b" }));
  await session.replace([promptOf("a summary")], { reason: "compaction" });
  await answer(await known(session.startTurn(promptOf("b"), { key: "b" })));
  const turn = await known(session.startTurn(promptOf("c"), { key: "c" }));
  const steering = turn && (await known(session.enqueue(promptOf("d"), { key: "d" })));
  if (steering) await turn.append(steering);
  await answer(turn);
  await session.replace([], { reason: "clear" });
  await session.undo();
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

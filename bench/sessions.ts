import { openStore, type Session, type Store, type Turn } from "holdfast";
import { type Entry, makeConversation, PER_TURN, type Spoken } from "./messages.ts";

/** A store of sessions in a folder, as an agent opens it. */
export function sessionStore(root: string, durability: "process" | "power" = "process"): Promise<Store> {
  return openStore(root, { durability });
}

/** Records messages turn by turn. `inTurn` gets those of a turn behind its prompt. */
export async function eachTurn<M>(
  session: Session<M>,
  entries: readonly Entry[],
  inTurn: (turn: Turn<M>, entries: readonly Entry[]) => Promise<void>,
): Promise<void> {
  for (let from = 0; from < entries.length; from += PER_TURN) {
    const turn = await session.startTurn(entries[from]!.message as M);
    await inTurn(turn, entries.slice(from + 1, from + PER_TURN));
    await turn.end();
  }
}

/** A session of `count` messages, closed. Returns its folder and its id. */
export async function makeSession(
  root: string,
  dialect: Spoken,
  count: number,
): Promise<{ readonly root: string; readonly id: string }> {
  await using store = await sessionStore(root);
  const session = await store.create<unknown>({ dialect });
  await eachTurn(session, makeConversation(count, dialect), async (turn, entries) => {
    for (const { message } of entries) await turn.append(message);
  });
  return { root, id: session.id };
}

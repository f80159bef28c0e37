import { appendFileSync, existsSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { type AnthropicMessage, isHoldfastError, type Session, type Store, type Turn } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { deadlyDisk } from "../deadly-disk.ts";

/**
 * An agent whose tool has three steps, which is killed at one instant and started again: first `reserve`, which nobody
 * can ask about, then `charge`, whose service can be asked, and `ship`, which is safe to repeat.
 */

type M = AnthropicMessage;

export interface Orders {
  readonly folder: string;
  /** SIGKILL at the nth write to the journal, with how much of it; in the middle of an effect; or of a probe. */
  readonly kill: { readonly write: number; readonly written: "all" | "half" } | { readonly during: string } | null;
}

export const STEPS = ["reserve", "charge", "ship"] as const;
const PROMPT: M = { role: "user", content: "Order it." };
const CALL: M = {
  role: "assistant",
  content: [{ type: "tool_use", id: "call_1", name: "order", input: {} }],
} as never;

/** What the services of the steps have done: a line for each effect. */
export function effectsIn(folder: string): string[] {
  const path = join(folder, "effects");
  return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
}

const die = (): void => {
  process.kill(process.pid, "SIGKILL");
};

async function order(turn: Turn<M>, { folder, kill }: Orders): Promise<void> {
  const during = kill && "during" in kill ? kill.during : "";
  const serve =
    (name: string) =>
    (_signal: AbortSignal, { key }: { key: string }) => {
      if (during === `before ${name}`) die();
      appendFileSync(join(folder, "effects"), `${name} ${key}\n`);
      if (during === `after ${name}`) die();
      return { name, key };
    };
  const probe = ({ name, key }: { name: string; key: string }) => {
    if (during === "probe") die();
    return effectsIn(folder).includes(`${name} ${key}`) ? { value: { name, key } } : ("did-not-happen" as const);
  };
  await turn.tool(
    "call_1",
    async (_, { step }) => {
      const done = [await step("reserve", serve("reserve")), await step("charge", serve("charge"), { probe })];
      return [...done, await step("ship", serve("ship"), { replay: "safe" })];
    },
    { replay: "safe" },
  );
}

/** One life, to its end if nobody kills it. */
export async function live(session: Session<M>, orders: Orders): Promise<void> {
  if (session.messages.length > 0 && !session.interruption) return;
  const turn = session.interruption ? await session.resumeTurn({ calls: "rerun" }) : await session.startTurn(PROMPT);
  if (session.messages.length === 1) await turn.append(CALL);
  if (turn.open.length > 0) await order(turn, orders);
  await turn.append({ role: "assistant", content: "Done." }, { end: true });
}

async function open({ folder, kill }: Orders): Promise<Store> {
  const death = kill && "write" in kill ? { killAfter: kill.write, written: kill.written } : { killAfter: 0 };
  const disk = deadlyDisk(death);
  return openStoreWith((options) => openFolderStore(folder, { ...options, disk }), { recordsToolStarts: true });
}

if (import.meta.main) {
  const orders = JSON.parse(process.argv[2]!) as Orders;
  const store = await open(orders);
  const known = join(orders.folder, "session");
  const id = existsSync(known) ? readFileSync(known, "utf8") : null;
  const found =
    id &&
    (await store.resume<M>(id).catch((error) => {
      if (isHoldfastError(error, "SESSION_NOT_FOUND")) return null;
      throw error;
    }));
  const session = found || (await store.create<M>({ dialect: "anthropic" }));
  if (!found) writeFileSync(known, session.id);
  await live(session, orders);
  writeSync(1, "done\n");
  await store.close();
}

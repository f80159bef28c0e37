import { setTimeout as sleep } from "node:timers/promises";
import type { AnthropicMessage, ProbeAnswer, Session } from "holdfast";
import pg from "pg";
import { openStore } from "../../src/index.ts";
import { say } from "./say.ts";

/**
 * A worker of a fleet whose tool charges a card: `probe-worker.ts <url> <options> <life>`. The service is a table of
 * the same database over a connection of its own, and takes every charge that it gets. `hangs`: where this worker
 * stays, to be killed there. `asks`: how it settles what another one left.
 */
const [url, options, life] = process.argv.slice(2);
const { hangs, asks } = JSON.parse(options!) as {
  readonly hangs?: "before" | "after";
  readonly asks: "settleCalls" | "turn.tool";
};

const store = await openStore(url!, { monthsAhead: 0, connections: 3, recordsToolStarts: true });
const service = new pg.Pool({ connectionString: url!, max: 1 });

async function hangsAt(point: typeof hangs): Promise<void> {
  if (hangs !== point) return;
  say({ id: "", by: life, ran: point });
  await sleep(2 ** 31 - 1);
}

async function charge(key: string): Promise<string> {
  await hangsAt("before");
  await service.query("INSERT INTO charges (key, life) VALUES ($1, $2)", [key, life]);
  await hangsAt("after");
  return `receipt of ${life}`;
}

async function probe({ key }: { readonly key: string | null }): Promise<ProbeAnswer<string>> {
  const { rows } = await service.query<{ life: string }>("SELECT life FROM charges WHERE key = $1", [key]);
  return rows[0] ? { value: `receipt of ${rows[0].life}` } : "did-not-happen";
}

async function finish(session: Session<AnthropicMessage>): Promise<void> {
  if (asks === "settleCalls") await session.settleCalls({ charge: probe });
  const turn = await session.resumeTurn({ calls: "rerun" });
  for (const { id } of turn.open)
    await turn.tool(id, (_, { key }) => charge(key), asks === "turn.tool" ? { probe } : {});
  await turn.append({ role: "assistant", content: "Done." }, { end: true });
  say({ id: session.id, by: life, finished: session.id });
}

await store.work<AnthropicMessage>(
  { signal: new AbortController().signal, pollMs: 100, backoffMs: 20, backoffMaxMs: 100 },
  finish,
);

import { setTimeout as sleep } from "node:timers/promises";
import { type AnthropicMessage, isHoldfastError, type OpenCall, type Session, type Turn } from "holdfast";
import { openStore, type PostgresSessions } from "../../src/index.ts";
import { say } from "./say.ts";

/**
 * A worker of a fleet: `fleet-worker.ts <url> <options> <life>`. It claims interrupted sessions and finishes their
 * turns with a model that always asks for the same: in each step a tool that must not run twice, one that may, and one
 * whose rows are committed with its outcome. It says when a tool runs, and when a turn is finished.
 */
const [url, options, life] = process.argv.slice(2);
const { steps, ...storeOptions } = JSON.parse(options!) as { readonly steps: number };

/** Long enough for a good share of the kills to hit a tool. */
const TOOL_MS = 40;
const TOOLS = ["once", "again", "together"] as const;

function stepOf(session: Session<AnthropicMessage>): number {
  return session.messages.filter(({ role }) => role === "assistant").length;
}

async function run(store: PostgresSessions, turn: Turn<AnthropicMessage>, { id, name }: OpenCall): Promise<void> {
  if (name === "together") {
    await store.tool(turn, id, async (client) => {
      await client.query("INSERT INTO effects (call, life) VALUES ($1, $2)", [id, life]);
      await sleep(TOOL_MS);
      return "done";
    });
    return;
  }
  const isSafe = name === "again";
  await turn.tool(
    id,
    async (signal) => {
      say({ id: turn.prompt.id, by: life, ran: id, isSafe });
      await sleep(TOOL_MS, undefined, { signal });
      return "done";
    },
    { replay: isSafe ? "safe" : "never" },
  );
}

async function finish(store: PostgresSessions, session: Session<AnthropicMessage>): Promise<void> {
  if (session.interruption?.answered) return session.completeTurn();
  const turn = await session.resumeTurn({ calls: "rerun" });
  for (;;) {
    await Promise.all(turn.open.map((call) => run(store, turn, call)));
    const step = stepOf(session);
    const { draft } = turn.request();
    if (step === steps) {
      await draft.commit({ role: "assistant", content: [{ type: "text", text: "finished" }] }, { end: true });
      say({ id: session.id, by: life, finished: session.id });
      return;
    }
    const calls = TOOLS.map((name) => ({
      type: "tool_use" as const,
      id: `${session.id}/${step}/${name}`,
      name,
      input: {},
    }));
    await draft.commit({ role: "assistant", content: calls });
  }
}

/** The server may be away for long, on a busy machine. */
async function opened(): Promise<PostgresSessions> {
  for (;;) {
    try {
      return await openStore(url!, { monthsAhead: 0, connections: 4, recordsToolStarts: true, ...storeOptions });
    } catch (error) {
      if (!isHoldfastError(error, "STORE_IO")) throw error;
    }
  }
}

const store = await opened();
say({ id: "", by: life, opened: 0 });
await store.work<AnthropicMessage>(
  {
    signal: new AbortController().signal,
    concurrency: 2,
    pollMs: 150,
    // Kills are not the sessions' fault here.
    maxTries: 1_000_000,
    backoffMs: 20,
    backoffMaxMs: 300,
    onResult: ({ session, outcome, error }) => {
      if (error !== undefined) say({ id: session, by: life, lost: outcome, code: String(error).slice(0, 300) });
    },
    onError: (error) => say({ id: "", by: life, refused: String(error).slice(0, 300) }),
  },
  (session) => finish(store, session),
);

// A worker of a fleet: it claims sessions whose worker died or was shut down, and finishes their turns. Start as many
// as you like, on any machine, and kill any of them at any time:
//   node --conditions=holdfast-source examples/fleet.ts postgres://worker@db.internal/agents
import { setTimeout as sleep } from "node:timers/promises";
import { openStore, type PostgresSessions } from "@holdfast/postgres";
import type { OpenCall, Session, Turn } from "holdfast";
import { ask, callsIn, type Message } from "./model.ts";

const store = await openStore(process.argv[2] ?? "postgres://localhost/agents", {
  app: "fleet",
  recordsToolStarts: true, // promise: every tool runs through `turn.tool` or `store.tool`
});

// A shutdown is not a crash: the turns in flight are handed over, and the next worker continues them as if nothing had
// happened. What is under way has 8 seconds to end (`withinMs`): give the process manager a little more than that.
const stop = new AbortController();
process.once("SIGTERM", () => stop.abort());
process.once("SIGINT", () => stop.abort());

await store.work<Message>(
  {
    signal: stop.signal,
    concurrency: 4,
    labels: { queue: "releases" }, // only the sessions that this program knows how to finish
    onResult: ({ session, outcome, tries }) => console.log(`${session}: ${outcome} (try ${tries})`),
    onError: (error) => console.error(String(error)), // the server was away; the worker continues
  },
  (session, { signal }) => finish(store, session, signal),
);
await store.close();

async function finish(store: PostgresSessions, session: Session<Message>, stopping: AbortSignal): Promise<void> {
  // The model had answered, and only the end of the turn is missing: do not ask again.
  if (session.interruption?.answered) return session.completeTurn();
  // Calls that never started or are safe to repeat stay open. For the others, the model is told how far each got.
  const turn = await session.resumeTurn({ calls: "rerun" });
  const signal = AbortSignal.any([turn.signal, stopping]);
  for (;;) {
    for (const call of turn.open) await run(store, turn, call);
    const { messages, draft } = turn.request();
    const answer = await ask(messages, (text) => draft.push({ text }), signal);
    const isLast = callsIn(answer).length === 0;
    await draft.commit(answer, { end: isLast });
    if (isLast) return;
  }
}

async function run(store: PostgresSessions, turn: Turn<Message>, { id, name }: OpenCall): Promise<void> {
  switch (name) {
    case "post_summary":
      // The row and the outcome are committed together: whatever is killed, it is posted exactly once.
      await store.tool(turn, id, async (client) => {
        await client.query("INSERT INTO summaries (call, text) VALUES ($1, $2)", [id, "Release on Friday."]);
        return "Posted.";
      });
      return;
    case "send_mail":
      // Nobody can send a mail exactly once. After a crash in here, the model is told that it may have been sent.
      await turn.tool(id, (signal) => sleep(200, "Sent.", { signal }));
      return;
    default:
      await turn.tool(id, () => "Release on Friday.", { replay: "safe" });
  }
}

// Finishes turns that were cut off, handed over or put to sleep, until nothing is due. For cron, on any store:
//   node --conditions=holdfast-source examples/finish.ts ./data
import { openStore, type Session } from "holdfast";
import { ask, callsIn, type Message } from "./model.ts";

await using store = await openStore(process.argv[2] ?? "./data", { app: "finish", recordsToolStarts: true });
for (;;) {
  const result = await store.claimNext<Message>({ labels: { queue: "notes" } }, finish);
  if (!result) break;
  console.log(`${result.session}: ${result.outcome} (try ${result.tries})`);
}
console.log(`next: ${(await store.nextDue())?.toISOString() ?? "nothing"}`);

async function finish(session: Session<Message>): Promise<void> {
  // The model had answered, and only the end of the turn is missing: do not ask again.
  if (session.interruption?.answered) return session.completeTurn();
  // Calls that never started or are safe to repeat stay open. For the others, the model is told how far each got.
  const turn = await session.resumeTurn({ calls: "rerun" });
  for (;;) {
    for (const { id } of turn.open) await turn.tool(id, () => "Noted.", { replay: "safe" });
    const { messages, draft } = turn.request();
    const answer = await ask(messages, (text) => draft.push({ text }), turn.signal);
    const isLast = callsIn(answer).length === 0;
    await draft.commit(answer, { end: isLast });
    if (isLast) return;
  }
}

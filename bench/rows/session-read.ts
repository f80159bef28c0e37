import type { Bench } from "../bench.ts";
import type { Results } from "../figure.ts";
import { makeConversation } from "../messages.ts";
import { eachTurn, sessionStore } from "../sessions.ts";
import { median } from "../statistics.ts";

const MESSAGES = 10_000;
const READS = 2000;

/** Reading 10,000 messages again when nothing has changed: for the screen, and for the model. */
export async function sessionReadRow(bench: Bench, { figures }: Results): Promise<void> {
  await using store = await sessionStore(bench.path("read"));
  await using session = await store.create<unknown>({ dialect: "anthropic" });
  await eachTurn(session, makeConversation(MESSAGES, "anthropic"), async (turn, entries) => {
    for (const { message } of entries) await turn.append(message);
  });
  const turn = await session.startTurn({ role: "user", content: "Go on." });
  const reads = {
    "session.messages": () => session.messages,
    "turn.request()": () => turn.request().messages,
  };
  for (const [name, read] of Object.entries(reads)) {
    const rounds: number[] = [];
    for (let round = -1; round < bench.size(15, 7); round++) {
      const times: number[] = [];
      for (let i = 0; i < READS; i++) {
        const start = performance.now();
        const { length } = read();
        times.push((performance.now() - start) * 1000);
        if (length !== MESSAGES + 1) throw new Error(`${name} gave ${length} messages`);
      }
      if (round >= 0) rounds.push(median(times));
    }
    figures.push({
      row: "session-read",
      what: `${name}, 10,000 messages, nothing changed, p50`,
      bound: { under: 5 },
      unit: "µs",
      rounds,
    });
  }
}

import type { Bench } from "../bench.ts";
import type { Results } from "../figure.ts";
import { makeConversation } from "../messages.ts";
import { sessionStore } from "../sessions.ts";
import { quantile } from "../statistics.ts";

const MESSAGES = 10_000;
const PER_ROUND = 200;

/**
 * `session.sync` of an array in which nothing is new, which agents call after every step; and, for comparison, a loop
 * that looks at every message of it.
 */
export async function sessionSyncRow(bench: Bench, { figures, peers }: Results): Promise<void> {
  await using store = await sessionStore(bench.path("sync"));
  await using session = await store.create<unknown>({ dialect: "anthropic" });
  const messages = makeConversation(MESSAGES, "anthropic").map(({ message }) => message);
  const recorded = [...messages];
  await session.sync(messages);
  const p50Ms: [number[], number[]] = [[], []];
  // The first rounds warm both up.
  for (let round = -2; round < bench.size(15, 7); round++) {
    const times: [number[], number[]] = [[], []];
    for (let i = 0; i < PER_ROUND; i++) {
      for (let turn = 0; turn < 2; turn++) {
        const which = ((i + turn) & 1) as 0 | 1;
        const start = performance.now();
        const found = which === 0 ? (await session.sync(messages)).appended.length : differences(recorded, messages);
        times[which].push(performance.now() - start);
        if (found !== 0) throw new Error(`${found} messages were found to be new`);
      }
    }
    if (round >= 0) for (const which of [0, 1] as const) p50Ms[which].push(quantile(times[which], 0.5));
  }
  if (session.entries.length !== MESSAGES) throw new Error(`${session.entries.length} messages are recorded`);
  figures.push({
    row: "session-sync",
    what: "sync an unchanged array of 10,000 messages, by reference, p50",
    bound: { under: 1 },
    unit: "ms",
    rounds: p50Ms[0],
  });
  peers.push({
    what: "the same sync against a loop that compares 10,000 references",
    unit: "×",
    rounds: p50Ms[0].map((ms, round) => ms / p50Ms[1][round]!),
  });
}

function differences(recorded: readonly unknown[], messages: readonly unknown[]): number {
  let count = 0;
  for (let i = 0; i < messages.length; i++) if (recorded[i] !== messages[i]) count += 1;
  return count;
}

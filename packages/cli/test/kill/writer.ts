import { openStore } from "holdfast";

/**
 * Records messages in a session for ever, and says on standard output which ones it was promised (P1): `<store>
 * <session>`.
 */
const [url, id] = process.argv.slice(2);
const store = await openStore(url!);
const session = await store.resume(id!);
const turn = session.turn ?? (await session.startTurn({ role: "user", content: "go on for ever" }));
for (let n = 1; ; n++) {
  const text = `message ${n} ${"x".repeat((n * 37) % 3000)}`;
  const { id: message } = await turn.append(
    n % 2 === 1 ? { role: "assistant", content: text } : { role: "user", content: text },
  );
  process.stdout.write(`${message}\n`);
  // New segments come and go while it is being copied.
  if (n % 40 === 0) await session.replace([...session.entries.slice(-10)], { reason: "compaction" });
}

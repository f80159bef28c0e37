import { setTimeout as sleep } from "node:timers/promises";
import { isHoldfastError } from "holdfast";
import type { JournalStore } from "holdfast/store";
import { openPostgresStore } from "../../src/index.ts";
import { say } from "./say.ts";

/**
 * A process that appends to sessions without end: `worker.ts <url> <options> <life> <id> …`. What it does it says, one
 * JSON in each line, written at once, so that a SIGKILL takes nothing of it: `{opened}`, `{attempt}` before an append,
 * `{ack}` after it, `{failed}`. A session that it loses, or that another one has, it opens again.
 */
const [url, options, life, ...ids] = process.argv.slice(2);
/** Every third append is of durability `process`. */
const { soft = false, ...storeOptions } = JSON.parse(options!);

/** Appends that are under way at the same time in one session. */
const IN_FLIGHT = 3;

async function open(store: JournalStore, id: string): Promise<Awaited<ReturnType<JournalStore["open"]>>["journal"]> {
  for (;;) {
    try {
      return (await store.open(id)).journal;
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
      say({ id, refused: error.code });
      await sleep(50);
    }
  }
}

async function work(store: JournalStore, id: string): Promise<void> {
  for (let opening = 1; ; opening++) {
    const journal = await open(store, id);
    const by = `${life}.${opening}`;
    say({ id, by, opened: journal.head });
    const flights = new Set<Promise<void>>();
    for (let n = 1; !journal.failure; n++) {
      const count = (n % 5) + 1;
      const durability = soft && n % 3 === 0 ? "process" : "power";
      const unit = Array.from({ length: count }, (_, part) => ({
        kind: "note",
        by,
        n,
        part,
        text: "x".repeat(n % 300),
      }));
      say({ id, by, attempt: n, count });
      const flight: Promise<void> = journal
        .append(unit, { durability })
        .then(
          ({ seq }) => say({ id, by, ack: n, seq, soft: durability === "process" }),
          (error: unknown) => say({ id, by, failed: n, code: isHoldfastError(error) ? error.code : String(error) }),
        )
        .then(() => void flights.delete(flight));
      flights.add(flight);
      if (flights.size >= IN_FLIGHT) await Promise.race(flights);
      // The judge has to read it all.
      await sleep(3);
    }
    await Promise.all(flights);
    say({ id, by, lost: journal.failure.code });
    await journal.close().catch(() => undefined);
  }
}

/** The server may be away for long, on a busy machine: whoever starts a worker would start it again. */
async function openedAtLast(): Promise<JournalStore> {
  for (;;) {
    try {
      return await openPostgresStore(url!, { monthsAhead: 0, connections: 4, ...storeOptions });
    } catch (error) {
      if (!isHoldfastError(error, "STORE_IO")) throw error;
    }
  }
}

const store = await openedAtLast();
await Promise.all(ids.map((id) => work(store, id)));

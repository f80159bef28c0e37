import { openStore } from "holdfast";
import { openFolderStore } from "holdfast/internal";

/**
 * Does everything that can be done with a store, says how each went, one JSON object to a line, and ends. A line before
 * each: what was being done when it hung or died.
 */

interface Job {
  readonly root: string;
  readonly sessions: readonly string[];
  /** Also what changes a store. */
  readonly changes: boolean;
}

const { root, sessions, changes } = JSON.parse(process.argv[2]!) as Job;

function say(event: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify(event)}\n`);
}

async function attempt(id: string | null, call: string, work: () => Promise<unknown>): Promise<void> {
  say({ e: "begins", id, call });
  const since = performance.now();
  const ms = (): number => Math.round(performance.now() - since);
  try {
    const value = await work();
    say({ e: "done", id, call, ms: ms(), value });
  } catch (error) {
    const { name, code, message } = error as { name?: string; code?: string; message?: string };
    say({
      e: "failed",
      id,
      call,
      ms: ms(),
      typed: name === "HoldfastError",
      code,
      message: String(message).slice(0, 300),
      stack: name === "HoldfastError" ? undefined : (error as Error).stack,
    });
  }
}

{
  await using store = await openFolderStore(root);
  await attempt(null, "list", async () =>
    (await store.list()).sessions.map(({ id, unreadable, head }) => ({ id, head, unreadable })),
  );
  for (const id of sessions) {
    await attempt(id, "has", () => store.has(id));
    await attempt(id, "holder", () => store.holder(id));
    await attempt(id, "read", async () => (await store.read(id)).records.length);
    await attempt(id, "history", async () => {
      let count = 0;
      for await (const _record of store.history(id)) count++;
      return count;
    });
    await attempt(id, "verify", async () => {
      const { damaged, missing, records, cutBytes } = await store.verify(id);
      return { records, damaged: damaged.length, missing: missing.length, cutBytes };
    });
    await attempt(id, "follow", async () => {
      const ending = new AbortController();
      let count = 0;
      const timer = setTimeout(() => ending.abort(), 30);
      for await (const _record of store.follow(id, { signal: ending.signal })) count++;
      clearTimeout(timer);
      return count;
    });
  }
  if (changes) {
    for (const id of sessions) {
      await attempt(id, "open", async () => {
        const { journal } = await store.open(id);
        try {
          await journal.append({ kind: "hostile.test" });
          return journal.head;
        } finally {
          await journal.close();
        }
      });
      await attempt(id, "read again", async () => (await store.read(id)).records.at(-2)?.kind);
      await attempt(id, "pack", () => store.pack(id));
    }
  }
}
{
  await using store = await openStore(root);
  await attempt(null, "sessions: list", async () => (await store.list({ limit: 1000 })).sessions.length);
  await attempt(null, "sessions: search", async () =>
    (await Array.fromAsync(store.search("healthy"))).map(({ session }) => session),
  );
  for (const id of sessions) await attempt(id, "sessions: read", async () => (await store.read(id)).messages.length);
  if (changes) {
    for (const id of sessions) {
      await attempt(id, "sessions: resume", async () => {
        const session = await store.resume(id);
        const { length } = session.messages;
        await session.close();
        return length;
      });
      await attempt(id, "delete", () => store.delete(id));
    }
    await attempt(null, "gc", async () => (await store.gc({ graceMs: 0 })).removed.length);
    await attempt(null, "sessions: list again", async () => (await store.list({ limit: 1000 })).sessions.length);
  }
}
say({ e: "over" });

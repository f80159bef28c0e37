import { setImmediate as turn } from "node:timers/promises";
import type { JournalRecord } from "holdfast";
import { openMemoryStore } from "holdfast/internal";
import { later } from "../trial.ts";
import { type BrokenStore, journals, open, sequences, stores } from "./wrap.ts";

/** How far a lossy follower may fall behind. */
const BACKLOG_MAX = 100;

function afterSeq(after: number | string | undefined): number {
  return typeof after === "string" ? Number.parseInt(after, 10) || 0 : (after ?? 0);
}

/** Faults in following. */
export const brokenFollowing: readonly BrokenStore[] = [
  {
    name: "leaves out a record now and then when it is followed",
    open: sequences(async function* (found) {
      for await (const record of found) if (record.seq % 7 !== 0) yield record;
    }),
  },
  {
    name: "gives out a record twice now and then when it is followed",
    open: sequences(async function* (found) {
      for await (const record of found) {
        yield record;
        if (record.seq % 7 === 0) yield record;
      }
    }),
  },
  {
    name: "gives out pairs of records in the wrong order when it is followed",
    open: sequences(async function* (found) {
      let kept: JournalRecord | undefined;
      for await (const record of found) {
        if (record.seq % 7 === 0) kept = record;
        else {
          yield record;
          if (kept) yield kept;
          kept = undefined;
        }
      }
    }),
  },
  {
    name: "shows followers only what is new",
    open: stores((store, memory) => ({
      async *follow(id, options = {}) {
        const head = memory.sessions.get(id)?.head ?? 0;
        yield* store.follow(id, { ...options, after: options.after ?? head });
      },
    })),
  },
  {
    name: "shows followers only what is there",
    open: stores((store) => ({ follow: (id, options) => store.history(id, afterSeq(options?.after) + 1) })),
  },
  {
    name: "follows from the beginning, always",
    open: stores((store) => ({ follow: (id, { after: _, ...options } = {}) => store.follow(id, options) })),
  },
  {
    name: "does not look at the checksum of a cursor",
    open: stores((store) => ({
      follow: (id, options = {}) => store.follow(id, { ...options, after: afterSeq(options.after) }),
    })),
  },
  {
    name: "does not hear the signal of a follower",
    open: stores((store) => ({ follow: (id, { signal: _, ...options } = {}) => store.follow(id, options) })),
  },
  {
    name: "throws when a follower is stopped",
    open: stores((store) => ({
      async *follow(id, options = {}) {
        yield* store.follow(id, options);
        options.signal?.throwIfAborted();
      },
    })),
  },
  {
    name: "ends its followers at an epoch",
    open: sequences(async function* (found) {
      for await (const record of found) {
        if (record.kind === "segment" && record["segment"] !== 1) return;
        yield record;
      }
    }),
  },
  {
    name: "shows followers only the current epoch",
    open: stores((store, memory) => ({
      async *follow(id, options = {}) {
        const epoch = memory.sessions.get(id)?.epochAt ?? 0;
        yield* store.follow(id, { ...options, after: options.after ?? epoch });
      },
    })),
  },
  {
    name: "ends its followers when the writer closes",
    open: sequences(async function* (found) {
      for await (const record of found) {
        yield record;
        if (record.kind === "closed") return;
      }
    }),
  },
  {
    name: "keeps its followers waiting when the session is deleted",
    open: stores((store) => ({
      async *follow(id, options = {}) {
        yield* store.follow(id, options);
        const { signal } = options;
        if (signal && !signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
      },
    })),
  },
  {
    name: "keeps its followers waiting when the store is closed",
    open: async (memory, options) => {
      const never = await openMemoryStore({ memory, ...options });
      return stores((store) => ({
        async *follow(id, following) {
          await store.has(id);
          yield* never.follow(id, following);
        },
      }))(memory, options);
    },
  },
  {
    name: "drops records for a slow follower",
    open: stores((store, memory) => ({
      async *follow(id, options) {
        for await (const record of store.follow(id, options)) {
          if ((memory.sessions.get(id)?.head ?? 0) - record.seq < BACKLOG_MAX) yield record;
        }
      },
    })),
  },
  {
    name: "gives out what is not acknowledged",
    open: async (memory, options) => {
      const early = journals((journal) => ({
        async append(records, appending) {
          const pending = later(journal.append(records, appending));
          memory.sessions.get(journal.id)?.acknowledge(journal.head);
          await turn();
          return pending;
        },
        get durable() {
          return Math.max(0, journal.durable - 2);
        },
      }));
      return early(memory, options);
    },
  },
  {
    name: "ends all followers when one gives up",
    open: async (memory, options) => {
      const store = await open(memory, options);
      const others = new Set<AbortController>();
      return stores(
        () => ({
          async *follow(id, following = {}) {
            const stop = new AbortController();
            others.add(stop);
            const signals = following.signal ? [stop.signal, following.signal] : [stop.signal];
            try {
              yield* store.follow(id, { ...following, signal: AbortSignal.any(signals) });
            } finally {
              for (const other of others) other.abort();
            }
          },
        }),
        async () => store,
      )(memory, options);
    },
  },
];

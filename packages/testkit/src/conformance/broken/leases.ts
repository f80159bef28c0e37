import { setImmediate as turn } from "node:timers/promises";
import { HoldfastError } from "holdfast";
import type { JournalStore } from "holdfast/store";
import { type BrokenStore, journals, perMemory, stores } from "./wrap.ts";

function busy(facts: Record<string, never> | { holder: object; sameProcess: boolean }): HoldfastError {
  return new HoldfastError("SESSION_BUSY", "Somebody writes.", facts as Record<string, never>);
}

const stale = perMemory(() => new Set<string>());

const reads = ["read", "verify", "list", "holder", "gc"] as const satisfies readonly (keyof JournalStore)[];

/** Faults in having one writer at a time. */
export const brokenLeases: readonly BrokenStore[] = [
  {
    name: "lets two writers in",
    open: stores((store, memory) => ({
      async open(id, options) {
        memory.leases.delete(id);
        return store.open(id, options);
      },
    })),
  },
  {
    name: "does not take the lease when it creates",
    open: stores((store, memory) => ({
      async create(...args) {
        const journal = await store.create(...args);
        memory.leases.delete(journal.id);
        return journal;
      },
    })),
  },
  {
    name: "creates without a lease, and the last one wins",
    open: stores((store, memory) => ({
      async create(id, ...rest) {
        const exists = memory.sessions.has(id);
        await turn();
        if (!exists) {
          memory.sessions.delete(id);
          memory.leases.delete(id);
        }
        return store.create(id, ...rest);
      },
    })),
  },
  {
    name: "does not say who has the lease",
    open: stores((store) => ({
      open: (id, options) =>
        store.open(id, options).catch((error: { code?: unknown }) => {
          throw error.code === "SESSION_BUSY" ? busy({}) : error;
        }),
    })),
  },
  {
    name: "takes its own process for another one",
    open: stores((store) => ({
      open: (id, options) =>
        store.open(id, options).catch((error: HoldfastError) => {
          if (error.code !== "SESSION_BUSY") throw error;
          throw busy({ holder: error.facts["holder"] as object, sameProcess: false });
        }),
    })),
  },
  { name: "never knows a holder", open: stores(() => ({ holder: async () => null })) },
  {
    name: "calls the last writer a holder",
    open: stores((store, memory) => {
      let last: Awaited<ReturnType<JournalStore["holder"]>> = null;
      return {
        async holder(id) {
          last = memory.leases.get(id)?.holder ?? last;
          await store.holder(id);
          return last;
        },
      };
    }),
  },
  {
    name: "keeps the lease after close",
    open: journals((journal, memory) => ({
      async close() {
        const lease = memory.leases.get(journal.id);
        await journal.close();
        if (lease) memory.leases.set(journal.id, lease);
      },
    })),
  },
  {
    name: "keeps the lease of a writer that was killed",
    open: stores(
      (store, memory) => ({
        async open(id, options) {
          if (stale(memory).has(id)) throw busy({ holder: {}, sameProcess: false });
          const opened = await store.open(id, options);
          stale(memory).add(id);
          return opened;
        },
      }),
      journals((journal, memory) => ({
        async close() {
          await journal.close();
          stale(memory).delete(journal.id);
        },
      })),
    ),
  },
  {
    name: "gives the lease away when it is read",
    open: stores((store, memory) => {
      const careless = (name: (typeof reads)[number]) => {
        const call = store[name].bind(store) as (...args: unknown[]) => Promise<unknown>;
        return async (...args: unknown[]) => {
          const result = await call(...args);
          for (const id of typeof args[0] === "string" ? [args[0]] : [...memory.leases.keys()])
            memory.leases.delete(id);
          return result;
        };
      };
      return Object.fromEntries(reads.map((name) => [name, careless(name)])) as Partial<JournalStore>;
    }),
  },
  {
    name: "deletes under the writer's feet",
    open: stores((store, memory) => ({
      async delete(id) {
        memory.leases.delete(id);
        return store.delete(id);
      },
    })),
  },
];

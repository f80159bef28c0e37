import { type BrokenStore, perMemory, stores } from "./wrap.ts";

const GRACE_MS = 7 * 24 * 60 * 60 * 1000;

const hidden = perMemory(() => new Set<string>());
const told = perMemory(() => new Set<string>());

/** Faults in deleting and garbage collection. */
export const brokenDeleting: readonly BrokenStore[] = [
  {
    name: "deletes nothing",
    open: stores((store) => ({
      async delete(id) {
        if ((await store.holder(id)) !== null) await store.delete(id);
      },
    })),
  },
  {
    name: "deletes everything",
    open: stores((store, memory) => ({
      async delete(id) {
        await store.delete(id);
        memory.sessions.clear();
      },
    })),
  },
  {
    name: "only hides what is deleted",
    open: stores((store, memory) => ({
      async delete(id) {
        if ((await store.holder(id)) !== null) return store.delete(id);
        hidden(memory).add(id);
      },
      has: async (id) => (await store.has(id)) && !hidden(memory).has(id),
      async list(options) {
        const page = await store.list(options);
        return { ...page, sessions: page.sessions.filter(({ id }) => !hidden(memory).has(id)) };
      },
    })),
  },
  {
    name: "deletes a missing session silently",
    open: stores((store) => ({
      async delete(id) {
        if (await store.has(id)) await store.delete(id);
      },
    })),
  },
  {
    name: "lists what was deleted",
    open: stores((store, memory) => ({
      async delete(id) {
        const [found] = (await store.list()).sessions.filter((listed) => listed.id === id);
        await store.delete(id);
        if (found) told(memory).add(JSON.stringify(found));
      },
      async list(options) {
        const page = await store.list(options);
        return { ...page, sessions: [...page.sessions, ...[...told(memory)].map((text) => JSON.parse(text))] };
      },
    })),
  },
  { name: "empties the trash at once", open: stores((store) => ({ gc: () => store.gc({ graceMs: -1 }) })) },
  {
    name: "never empties the trash",
    open: stores((store) => ({ gc: (options) => store.gc({ ...options, graceMs: 2 * GRACE_MS }) })),
  },
  { name: "restores nothing", open: stores(() => ({ restore: async () => {} })) },
  {
    name: "replaces a session by the one that it restores",
    open: stores((store) => ({
      async restore(id) {
        if ((await store.has(id)) && (await store.trashed!()).some((one) => one.id === id)) await store.delete(id);
        await store.restore!(id);
      },
    })),
  },
  {
    name: "tells again and again what it removed",
    open: stores((store) => {
      const removed = new Set<string>();
      return {
        async gc(options) {
          for (const name of (await store.gc(options)).removed) removed.add(name);
          return { removed: [...removed] };
        },
      };
    }),
  },
  {
    name: "tidies empty sessions away",
    open: stores((store, memory) => ({
      async gc(options) {
        const { removed } = await store.gc(options);
        const empty = [...memory.sessions.values()].filter((session) => session.head < 3).map(({ id }) => id);
        for (const id of empty) memory.sessions.delete(id);
        return { removed: [...removed, ...empty] };
      },
    })),
  },
];

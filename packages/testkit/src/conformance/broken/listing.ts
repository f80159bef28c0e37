import { isDeepStrictEqual } from "node:util";
import type { Json } from "holdfast";
import { type ListHints, openMemoryStore } from "holdfast/internal";
import type { Holder, JournalStore, Listed, ListOptions } from "holdfast/store";
import type { OpenInMemory } from "../memory-subject.ts";
import { type BrokenStore, perMemory, stores } from "./wrap.ts";

type Page = Awaited<ReturnType<JournalStore["list"]>>;

/** Stores with changed lists. */
function lists(
  change: (list: (options?: ListOptions) => Promise<Page>, options: ListOptions) => Promise<Page>,
): OpenInMemory {
  return stores((store) => ({ list: (options = {}) => change((given) => store.list(given), options) }));
}

function rows(change: (listed: Listed) => Listed): OpenInMemory {
  return lists(async (list, options) => {
    const page = await list(options);
    return { ...page, sessions: page.sessions.map(change) };
  });
}

function matches(listed: Listed, where: ListOptions["where"] = {}): boolean {
  const row = (listed.summary ?? {}) as Record<string, Json>;
  return Object.entries(where).every(([name, value]) => String(row[name]) === String(value));
}

/** Filters by hints, as `fits` understands them. */
function hinted(fits: (listed: Listed, hints: ListHints) => boolean): OpenInMemory {
  return lists(async (list, { limit, after, ...options }) => {
    const { sessions } = await list(options);
    const all = sessions.filter((listed) => fits(listed, options.hints ?? {}));
    const start = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1;
    const page = all.slice(start, limit === undefined ? undefined : start + limit);
    return start + page.length < all.length ? { sessions: page, next: page.at(-1)!.id } : { sessions: page };
  });
}

function members(listed: Listed, name: string): Record<string, Json> {
  const value = ((listed.summary ?? {}) as Record<string, Json>)[name];
  return (value ?? {}) as Record<string, Json>;
}

const catalogue = perMemory(() => new Map<string, Json>());

/** Faults in listing. */
export const brokenListing: readonly BrokenStore[] = [
  {
    name: "lists the oldest first",
    open: lists(async (list, options) => {
      const { sessions } = await list({ ...(options.where ? { where: options.where } : {}) });
      const start = Number(options.after ?? 0);
      const end = start + (options.limit ?? sessions.length);
      const page = sessions.toReversed().slice(start, end);
      return end < sessions.length ? { sessions: page, next: `${end}` } : { sessions: page };
    }),
  },
  {
    name: "lists by the time of creation",
    open: lists(async (list, options) => {
      const page = await list(options);
      return { ...page, sessions: page.sessions.toSorted((a, b) => (a.id < b.id ? 1 : -1)) };
    }),
  },
  {
    name: "lists by the clock",
    open: lists(async (list, { limit, after, ...options }) => {
      const { sessions } = await list(options);
      const all = sessions.toSorted((a, b) => (`${a.at}${a.id}` < `${b.at}${b.id}` ? 1 : -1));
      const start = after === undefined ? 0 : all.findIndex(({ at, id }) => `${at}${id}` < after);
      const page = start === -1 ? [] : all.slice(start, limit === undefined ? undefined : start + limit);
      const last = page.at(-1);
      return last && last !== all.at(-1) ? { sessions: page, next: `${last.at}${last.id}` } : { sessions: page };
    }),
  },
  {
    name: "knows no other order than its clock's when it is opened again",
    open: (memory, options) => {
      memory.newest = undefined;
      return openMemoryStore({ memory, ...options });
    },
  },
  {
    name: "continues a page by the clock",
    open: lists(async (list, { after, limit, ...options }) => {
      const { sessions } = await list(options);
      const rest = sessions.filter(({ at, id }) => after === undefined || `${at}${id}` < after);
      const page = rest.slice(0, limit);
      const last = page.at(-1);
      return last && page.length < rest.length ? { sessions: page, next: `${last.at}${last.id}` } : { sessions: page };
    }),
  },
  { name: "ignores where", open: lists((list, { where: _, ...options }) => list(options)) },
  {
    name: "compares where as text",
    open: lists(async (list, { where, ...options }) => {
      const page = await list(options);
      return { ...page, sessions: page.sessions.filter((listed) => matches(listed, where)) };
    }),
  },
  {
    name: "applies the limit before where, and stops",
    open: lists(async (list, options) => {
      if (!options.where || options.limit === undefined) return list(options);
      const { sessions } = await list({ limit: options.limit });
      return { sessions: sessions.filter((listed) => matches(listed, options.where)) };
    }),
  },
  { name: "ignores the limit", open: lists((list, { limit: _, ...options }) => list(options)) },
  {
    name: "counts its pages from the start",
    open: lists(async (list, { after, limit, ...options }) => {
      const { sessions } = await list(options);
      const start = Number(after ?? 0);
      const end = start + (limit ?? sessions.length);
      const page = sessions.slice(start, end);
      return end < sessions.length ? { sessions: page, next: `${end}` } : { sessions: page };
    }),
  },
  {
    name: "continues a page after the time alone",
    open: lists(async (list, { after, limit, ...options }) => {
      const { sessions } = await list(options);
      const rest = sessions.filter((listed) => after === undefined || listed.at < after);
      const page = rest.slice(0, limit);
      return page.length < rest.length ? { sessions: page, next: page.at(-1)!.at } : { sessions: page };
    }),
  },
  {
    name: "remembers its first list",
    open: stores((store) => {
      let first: Page | undefined;
      return {
        async list(options) {
          first ??= await store.list(options);
          return first;
        },
      };
    }),
  },
  {
    name: "takes the hint of a time for one after which",
    open: hinted(({ at }, { since }) => since === undefined || at > since),
  },
  {
    name: "takes the hint of members for all the members",
    open: hinted((listed, { within = {} }) =>
      Object.entries(within).every(([name, wanted]) => isDeepStrictEqual(members(listed, name), wanted)),
    ),
  },
  {
    name: "takes the hint that one of several is there for all of them",
    open: hinted((listed, { anyOf = [] }) =>
      anyOf.every((name) => Boolean(((listed.summary ?? {}) as Record<string, Json>)[name])),
    ),
  },
  {
    name: "lists the holder that a session once had",
    open: stores((store) => {
      const had = new Map<string, Holder>();
      return {
        async list(options) {
          const page = await store.list(options);
          const sessions: Listed[] = [];
          for (const listed of page.sessions) {
            const holder = had.get(listed.id) ?? (await store.holder(listed.id));
            if (holder) had.set(listed.id, holder);
            sessions.push({ ...listed, holder });
          }
          return { ...page, sessions };
        },
      };
    }),
  },
  { name: "lists every session as closed", open: rows((listed) => ({ ...listed, closed: true })) },
  { name: "lists every session as open", open: rows((listed) => ({ ...listed, closed: false })) },
  { name: "lists a head that is behind", open: rows((listed) => ({ ...listed, head: listed.head - 1 })) },
  { name: "lists no summaries", open: rows((listed) => ({ ...listed, summary: null })) },
  {
    name: "lists the newest summary that was written, and adds nothing to it",
    open: stores((store, memory) => ({
      async list(options) {
        const page = await store.list(options);
        const sessions = page.sessions.map((listed) => {
          const newest = [...(memory.sessions.get(listed.id)?.backwards() ?? [])].find(
            ({ summary }) => summary !== undefined,
          );
          return { ...listed, summary: newest?.summary ?? null };
        });
        return { ...page, sessions };
      },
    })),
  },
  {
    name: "lists the summary as its catalogue first had it",
    open: stores((store, memory) => ({
      async list(options) {
        const page = await store.list(options);
        const kept = catalogue(memory);
        for (const { id, summary } of page.sessions)
          if (!isDeepStrictEqual(kept.get(id) ?? null, summary) && !kept.has(id)) kept.set(id, summary);
        return {
          ...page,
          sessions: page.sessions.map((listed) => ({ ...listed, summary: kept.get(listed.id) ?? null })),
        };
      },
    })),
  },
  {
    name: "lists 100 sessions at most",
    heavy: true,
    open: lists(async (list, options) => ({ sessions: (await list({ ...options, limit: 100 })).sessions })),
  },
];

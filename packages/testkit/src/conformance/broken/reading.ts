import { createHash } from "node:crypto";
import { all } from "../trial.ts";
import { type BrokenStore, journals, stores } from "./wrap.ts";

/** Turns any text into an id. */
function idFor(text: string): string {
  if (/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)) return text;
  const hex = createHash("md5").update(text).digest("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** Faults in creating, reading and checking. */
export const brokenReading: readonly BrokenStore[] = [
  {
    name: "takes any text for an id",
    open: stores((store) => ({ create: (id, ...rest) => store.create(idFor(id), ...rest) })),
  },
  {
    name: "answers no where there is no id to look for",
    open: stores((store) => ({
      has: (id) => store.has(id).catch(() => false),
      holder: (id) => store.holder(id).catch(() => null),
    })),
  },
  {
    name: "looks for a session by any text",
    open: stores((store) => ({
      verify: (id) => store.verify(idFor(String(id))),
      delete: (id) => store.delete(idFor(String(id))),
    })),
  },
  {
    name: "creates a session again where there is one",
    open: stores((store, memory) => ({
      async create(id, ...rest) {
        memory.leases.delete(id);
        memory.sessions.delete(id);
        return store.create(id, ...rest);
      },
    })),
  },
  {
    name: "creates a session before it looks at the records",
    open: stores((store) => ({
      create: (id, records, options) =>
        store.create(id, records, options).catch(async (error: { code?: unknown }) => {
          if (error.code === "RECORD_NOT_JSON") await store.create(id, [], options);
          throw error;
        }),
    })),
  },
  {
    name: "shows a session only when something was appended to it",
    open: stores((store, memory) => {
      const appended = (id: string) =>
        [...(memory.sessions.get(id)?.backwards() ?? [])].some(({ kind }) => kind === "opened");
      return {
        has: async (id) => (await store.has(id)) && appended(id),
        async list(options) {
          const page = await store.list(options);
          return { ...page, sessions: page.sessions.filter(({ id }) => appended(id)) };
        },
      };
    }),
  },
  {
    name: "writes when it is read",
    open: stores((store) => ({
      async read(id) {
        if ((await store.holder(id)) === null) {
          const { journal } = await store.open(id);
          await journal.append({ kind: "healed" });
          await journal.close();
        }
        return store.read(id);
      },
    })),
  },
  {
    name: "writes when it is verified",
    open: stores((store, memory) => ({
      async verify(id) {
        const line = memory.sessions.get(id)?.lines.at(-1);
        if (line) memory.sessions.get(id)?.lines.push(line);
        return store.verify(id);
      },
    })),
  },
  {
    name: "writes at every close",
    open: journals((journal) => ({
      async close() {
        await journal.append({ kind: "leaving" }).catch(() => undefined);
        await journal.close();
      },
    })),
  },
  {
    name: "reads the history from the beginning, always",
    open: stores((store) => ({ history: (id) => store.history(id) })),
  },
  {
    name: "never ends the history",
    open: stores((store) => ({ history: (id, from = 1) => store.follow(id, { after: from - 1 }) })),
  },
  {
    name: "lets a reader hold up the writer",
    open: stores((store, memory) => ({
      async *history(id, from) {
        const lease = memory.leases.get(id);
        memory.leases.delete(id);
        lease?.lost();
        yield* store.history(id, from);
      },
    })),
  },
  {
    name: "finds an empty session where there is none",
    open: stores((store) => ({
      async read(id) {
        if (await store.has(id)) return store.read(id);
        return { id, records: [], recovery: { unclean: false, cutBytes: 0, damaged: [], missing: [] } };
      },
    })),
  },
  { name: "says that every session is there", open: stores(() => ({ has: async () => true })) },
  {
    name: "verifies without looking",
    open: stores((store) => ({
      async verify(id) {
        return { ...(await store.verify(id)), records: 0, bytes: 0, segments: 0 };
      },
    })),
  },
  {
    name: "verifies, and does not see the writer",
    open: stores((store) => ({
      async verify(id) {
        return { ...(await store.verify(id)), beingWritten: false };
      },
    })),
  },
  {
    name: "reports damage where there is none",
    open: stores((store) => ({
      async open(id, options) {
        const opened = await store.open(id, options);
        return { ...opened, recovery: { ...opened.recovery, cutBytes: 1 } };
      },
    })),
  },
  {
    name: "hands out records as they are read, and again at the end",
    open: stores((store) => ({
      async open(id, options) {
        const opened = await store.open(id, options);
        for (const record of opened.records) options?.onRecord?.(record);
        return opened;
      },
    })),
  },
  {
    name: "hands out all but the last record as they are read",
    open: stores((store) => ({
      async open(id, options) {
        const opened = await store.open(id, options);
        if (!options?.onRecord) return opened;
        for (const record of opened.records.slice(0, -1)) options.onRecord(record);
        return { ...opened, records: [] };
      },
    })),
  },
  {
    name: "says that every writer ended in order",
    open: stores((store) => ({
      async open(id, options) {
        const opened = await store.open(id, options);
        return { ...opened, recovery: { ...opened.recovery, unclean: false } };
      },
      async read(id) {
        const snapshot = await store.read(id);
        return { ...snapshot, recovery: { ...snapshot.recovery, unclean: false } };
      },
    })),
  },
  {
    name: "says that no writer ended in order",
    open: stores((store) => ({
      async open(id, options) {
        const opened = await store.open(id, options);
        return { ...opened, recovery: { ...opened.recovery, unclean: true } };
      },
    })),
  },
  {
    name: "loses the first record of an open session when it is read",
    open: stores((store) => ({
      async read(id) {
        const snapshot = await store.read(id);
        const first = (await all(store.history(id)))[0];
        const lost = (await store.holder(id)) !== null ? first?.seq : undefined;
        return { ...snapshot, records: snapshot.records.filter(({ seq }) => seq !== lost) };
      },
    })),
  },
];

import { crc32 } from "node:zlib";
import { type BrokenStore, journals, over, stores } from "./wrap.ts";

/** Faults in closing. */
export const brokenClosing: readonly BrokenStore[] = [
  {
    name: "writes no `closed`",
    open: journals((journal, memory) => ({
      async close() {
        await journal.flush().catch(() => undefined);
        memory.leases.delete(journal.id);
      },
    })),
  },
  {
    name: "takes appends after close",
    open: stores((store) => {
      const reopening = (id: string, records: Parameters<Awaited<ReturnType<typeof store.create>>["append"]>[0]) =>
        store.open(id).then(async ({ journal }) => {
          const appended = await journal.append(records);
          await journal.close();
          return appended;
        });
      return {
        async create(...args) {
          const journal = await store.create(...args);
          return over(journal, {
            append: (records, options) =>
              journal.append(records, options).catch((error: { code?: unknown }) => {
                if (error.code !== "JOURNAL_CLOSED") throw error;
                return reopening(journal.id, records);
              }),
          });
        },
      };
    }),
  },
  {
    name: "throws when it is closed twice",
    open: journals((journal) => {
      let closed = false;
      return {
        async close() {
          if (closed) throw new Error("closed already");
          closed = true;
          await journal.close();
        },
      };
    }),
  },
  {
    name: "writes `closed` at each close",
    open: journals((journal, memory) => ({
      async close() {
        const isClosed = !memory.leases.has(journal.id);
        await journal.close();
        const lines = memory.sessions.get(journal.id)?.lines;
        if (isClosed && lines) lines.push(nextLine(lines.at(-1)!, lines.length + 1));
      },
    })),
  },
  { name: "leaves its journals open when it is closed", open: stores(() => ({ close: async () => undefined })) },
  {
    name: "keeps working after it was closed",
    open: async (memory, options) => {
      const inner = journals(() => ({}));
      let store = await inner(memory, options);
      const renew = async () => {
        await store.close();
        store = await inner(memory, options);
      };
      return new Proxy(store, {
        get(_, name) {
          if (name === "close" || name === Symbol.asyncDispose) return renew;
          const value: unknown = Reflect.get(store, name, store);
          return typeof value === "function" ? value.bind(store) : value;
        },
      });
    },
  },
  {
    name: "does nothing at the end of `await using`",
    open: journals(
      () => ({ [Symbol.asyncDispose]: async () => undefined }),
      stores(() => ({ [Symbol.asyncDispose]: async () => undefined })),
    ),
  },
  {
    name: "forgets what is in flight when it is closed",
    open: journals((journal) => {
      let closing = false;
      return {
        async append(...args) {
          const appended = await journal.append(...args);
          await null;
          if (closing) throw new Error("gone");
          return appended;
        },
        async close() {
          closing = true;
          await journal.close();
        },
      };
    }),
  },
];

/** The same record once more, as the next one. */
function nextLine(line: Buffer, seq: number): Buffer {
  const text = line.toString("utf8");
  const body = text.slice(0, text.lastIndexOf(',"crc":"')).replace(/"seq":\d+/, `"seq":${seq}`);
  return Buffer.from(`${body},"crc":"${crc32(body).toString(16).padStart(8, "0")}"}\n`);
}

import { setImmediate as turn } from "node:timers/promises";
import { type BrokenStore, journals } from "./wrap.ts";

/** Faults in reporting what was written. */
export const brokenWritten: readonly BrokenStore[] = [
  {
    name: "reports what it wrote after it has acknowledged it",
    open: journals((journal) => ({
      onWritten: (listener) => journal.onWritten((written) => void turn().then(() => listener(written))),
    })),
  },
  {
    name: "does not report the records it writes by itself",
    open: journals((journal) => ({
      onWritten: (listener) =>
        journal.onWritten((written) => {
          const records = written.records.filter(({ kind }) => kind !== "opened" && kind !== "segment");
          const seq = written.seq + written.records.length - records.length;
          if (records.length > 0) listener({ ...written, seq, records });
        }),
    })),
  },
  {
    name: "reports what it did not write",
    open: journals((journal) => {
      const listeners = new Set<Parameters<typeof journal.onWritten>[0]>();
      return {
        append: (records, options) =>
          journal.append(records, options).catch((error: unknown) => {
            const refused = [{ kind: "refused" }];
            for (const tell of listeners) tell({ seq: journal.head + 1, at: journal.at, records: refused });
            throw error;
          }),
        onWritten(listener) {
          listeners.add(listener);
          return journal.onWritten(listener);
        },
      };
    }),
  },
  {
    name: "keeps reporting to those who unsubscribed",
    open: journals((journal) => ({
      onWritten(listener) {
        journal.onWritten(listener);
        return () => undefined;
      },
    })),
  },
];

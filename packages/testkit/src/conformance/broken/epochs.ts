import { setImmediate as turn } from "node:timers/promises";
import { all } from "../trial.ts";
import { type BrokenStore, journals, stores } from "./wrap.ts";

/** Faults in replacing the conversation. */
export const brokenEpochs: readonly BrokenStore[] = [
  {
    name: "begins no epoch, but appends its records",
    open: journals((journal) => ({ epoch: async (build) => journal.append(build()) })),
  },
  {
    name: "answers an epoch with the seq of its header",
    open: journals((journal) => ({
      async epoch(build, options) {
        const { seq, last } = await journal.epoch(build, options);
        return { seq: seq - 1, last };
      },
    })),
  },
  {
    name: "builds an epoch twice",
    open: journals((journal) => ({
      async epoch(build, options) {
        build();
        return journal.epoch(build, options);
      },
    })),
  },
  {
    name: "ignores the key of an epoch",
    open: journals((journal) => ({ epoch: (build) => journal.epoch(build) })),
  },
  {
    name: "builds an epoch some time after the call",
    open: journals((journal) => ({
      async epoch(build, options) {
        await turn();
        return journal.epoch(build, options);
      },
    })),
  },
  {
    name: "begins an epoch, and adds its records one by one",
    open: journals((journal) => ({
      async epoch(build) {
        const [first, ...rest] = build();
        let appended = await journal.epoch(() => [first!]);
        for (const record of rest) {
          await turn();
          appended = await journal.append(record);
        }
        return appended;
      },
    })),
  },
  {
    name: "loses the old epoch when a new one fails",
    open: journals((journal) => ({
      epoch: (build, options) =>
        journal.epoch(build, options).catch(async (error: unknown) => {
          await journal.epoch(() => [{ kind: "epoch" }]);
          throw error;
        }),
    })),
  },
  {
    name: "removes the epochs before the current one",
    open: stores((store) => ({
      async *history(id, from = 1) {
        const { records } = await store.read(id);
        for (const record of records) if (record.seq >= from) yield record;
      },
    })),
  },
  {
    name: "goes back to the old epoch when it is opened again",
    open: stores((store) => ({
      async open(id, options) {
        const opened = await store.open(id, options);
        return { ...opened, records: await all(store.history(id)) };
      },
    })),
  },
  {
    name: "reads all epochs as the current one",
    open: stores((store) => ({
      async read(id) {
        return { ...(await store.read(id)), records: await all(store.history(id)) };
      },
    })),
  },
];

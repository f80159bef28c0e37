import { createInterface } from "node:readline";
import { isHoldfastError } from "holdfast";
import type { Journal, JournalStore } from "holdfast/store";
import { attemptAppend } from "./attempts.ts";
import { labRecordOf } from "./content.ts";
import { type Attempt, tell } from "./pipe.ts";
import { createAndTell, openAndTell } from "./work.ts";

/**
 * Commands for a process without a workload, on its standard input, one line of JSON each. Each is answered by an
 * event.
 */
export type Command =
  /** Answered by `opened`, or by an `answer` with the refusal. */
  | { readonly do: "create"; readonly attemptId: number }
  | { readonly do: "open" }
  /** `ack`, `refused` or `doubt`. */
  | { readonly do: "append"; readonly attempt: Attempt }
  /** `closed` */
  | { readonly do: "close" }
  /** An `answer` each. */
  | { readonly do: "list" | "verify" | "read" | "holder" | "delete" | "pack" | "gc" }
  /** A `seen` for every record from then on. */
  | { readonly do: "follow"; readonly after?: number };

/** How a refusal is reported. */
export interface Refusal {
  readonly code: string;
  readonly message: string;
  readonly facts: unknown;
}

/**
 * Obeys commands until its standard input ends, so also when the laboratory dies. Begins with an `answer`: "open", or
 * why not.
 */
export async function obey(openStore: () => Promise<JournalStore>, id: string): Promise<void> {
  const store = await refusable(openStore);
  if (!store) return;
  tell({ e: "answer", value: "open" });
  let journal: Journal | undefined;
  for await (const line of createInterface({ input: process.stdin })) {
    const command = JSON.parse(line) as Command;
    await refusable(async () => {
      if (command.do === "create") journal = await createAndTell(store, id, command.attemptId);
      else if (command.do === "open") journal = await openAndTell(store, id);
      else if (command.do === "append") await attemptAppend(opened(journal), command.attempt, tell);
      else if (command.do === "close") {
        await opened(journal).close();
        tell({ e: "closed" });
      } else if (command.do === "follow") void follow(store, id, command.after);
      else tell({ e: "answer", value: (await ask(store, id, command.do)) ?? null });
    });
  }
  await store.close();
}

async function refusable<T>(act: () => Promise<T>): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    const value: Refusal = { code: error.code, message: error.message, facts: error.facts };
    tell({ e: "answer", value });
    return undefined;
  }
}

function opened(journal: Journal | undefined): Journal {
  if (!journal) throw new Error("told to write before it was told to open");
  return journal;
}

async function ask(
  store: JournalStore,
  id: string,
  what: "list" | "verify" | "read" | "holder" | "delete" | "pack" | "gc",
): Promise<unknown> {
  switch (what) {
    case "list":
      return (await store.list()).sessions;
    case "verify":
      return store.verify(id);
    case "read": {
      const { records, recovery } = await store.read(id);
      return { head: records.at(-1)?.seq ?? 0, records: records.length, recovery };
    }
    case "holder":
      return store.holder(id);
    case "delete":
      return store.delete(id);
    case "pack":
      return store.pack(id);
    case "gc":
      return store.gc({ graceMs: 0 });
  }
}

async function follow(store: JournalStore, id: string, after?: number): Promise<void> {
  try {
    for await (const { seq, crc, ...record } of store.follow(id, after === undefined ? {} : { after })) {
      const found = labRecordOf({ seq, crc, ...record });
      tell({ e: "seen", seq, crc, id: found?.id ?? 0, part: found?.part ?? 0 });
    }
  } catch (error) {
    tell({ e: "failed", message: error instanceof Error ? (error.stack ?? error.message) : String(error) });
    process.exit(1);
  }
}

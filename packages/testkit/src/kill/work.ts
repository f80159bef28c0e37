import { setImmediate as nextTick } from "node:timers/promises";
import type { JournalAppendOptions as AppendOptions, Journal, JournalStore } from "holdfast/store";
import { attemptAny, attemptAppend } from "./attempts.ts";
import { recordsOf } from "./content.ts";
import { type Attempt, tell } from "./pipe.ts";
import { type Step, type WorkloadOptions, workload } from "./workload.ts";

/** Opens the session, or creates it, and works through the workload. Reports every attempt and every answer. */
export async function work(
  store: JournalStore,
  id: string,
  options: WorkloadOptions,
  steps = Number.POSITIVE_INFINITY,
): Promise<void> {
  let journal = (await store.has(id)) ? await openAndTell(store, id) : await createAndTell(store, id, options.nextId);
  const plan = workload({ ...options, nextId: options.nextId + 1 });
  for (let n = 0; n < steps; n++) {
    const { value: step } = plan.next();
    if (step.do === "reopen" || step.do === "pack") {
      await journal.close();
      tell({ e: "closed" });
      if (step.do === "pack" && store.capabilities.pack) await store.pack(id);
      journal = await openAndTell(store, id);
    } else await perform(store, journal, step);
    // An agent waits for its model now and then; timers (the background sync) run meanwhile.
    if (n % 8 === 7) await nextTick();
  }
  await journal.close();
  tell({ e: "closed" });
}

export async function createAndTell(store: JournalStore, id: string, attemptId: number): Promise<Journal> {
  const attempt: Attempt = { id: attemptId, kind: "create", parts: 2, chars: 300 };
  tell({ e: "attempt", ...attempt });
  const journal = await store.create(id, recordsOf(attempt));
  tell({ e: "ack", id: attempt.id });
  tell({ e: "opened", made: true, head: journal.head, unclean: false, cutBytes: 0, damaged: 0 });
  return journal;
}

export async function openAndTell(store: JournalStore, id: string): Promise<Journal> {
  const { journal, recovery } = await store.open(id);
  const { unclean, cutBytes, quarantine, damaged, missing } = recovery;
  const told = { e: "opened", made: false, head: journal.head, unclean, cutBytes } as const;
  tell({ ...told, ...(quarantine === undefined ? {} : { quarantine }), damaged: damaged.length + missing.length });
  return journal;
}

async function perform(store: JournalStore, journal: Journal, step: Step): Promise<void> {
  switch (step.do) {
    case "append":
      if (step.sync && store.capabilities.sync) appendSyncAndTell(journal, step.attempt);
      else await appendAndTell(journal, step.attempt, step.durability ? { durability: step.durability } : {});
      return;
    case "burst":
      await Promise.all(step.attempts.map((attempt) => appendAndTell(journal, attempt)));
      return;
    case "epoch":
      await attemptAny(step.attempt, () => journal.epoch(() => recordsOf(step.attempt)), tell);
      return;
    case "flush":
      await journal.flush();
      return;
    case "look":
      await look(store, journal.id);
      return;
  }
}

/** Reading in the writer's own process must not release its lease (C15). */
async function look(store: JournalStore, id: string): Promise<void> {
  await store.read(id);
  await store.verify(id);
  await store.list({ limit: 5 });
  await store.holder(id);
}

async function appendAndTell(journal: Journal, attempt: Attempt, options: AppendOptions = {}): Promise<void> {
  await attemptAppend(journal, attempt, tell, options);
}

function appendSyncAndTell(journal: Journal, attempt: Attempt): void {
  const records = recordsOf(attempt);
  tell({ e: "attempt", ...attempt });
  const { seq, last } = journal.appendSync(records);
  tell({ e: "ack", id: attempt.id, seq, last });
}

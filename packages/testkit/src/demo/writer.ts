import { setTimeout as sleep } from "node:timers/promises";
import { nodeDisk } from "holdfast/disk";
import { type KillPoint, pausingDisk } from "../kill/pausing-disk.ts";
import { tell } from "../kill/pipe.ts";
import { openSpec, type StoreSpec } from "../kill/stores.ts";
import { openAndTell } from "../kill/work.ts";
import { appendOf, attemptOf } from "./conversation.ts";

export interface WriterJob {
  readonly store: StoreSpec;
  readonly session: string;
  /** The first append of this life. */
  readonly from: number;
  /** How many, and then an orderly end. */
  readonly appends: number;
  readonly point?: KillPoint;
}

/** The child: it appends a conversation, and tells each attempt and each acknowledgement on its pipe. It expects to be killed. */
async function main(): Promise<void> {
  const job = JSON.parse(process.argv[2] ?? "null") as WriterJob;
  const store = await openSpec(job.store, job.point && pausingDisk(nodeDisk, job.point));
  let n = job.from;
  const made = !(await store.has(job.session));
  if (made) tell({ e: "attempt", ...attemptOf(n) });
  const journal = made ? await store.create(job.session, appendOf(n)) : await openAndTell(store, job.session);
  if (made) tell({ e: "ack", id: n++ });
  for (const end = job.from + job.appends; n < end; n++) {
    tell({ e: "attempt", ...attemptOf(n) });
    tell({ e: "ack", id: n, ...(await journal.append(appendOf(n))) });
    // Somebody thinks, or a model streams.
    await sleep(2);
  }
  await journal.close();
  await store.close();
  tell({ e: "done" });
}

main().catch((error: unknown) => {
  tell({ e: "failed", message: error instanceof Error ? error.message : String(error) });
  process.exit(1);
});

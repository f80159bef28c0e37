import { Worker } from "node:worker_threads";
import { isHoldfastError, type JournalRecord, newId } from "holdfast";
import { nodeDisk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import type { Journal } from "holdfast/store";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Job, names, type Said, withoutLocks } from "../../../fence/paused-writer.ts";
import { place } from "../../../place.ts";

/**
 * P1, P6: two writers do no harm, whatever happened to the locks. One writer stands still before each of its calls to
 * the disk in turn; another one takes the session over, writes, and is acknowledged; then the first one goes on.
 * Everything that anybody was told is there, once, and nothing is damaged.
 */

let worker: Worker;
beforeAll(() => {
  worker = new Worker(new URL("../../../fence/paused-writer.ts", import.meta.url), {
    workerData: "paused-writer",
    execArgv: ["--conditions=holdfast-source"],
  });
});
afterAll(() => worker.terminate());

const disk = { ...nodeDisk, ...withoutLocks };
const LOST = ["LEASE_LOST", "FILE_REPLACED", "SYNC_FAILED"] as const;

const numbers = (records: readonly JournalRecord[]): unknown[] =>
  records.flatMap((record) => (record.kind === "message" ? [record["n"]] : []));

/** Returns whether the first writer got to that step at all. */
async function trial(job: Pick<Job, "work" | "durability" | "syncsInCall" | "pauseAt">): Promise<boolean> {
  const gate = new Int32Array(new SharedArrayBuffer(8));
  try {
    return await takeOver(job, gate);
  } finally {
    goOn(gate);
  }
}

function goOn(gate: Int32Array): void {
  Atomics.store(gate, 1, 1);
  Atomics.notify(gate, 1);
}

async function takeOver(trialled: Parameters<typeof trial>[0], gate: Int32Array<SharedArrayBuffer>): Promise<boolean> {
  const { work, durability, pauseAt } = trialled;
  using here = place();
  const id = newId();
  const told = new Set<string>();
  let old: Journal | null = null;
  if (work.includes(" after a ")) {
    // A disk of its own: the process that it stands for is dead when the others come.
    const victim = await openFolderStore(here.path, { disk: { ...disk }, catalogue: false });
    const journal = await victim.create(id, [{ kind: "session" }]);
    for (const n of ["v0", "v1"]) {
      await journal.append({ kind: "message", n });
      told.add(n);
    }
    if (work.endsWith("kill")) old = journal;
    else await journal.close();
  }
  const job: Job = { ...trialled, root: here.path, id, gate: gate.buffer };
  const said: Said[] = [];
  const done = new Promise<Extract<Said, { e: "done" }>>((resolve) => {
    const listen = (one: Said): void => {
      said.push(one);
      if (one.e !== "done") return;
      worker.off("message", listen);
      resolve(one);
    };
    worker.on("message", listen);
  });
  worker.postMessage(job);
  const paused = Atomics.waitAsync(gate, 0, 0);
  const first = await Promise.race([done, paused.value]);
  if (typeof first === "object") return false;

  const where = `${work}, ${durability}, before call ${pauseAt}`;
  // The one that was taken for dead is not: it goes on until it notices.
  await old?.append({ kind: "message", n: "v2" }).then(
    () => told.add("v2"),
    (error: unknown) => {
      if (!isHoldfastError(error, ...LOST)) throw error;
    },
  );
  await using second = await openFolderStore(here.path, { disk, durability, catalogue: false });
  const opened = await second.open(id);
  const before = numbers(opened.records);
  for (const one of said) if (one.e === "acknowledged") told.add(one.n);
  // What the first writer was told before the second one opened is in what that one reads, or was replaced by an epoch.
  if (!before.includes("e")) expect(before, where).toEqual(expect.arrayContaining([...told]));
  const write = async (n: string): Promise<void> => {
    await opened.journal.append({ kind: "message", n });
    told.add(n);
  };
  await write("b1");
  await write("b2");
  goOn(gate);
  const { error } = await done;
  for (const one of said) if (one.e === "acknowledged") told.add(one.n);
  try {
    await write("b3");
    await opened.journal.epoch(() => [{ kind: "epoch", reason: "clear" }]);
    await write("b4");
  } catch (caught) {
    if (!isHoldfastError(caught, ...LOST)) throw caught;
  }
  await opened.journal.close().catch((caught: unknown) => {
    if (!isHoldfastError(caught, ...LOST)) throw caught;
  });

  await using third = await openFolderStore(here.path, { disk, catalogue: false });
  const again = await third.open(id);
  await again.journal.append({ kind: "message", n: "c" });
  await again.journal.close();
  told.add("c");
  const history = numbers(await Array.fromAsync(third.history(id)));
  expect(new Set(history).size, `${where}: once`).toBe(history.length);
  expect(history, `${where}; the first ended with ${error}`).toEqual(expect.arrayContaining([...told]));
  const { damaged, missing } = await third.verify(id);
  expect({ damaged, missing }, where).toEqual({ damaged: [], missing: [] });
  return true;
}

for (const [title, how] of [
  ["power", { durability: "power", syncsInCall: false }],
  ["power, synced inside the call", { durability: "power", syncsInCall: true }],
  ["process", { durability: "process", syncsInCall: false }],
] as const) {
  test.each(names)(`${title}: taken over before every call of a writer that is about to %s`, async (work) => {
    let calls = 0;
    while (await trial({ ...how, work, pauseAt: calls })) calls++;
    expect(calls).toBeGreaterThan(1);
  });
}

import { Crashed, crashAt, SimulatedDisk } from "@holdfast/testkit/internal/simulation";
import { isHoldfastError } from "holdfast";
import type { Disk } from "holdfast/disk";
import { openFolderStore } from "holdfast/internal";
import type { Durability, JournalStore } from "holdfast/store";
import { expect, test } from "vitest";

/**
 * P1, P6 on the simulated disk, with locks that keep nobody out: three processes open one session, append, begin epochs
 * and close, all at once, and then the power is cut, or all are killed. What any of them was told is there, once, and
 * in its order.
 */

const ID = "0199a000-0000-7000-8000-000000000001";
const WRITERS = ["a", "b", "c"];
const ROUNDS = 4;

/** The steps of several processes come in the order in which their syncs end, which the machine's seed decides. */
class Writer {
  readonly #store: JournalStore;
  readonly #name: string;
  readonly #told: string[];
  #n = 0;

  constructor(store: JournalStore, name: string, told: string[]) {
    this.#store = store;
    this.#name = name;
    this.#told = told;
  }

  async run(): Promise<void> {
    for (let round = 0; round < ROUNDS; round++) {
      const opened = await may(() => this.#store.open(ID));
      if (!opened) continue;
      const { journal } = opened;
      await may(async () => {
        for (let i = 0; i < 3; i++) {
          const unit = Array.from({ length: 1 + ((round + i) % 2) }, () => ({
            kind: "message",
            n: this.#name + ++this.#n,
          }));
          if (round === 2 && i === 1) await journal.epoch(() => [{ kind: "epoch", reason: "compaction" }, ...unit]);
          else await journal.append(unit);
          this.#told.push(...unit.map(({ n }) => n));
        }
      });
      if (round % 2 === 0) await may(() => journal.close());
    }
  }
}

/** Undefined if somebody else has taken over, or the machine has lost its power. */
async function may<T>(act: () => Promise<T>): Promise<T | undefined> {
  try {
    return await act();
  } catch (error) {
    if (isHoldfastError(error) || error instanceof Crashed) return undefined;
    throw error;
  }
}

function withoutLocks(disk: SimulatedDisk): Disk {
  return new Proxy<Disk>(disk, {
    get(of, name) {
      if (name === "lock") return () => ({ release: () => {} });
      if (name === "isLocked") return () => false;
      const member = Reflect.get(of, name) as unknown;
      return typeof member === "function" ? member.bind(of) : member;
    },
  });
}

async function run(seed: number, durability: Durability, crash: "power" | "kill", at: number): Promise<number> {
  const machine = new SimulatedDisk({ seed });
  for (const folder of ["/store"]) machine.makeFolder(folder);
  const open = (disk: SimulatedDisk) =>
    openFolderStore("/store", { disk: withoutLocks(disk), durability, catalogue: false, segmentBytesMax: 1500 });
  const first = await open(machine);
  await (await first.create(ID, [{ kind: "session" }])).close();
  const from = machine.steps;

  const told: string[] = [];
  const processes = WRITERS.map(() => machine.process());
  const writers = await Promise.all(processes.map(async (disk, i) => new Writer(await open(disk), WRITERS[i]!, told)));
  machine.plan = crash === "power" ? crashAt(from + at, "power") : null;
  await Promise.all(writers.map((writer) => writer.run()));
  const steps = machine.steps - from;
  machine.plan = null;

  const after = crash === "power" ? machine.afterCrash(seed) : machine.afterKill();
  const store = await open(after);
  const { journal } = await store.open(ID);
  await journal.append({ kind: "message", n: "last" });
  await journal.close();
  const found: unknown[] = [];
  for await (const record of store.history(ID)) if (record.kind === "message") found.push(record["n"]);
  const where = `seed ${seed}, ${durability}, ${crash} before step ${at}`;
  expect(new Set(found).size, `${where}: once`).toBe(found.length);
  for (const name of WRITERS) {
    const own = found.filter((n) => String(n).startsWith(name));
    const sorted = own.toSorted((x, y) => Number(String(x).slice(1)) - Number(String(y).slice(1)));
    expect(own, `${where}: in order`).toEqual(sorted);
  }
  // `process` promises nothing of the last second when the power goes.
  if (crash === "kill" || durability === "power") expect(found, where).toEqual(expect.arrayContaining(told));
  const { damaged, missing } = await store.verify(ID);
  if (crash === "kill") expect({ damaged, missing }, where).toEqual({ damaged: [], missing: [] });
  return steps;
}

test.each([1, 2, 3, 4, 5, 6, 7, 8])("several writers at once, then all are killed (seed %i)", async (seed) => {
  for (const durability of ["power", "process"] as const) await run(seed, durability, "kill", 0);
});

test.each([1, 2, 3])("several writers at once, and a power cut before every fifth step (seed %i)", async (seed) => {
  const steps = await run(seed, "power", "kill", 0);
  expect(steps).toBeGreaterThan(300);
  for (let at = 0; at < steps; at += 5) await run(seed, "power", "power", at);
});

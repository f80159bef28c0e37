import { afterEach, expect, test, vi } from "vitest";
import type { Database } from "../../src/stores/sqlite/database/database.ts";
import { busy } from "../../src/stores/sqlite/database/failure.ts";
import { WriteQueue } from "../../src/stores/sqlite/write-queue.ts";

afterEach(() => void vi.restoreAllMocks());

const DATABASE = { file: "store.db", spin: <T>(work: () => T): T => work() } as unknown as Database;

test("a call that blocks gives each waiting write the rest of its ten seconds, not ten more", async () => {
  let nowMs = 0;
  vi.spyOn(performance, "now").mockImplementation(() => (nowMs += 100));
  const tried = [0, 0, 0, 0];
  const blocked = (number: number) => (): never => {
    tried[number]!++;
    throw busy("busy");
  };
  const queues = [new WriteQueue(DATABASE), new WriteQueue(DATABASE)];
  const writes = [0, 1, 2, 3].map(async (number) => queues[number % 2]!.run(blocked(number)));
  const ends = Promise.allSettled(writes);
  // As at the end of a process that has several sessions.
  for (const queue of queues) queue.runNow(() => null);
  expect(nowMs).toBeLessThan(15_000);
  expect((await ends).map((end) => end.status === "rejected" && end.reason.code)).toEqual(Array(4).fill("STORE_IO"));
  expect(Math.min(...tried)).toBeGreaterThan(0);
});

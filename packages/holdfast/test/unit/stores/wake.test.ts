import { type Disk, nodeDisk } from "holdfast/disk";
import { afterEach, expect, test, vi } from "vitest";
import { Wake, watchOrPoll } from "../../../src/stores/wake.ts";

afterEach(() => {
  vi.useRealTimers();
});

/** Has it resolved by now? */
async function isDone(promise: Promise<void>): Promise<boolean> {
  let done = false;
  void promise.then(() => {
    done = true;
  });
  for (let i = 0; i < 5; i++) await Promise.resolve();
  return done;
}

test("a waiter waits until it is woken, or until its time is up, and then waits again", async () => {
  vi.useFakeTimers();
  const wake = new Wake();
  const first = wake.wait(100);
  expect(await isDone(first)).toBe(false);
  wake.up();
  expect(await isDone(first)).toBe(true);
  // The timer of a waiter that was woken does not wake the next one.
  expect(vi.getTimerCount()).toBe(0);
  const second = wake.wait(100);
  vi.advanceTimersByTime(99);
  expect(await isDone(second)).toBe(false);
  vi.advanceTimersByTime(1);
  expect(await isDone(second)).toBe(true);
  expect(await isDone(wake.wait(100))).toBe(false);
});

test("a call while nobody waits is not lost, and counts once", async () => {
  vi.useFakeTimers();
  const wake = new Wake();
  wake.up();
  wake.up();
  expect(await isDone(wake.wait(100))).toBe(true);
  expect(await isDone(wake.wait(100))).toBe(false);
});

test("an aborted signal wakes the waiter, until the end", async () => {
  vi.useFakeTimers();
  const [waiting, ended] = [new AbortController(), new AbortController()];
  const wake = new Wake(waiting.signal);
  const waiter = wake.wait(100);
  waiting.abort();
  expect(await isDone(waiter)).toBe(true);
  const other = new Wake(ended.signal);
  other.end();
  const later = other.wait(100);
  ended.abort();
  expect(await isDone(later)).toBe(false);
});

test("where nothing can be watched, waiters poll; a fault of the program is thrown", () => {
  const watching = (error: Error): Disk => ({
    ...nodeDisk,
    watch: () => {
      throw error;
    },
  });
  const tooMany = Object.assign(new Error("too many watches"), { code: "ENOSPC" });
  expect(() => watchOrPoll(watching(tooMany), "/", () => {})()).not.toThrow();
  expect(() => watchOrPoll(watching(new TypeError("a fault")), "/", () => {})).toThrow("a fault");
  let stopped = 0;
  const disk: Disk = { ...nodeDisk, watch: () => () => void stopped++ };
  watchOrPoll(disk, "/", () => {})();
  expect(stopped).toBe(1);
});

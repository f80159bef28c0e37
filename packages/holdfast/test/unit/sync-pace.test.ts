import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { SyncPace } from "../../src/disk/sync-pace.ts";

const FAST = 0.3;
const SLOW = 7;

/** Syncs one after another, as one caller does. Returns where each ran, and lets the event loop turn before each. */
async function syncs(pace: SyncPace, times: readonly number[]): Promise<string> {
  let ran = "";
  for (const ms of times) {
    await nextTurn();
    const blocks = pace.mayBlock(0);
    pace.took(ms, blocks);
    ran += blocks ? "C" : "p";
  }
  return ran;
}

const times = (count: number, ms: number): number[] => new Array<number>(count).fill(ms);

describe("where a sync runs", () => {
  test("in the thread pool until four in a row were fast, then on the calling thread", async () => {
    expect(await syncs(new SyncPace(), times(8, FAST))).toBe("ppppCCCC");
    expect(await syncs(new SyncPace(), [FAST, FAST, FAST, SLOW, ...times(5, FAST)])).toBe("ppppppppC");
  });

  test("never on the calling thread on a slow disk", async () => {
    expect(await syncs(new SyncPace(), times(50, SLOW))).toBe("p".repeat(50));
  });

  test("after one that blocked for long, in the pool until four times as many were fast", async () => {
    const pace = new SyncPace();
    expect(await syncs(pace, [...times(4, FAST), SLOW])).toBe("ppppC");
    expect(await syncs(pace, [...times(16, FAST), SLOW])).toBe(`${"p".repeat(16)}C`);
    expect(await syncs(pace, [...times(64, FAST), FAST])).toBe(`${"p".repeat(64)}C`);
  });

  test("after a thousand fast ones, an old stall is forgotten", async () => {
    const pace = new SyncPace();
    await syncs(pace, [...times(4, FAST), SLOW]);
    await syncs(pace, times(1024, FAST));
    expect(await syncs(pace, [SLOW, ...times(17, FAST)])).toBe(`C${"p".repeat(16)}C`);
  });

  test("a caller that never lets the event loop turn gets the pool after ten milliseconds", async () => {
    const pace = new SyncPace();
    await syncs(pace, times(4, FAST));
    await nextTurn();
    const held = [0, 4, 8, 9.9, 10, 12, 100].map((nowMs) => pace.mayBlock(nowMs));
    expect(held).toEqual([true, true, true, true, false, false, false]);
    await nextTurn();
    expect(pace.mayBlock(101)).toBe(true);
  });
});

import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { SyncPace } from "../../../src/disk/sync-pace.ts";

const FAST = 0.3;
const SLOW = 7;

/** Syncs one after another, as one caller does. Returns where each ran, and lets the event loop turn before each. */
async function syncs(pace: SyncPace, times: readonly number[], file: object = pace): Promise<string> {
  let ran = "";
  for (const ms of times) {
    await nextTurn();
    const blocks = pace.mayBlock(file, 0);
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

  test("a slow sync in the pool starts the count again", async () => {
    const pace = new SyncPace();
    await syncs(pace, times(20, FAST));
    pace.took(SLOW, false);
    expect(await syncs(pace, times(6, FAST))).toBe("ppppCC");
  });

  test("never on the calling thread on a slow disk", async () => {
    expect(await syncs(new SyncPace(), times(50, SLOW))).toBe("p".repeat(50));
  });

  test("after one that blocked for long, in the pool until fast ones have saved that time", async () => {
    const pace = new SyncPace();
    expect(await syncs(pace, [...times(4, FAST), 2.5])).toBe("ppppC");
    expect(await syncs(pace, times(17, FAST))).toBe(`${"p".repeat(15)}CC`);
  });

  test("a slow one in the pool pays nothing off", async () => {
    const pace = new SyncPace();
    await syncs(pace, [...times(4, FAST), 2.5, ...times(5, FAST), SLOW]);
    expect(await syncs(pace, times(12, FAST))).toBe(`${"p".repeat(10)}CC`);
  });

  test("a stall of any length is paid off after a thousand fast ones", async () => {
    const pace = new SyncPace();
    await syncs(pace, [...times(4, FAST), 60_000]);
    expect(await syncs(pace, times(1_003, FAST))).toMatch(/^p{1000,1001}C+$/);
  });

  test("a disk on which one sync in twenty is a little slow keeps most of them on the calling thread", async () => {
    const some = [...times(19, FAST), 1.3];
    const ran = await syncs(
      new SyncPace(),
      times(50, 0).flatMap(() => some),
    );
    expect(ran.split("C").length - 1).toBeGreaterThan(700);
  });

  test("slow syncs never block for longer than the fast ones save", async () => {
    const blockedMs = (ran: string, each: readonly number[]): number =>
      each.reduce((sum, ms, i) => sum + (ran[i] === "C" && ms === SLOW ? ms : 0), 0);
    const one = [...times(9, FAST), SLOW];
    const each = times(200, 0).flatMap(() => one);
    const ran = await syncs(new SyncPace(), each);
    expect(blockedMs(ran, each)).toBeGreaterThan(0);
    expect(blockedMs(ran, each)).toBeLessThan(each.length * 0.12);
  });

  test("a caller that never lets the event loop turn gets the pool after ten milliseconds", async () => {
    const pace = new SyncPace();
    await syncs(pace, times(4, FAST));
    await nextTurn();
    const held = [0, 4, 8, 9.9, 10, 12, 100].map((nowMs) => pace.mayBlock(pace, nowMs));
    expect(held).toEqual([true, true, true, true, false, false, false]);
    await nextTurn();
    expect(pace.mayBlock(pace, 101)).toBe(true);
  });

  test("of several files that sync in one turn of the event loop, one does so on the calling thread", async () => {
    const pace = new SyncPace();
    await syncs(pace, times(4, FAST));
    const files = [{}, {}, {}];
    const ranIn = (): boolean[] =>
      files.map((file) => {
        const blocks = pace.mayBlock(file, 0);
        pace.took(FAST, blocks);
        return blocks;
      });
    await nextTurn();
    expect([...ranIn(), ...ranIn()]).toEqual([true, false, false, true, false, false]);
    await nextTurn();
    files.reverse();
    expect(ranIn()).toEqual([true, false, false]);
  });

  test("a disk that stalls for one file does not block the event loop for the next", async () => {
    const pace = new SyncPace();
    expect(await syncs(pace, [...times(4, FAST), 2.5], {})).toBe("ppppC");
    expect(await syncs(pace, times(17, FAST), {})).toBe(`${"p".repeat(15)}CC`);
  });
});

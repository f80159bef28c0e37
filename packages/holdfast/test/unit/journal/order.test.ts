import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { aheadAfter, aheadOf, OrderClock, stampOf } from "../../../src/journal/order.ts";
import type { JournalRecord } from "../../../src/journal/record.ts";
import { holds, seedOf } from "../../seed.ts";

const seed = seedOf(import.meta.url, "unit");

const NOON = Date.parse("2026-11-15T12:00:00.000Z");
const HOUR = 3_600_000;
const iso = (ms: number): string => new Date(ms).toISOString();

/** A machine whose clock can be set while its time goes on. */
class Machine {
  trueMs = NOON;
  errorMs = 0;
  readonly wall = (): number => this.trueMs + this.errorMs;
  readonly monotonic = (): number => this.trueMs - NOON + 5;
}

const stampNow = (clock: OrderClock): string => {
  const at = iso(clock.now());
  return stampOf(at, clock.ahead);
};

describe("the clock of a store", () => {
  test("as long as the clock goes forward, a stamp is the time itself", () => {
    const machine = new Machine();
    const clock = new OrderClock(machine.wall, machine.monotonic);
    for (let i = 0; i < 5; i++) {
      machine.trueMs += i * 977;
      clock.follow(iso(machine.trueMs - 1));
      expect(stampNow(clock)).toBe(iso(machine.trueMs));
    }
    clock.follow(iso(machine.trueMs));
    expect(stampNow(clock)).toBe(iso(machine.trueMs));
  });

  test("set back an hour, it goes on from where it was, with what passed meanwhile; set right, it is the time again", () => {
    const machine = new Machine();
    const clock = new OrderClock(machine.wall, machine.monotonic);
    stampNow(clock);
    machine.trueMs += 10_000;
    machine.errorMs = -HOUR;
    expect(clock.now()).toBe(NOON + 10_000 - HOUR);
    expect(clock.ahead).toBe(HOUR);
    machine.trueMs += 5000;
    expect(stampNow(clock)).toBe(iso(NOON + 15_000));
    machine.errorMs = 0;
    expect(stampNow(clock)).toBe(iso(NOON + 15_000));
    expect(clock.ahead).toBe(0);
  });

  test("set back right after many stamps of one millisecond, it goes on from there", () => {
    const machine = new Machine();
    const clock = new OrderClock(() => Math.floor(machine.wall()), machine.monotonic);
    for (let i = 0; i < 4; i++) {
      expect(stampNow(clock)).toBe(iso(NOON));
      machine.trueMs += 0.25;
    }
    machine.trueMs += 10_000;
    machine.errorMs = -HOUR;
    expect(stampNow(clock)).toBe(iso(NOON + 10_001));
    expect(clock.ahead).toBe(HOUR);
  });

  test("what another has written with a clock that was ahead is passed, by a millisecond, and only as long as need be", () => {
    const machine = new Machine();
    const clock = new OrderClock(machine.wall, machine.monotonic);
    clock.follow(iso(NOON + HOUR));
    expect(stampNow(clock)).toBe(iso(NOON + HOUR + 1));
    machine.trueMs += HOUR + 5;
    clock.follow(iso(NOON + HOUR));
    expect(stampNow(clock)).toBe(iso(machine.trueMs));
  });

  test("what is no stamp is not followed, and the end of time is not passed", () => {
    const clock = new OrderClock(() => NOON);
    for (const stamp of [undefined, "", "yesterday", "~~"]) clock.follow(stamp);
    expect(stampNow(clock)).toBe(iso(NOON));
    clock.follow(stampOf("+275760-09-13T00:00:00.000Z", 0));
    expect(stampNow(clock)).toBe("~275760-09-13T00:00:00.000Z");
    expect(stampNow(clock)).toBe("~275760-09-13T00:00:00.000Z");
  });

  test("sessions of several processes, whose machine's clock is set at will, are in the order in which they were written", () => {
    const act = fc.record({
      who: fc.nat({ max: 2 }),
      do: fc.constantFrom("write" as const, "write" as const, "restart" as const),
      passMs: fc.integer({ min: 1, max: 2 * HOUR }),
      errorMs: fc.option(fc.integer({ min: -24 * HOUR, max: 24 * HOUR })),
    });
    holds(
      fc.property(fc.array(act, { maxLength: 60 }), (acts) => {
        const machine = new Machine();
        const start = (): OrderClock => new OrderClock(machine.wall, machine.monotonic);
        const clocks = [start(), start(), start()];
        let newest = "";
        for (const { who, do: what, passMs, errorMs } of acts) {
          machine.trueMs += passMs;
          if (errorMs !== null) machine.errorMs = errorMs;
          if (what === "restart") clocks[who] = start();
          clocks[who]!.follow(newest === "" ? undefined : newest);
          const stamp = stampNow(clocks[who]!);
          expect(stamp >= newest).toBe(true);
          // In the same millisecond at most, and only if the clock went forward.
          if (stamp === newest) expect(clocks[who]!.ahead).toBe(0);
          newest = stamp;
        }
      }),
      seed,
      300,
    );
  });
});

describe("stamps", () => {
  test("a time in the form of records is its own stamp; others are brought into it, and what is no time comes first", () => {
    expect(stampOf(iso(NOON), 0)).toBe(iso(NOON));
    expect(stampOf(iso(NOON), 5)).toBe(iso(NOON + 5));
    expect(stampOf("2026-11-15T13:00:00+01:00", 0)).toBe(iso(NOON));
    for (const at of ["", "zzz", "9999-99-99"]) expect(stampOf(at, 0)).toBe(iso(0));
    expect(stampOf("-000044-03-15T00:00:00.000Z", 0)).toBe(iso(0));
  });

  test("years of more than four digits sort behind the others", () => {
    const last = "9999-12-31T23:59:59.999Z";
    expect(stampOf(last, 1) > last).toBe(true);
    expect(aheadOf(stampOf(last, 1), last)).toBe(1);
  });

  test("aheadOf undoes stampOf, and makes nothing of nonsense", () => {
    expect(aheadOf(stampOf(iso(NOON), 77), iso(NOON))).toBe(77);
    expect(aheadOf(iso(NOON), iso(NOON + 1))).toBe(0);
    expect(aheadOf("x", iso(NOON))).toBe(0);
  });

  test("a record says it, or takes it back by a row, or leaves it as it is", () => {
    const after = (record: Partial<JournalRecord>): number => aheadAfter(9, record as JournalRecord);
    expect(after({ ahead: 5 })).toBe(5);
    expect(after({ ahead: 0 })).toBe(0);
    expect(after({ summary: {} })).toBe(0);
    expect(after({ summary: {}, ahead: 4 })).toBe(4);
    expect(after({})).toBe(9);
  });
});

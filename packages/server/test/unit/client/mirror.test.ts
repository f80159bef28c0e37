import fc from "fast-check";
import { expect, test } from "vitest";
import { holds, seedOf } from "../../../../holdfast/test/seed.ts";
import { isNewer } from "../../../src/client/chat-mirror.ts";
import type { Item } from "../../../src/contract/item.ts";
import { spliceOf } from "../../../src/events/chat-feed.ts";
import { parseEventId } from "../../../src/events/follow-session.ts";

const seed = seedOf(import.meta.url, "unit");

const pool: Item[] = Array.from({ length: 12 }, (_, n) => ({
  ...{ kind: "note", id: String(n), at: "2026-11-16T00:00:00.000Z", turn: 1, text: "" },
}));
const items = fc.array(fc.integer({ min: 0, max: 11 }).map((n) => pool[n]!));

test("a splice makes the one list out of the other, and touches no more than it must", () => {
  holds(
    fc.property(items, items, (before, now) => {
      const splice = spliceOf(before, now);
      if (!splice) return void expect(now).toEqual(before);
      const { at, remove, insert } = splice;
      expect(before.toSpliced(at, remove, ...insert)).toEqual(now);
      if (remove > 0 && insert.length > 0) expect(before[at]).not.toBe(insert[0]);
    }),
    seed,
    500,
  );
});

test("versions of one series are ordered by their number; another series is newer", () => {
  expect(isNewer("a.10", "a.9")).toBe(true);
  expect(isNewer("a.9", "a.10")).toBe(false);
  expect(isNewer("a.9", "a.9")).toBe(false);
  expect(isNewer("b.1", "a.9")).toBe(true);
  expect(isNewer("a.0", null)).toBe(true);
});

test("an event id is a cursor, and perhaps a place in an answer", () => {
  expect(parseEventId("12-0af3")).toEqual({ cursor: "12-0af3", answer: null, characters: 0 });
  expect(parseEventId("12-0af3~a-1.40")).toEqual({ cursor: "12-0af3", answer: "a-1", characters: 40 });
  expect(parseEventId("0~a-1.40")).toEqual({ cursor: "0", answer: "a-1", characters: 40 });
  for (const wrong of ["", "12", "-1", "12-xyz", "12-ab~", "12-ab~a", "12-ab~a.b", " 12-ab"])
    expect(parseEventId(wrong), wrong).toBe(null);
});

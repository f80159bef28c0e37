import { expect, test } from "vitest";
import { monthNamed, monthOf, monthOfId, partitionName, rangeOf, startsWithTime } from "../../../src/schema/months.ts";

const at = (text: string): number => Date.parse(text);

test.each([
  ["2026-11-01T00:00:00.000Z", 0, "2026-11-01"],
  ["2026-11-30T23:59:59.999Z", 0, "2026-11-01"],
  ["2026-11-30T23:59:59.999Z", 1, "2026-12-01"],
  ["2026-12-31T23:59:59.999Z", 1, "2027-01-01"],
  ["2026-01-31T12:00:00.000Z", 1, "2026-02-01"],
  ["2026-01-31T12:00:00.000Z", -1, "2025-12-01"],
])("the month of %s, and %i months ahead, begins on %s", (time, ahead, day) => {
  expect(new Date(monthOf(at(time), ahead)).toISOString()).toBe(`${day}T00:00:00.000Z`);
  if (ahead === 0) expect(monthOf(at(time))).toBe(at(day));
});

test("an id of a month is in its range, and in that of no other month", () => {
  const idAt = (time: string, rest: string): string => {
    const hex = at(time).toString(16).padStart(12, "0");
    return `${hex.slice(0, 8)}-${hex.slice(8)}-${rest}`;
  };
  const { from, to } = rangeOf(at("2026-11-01"));
  const isIn = (id: string): boolean => from <= id && id < to;
  const [first, last] = ["7000-8000-000000000000", "7fff-bfff-ffffffffffff"];
  expect(isIn(idAt("2026-10-31T23:59:59.999Z", last))).toBe(false);
  expect(isIn(idAt("2026-11-01T00:00:00.000Z", first))).toBe(true);
  expect(isIn(idAt("2026-11-30T23:59:59.999Z", last))).toBe(true);
  expect(isIn(idAt("2026-12-01T00:00:00.000Z", first))).toBe(false);
  expect(to).toBe(rangeOf(at("2026-12-01")).from);
  expect(monthOfId(idAt("2026-11-30T23:59:59.999Z", last))).toBe(at("2026-11-01"));
  expect(startsWithTime(idAt("2026-11-01T00:00:00.000Z", first))).toBe(true);
  expect(startsWithTime("0198c0de-0000-4000-8000-000000000000")).toBe(false);
  // Ids from before 2004 begin with a zero.
  expect(rangeOf(at("1970-01-01")).from).toBe("00000000-0000-0000-0000-000000000000");
});

test.each([
  ["lines_2026_11", "2026-11-01"],
  ["lines_2027_01", "2027-01-01"],
  ["lines_default", null],
  ["lines_2026_11_old", null],
  ["my_lines_2026_11", null],
])("a partition named %s is that of %s", (name, day) => {
  expect(monthNamed(name)).toBe(day === null ? null : at(day));
  if (day !== null) expect(partitionName(at(day))).toBe(name);
});

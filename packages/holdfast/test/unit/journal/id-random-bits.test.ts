import { expect, test } from "vitest";
import { newId } from "../../../src/journal/id.ts";

/** All bits behind the time. */
const BEHIND_TIME = (1n << 80n) - 1n;

test("every bit of an id is random, besides its time, version and variant, and the highest of its count", () => {
  const ids = Array.from({ length: 500 }, (_, i) => BigInt(`0x${newId(i).replaceAll("-", "")}`) & BEHIND_TIME);
  const everSet = ids.reduce((bits, id) => bits | id);
  const alwaysSet = ids.reduce((bits, id) => bits & id);
  // Half of the counts are left for more ids of the same millisecond.
  expect(everSet.toString(16)).toBe("77ffbfffffffffffffff");
  expect(alwaysSet.toString(16)).toBe("70008000000000000000");
});

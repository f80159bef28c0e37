import { expect, test } from "vitest";
import { newId } from "../../../src/journal/id.ts";

test("an id holds the time when it was made, unless it is given another", () => {
  const before = Date.now();
  const time = Number.parseInt(newId().replaceAll("-", "").slice(0, 12), 16);
  expect(time).toBeGreaterThanOrEqual(before);
  expect(time).toBeLessThanOrEqual(Date.now());
});

import { expect, test } from "vitest";
import { defined } from "../../src/defined.ts";

test("members that are undefined are left out; null, false and empty ones are not", () => {
  const members = { a: undefined, b: null, c: false, d: "", e: 0, f: { g: undefined } };
  expect(Object.keys(defined(members))).toEqual(["b", "c", "d", "e", "f"]);
  expect(defined(members)).toStrictEqual({ b: null, c: false, d: "", e: 0, f: { g: undefined } });
});

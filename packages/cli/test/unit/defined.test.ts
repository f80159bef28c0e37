import { expect, test } from "vitest";
import { defined } from "../../src/defined.ts";

test("members that are undefined are left out; null, zero and the empty text are values", () => {
  const given: { a?: string | undefined; b: number | null; c: string; d: number } = { b: null, c: "", d: 0 };
  // With exactOptionalPropertyTypes this compiles only because `a` is absent, and not undefined.
  const options: { a?: string; b: number | null; c: string; d: number } = defined({ ...given, a: given.a });
  expect(Object.keys(options)).toEqual(["b", "c", "d"]);
  expect(defined({ a: "x" as string | undefined })).toEqual({ a: "x" });
});

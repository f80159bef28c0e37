import { expect, test } from "vitest";
import { tolerate } from "../../../src/disk/failure.ts";

test("what the system refuses is tolerated, and a bug is not", () => {
  const fail = (error: Error) => (): string => {
    throw error;
  };
  expect(tolerate(() => "found", "none")).toBe("found");
  expect(tolerate(fail(Object.assign(new Error("no"), { code: "EACCES" })), "none")).toBe("none");
  expect(() => tolerate(fail(new TypeError("a bug")), "none")).toThrow("a bug");
});

import type { OpenCall } from "holdfast";
import { expect, test } from "vitest";
import { isLookedFor } from "../../../../src/tools/shell/surviving-commands.ts";

const call = { id: "c", name: "shell", input: {}, message: "m", state: "outcome-unknown" } as OpenCall;
const process = { pid: 1, started: "then" };

test("P5: only of this agent's own command does a missing process say that it never began", () => {
  expect(isLookedFor(call, true)).toBe(true);
  expect(isLookedFor(call, false)).toBe(false);
  expect(isLookedFor({ ...call, process }, false)).toBe(true);
  expect(isLookedFor({ ...call, name: "read" }, true)).toBe(false);
  expect(isLookedFor({ ...call, state: "never-started" }, true)).toBe(false);
});

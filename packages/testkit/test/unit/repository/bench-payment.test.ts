import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Instant } from "../../../../../bench/payment/loopback.ts";
import { holdfast } from "../../../../../bench/payment/systems/holdfast.ts";
import { tryOnce } from "../../../../../bench/payment/trial.ts";

const RESULT = '{"charge":"ch_1"}';
const PAGE = readFileSync(join(import.meta.dirname, "../../../../../docs/peers.md"), "utf8");

/** The row of the page, of one way to drive Holdfast. */
function rowOf(words: string): string {
  return PAGE.split("\n").find((line) => line.startsWith(`| Holdfast, ${words} |`))!;
}

test.for<[variant: string, at: Instant, charges: number, words: string]>([
  ["plain", "charged", 1, "no probe"],
  ["probe", "before", 1, "a probe asks for `call.key`"],
  ["probe", "charged", 1, "a probe asks for `call.key`"],
])("the killed payment is as docs/peers.md says: %s, %s", async ([variant, at, charges, words]) => {
  const trial = await tryOnce(holdfast, variant, at, 0, null);
  expect(trial).toMatchObject({ charges, ended: "done" });
  expect(trial.told).toMatchObject([{ tool_calls: [{ id: "call_charge_1" }] }, { role: "tool" }]);
  const { content } = trial.told![1] as { content: string };
  if (at === "charged") expect(rowOf(words)).toContain(`| "${content}" |`);
  else expect(content).toBe(RESULT);
});

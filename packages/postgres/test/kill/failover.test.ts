import { expect, test } from "vitest";
import { failOverDrill } from "./failover.ts";

const FAIL_OVERS = Number(process.env["HOLDFAST_PG_FAILOVERS"] ?? 3);
const SEED = Number(process.env["HOLDFAST_PG_SEED"] ?? Date.now() % 1_000_000_007);

test(`P1: ${FAIL_OVERS} fail-overs to a synchronous standby in mid-append lose nothing that was acknowledged, and double nothing`, {
  timeout: 120_000 + FAIL_OVERS * 60_000,
}, async () => {
  console.log(`seed ${SEED}: HOLDFAST_PG_SEED=${SEED} HOLDFAST_PG_FAILOVERS=${FAIL_OVERS}`);
  const { faults, ...receipt } = await failOverDrill({ failOvers: FAIL_OVERS, seed: SEED });
  console.log(JSON.stringify(receipt));
  expect(faults).toEqual([]);
  expect(receipt.acknowledged).toBeGreaterThan(0);
});

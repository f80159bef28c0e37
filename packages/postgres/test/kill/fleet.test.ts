import { expect, test } from "vitest";
import { startServer } from "../server/server.ts";
import { fleetStorm } from "./fleet-storm.ts";

const KILLS = Number(process.env["HOLDFAST_PG_FLEET_KILLS"] ?? 12);
const SEED = Number(process.env["HOLDFAST_PG_SEED"] ?? Date.now() % 1_000_000_007);

test(`ten workers claim and finish interrupted sessions through ${KILLS} kills: each turn is finished once, nothing runs twice that must not, and rows are there exactly if their outcome is`, {
  timeout: 300_000 + KILLS * 4000,
}, async () => {
  console.log(`seed ${SEED}: HOLDFAST_PG_SEED=${SEED} HOLDFAST_PG_FLEET_KILLS=${KILLS}`);
  const server = await startServer(["fsync=off", "restart_after_crash=on", "max_connections=200"]);
  try {
    const { faults, ...receipt } = await fleetStorm(server, { kills: KILLS, seed: SEED });
    console.log(JSON.stringify(receipt));
    expect(faults).toEqual([]);
    expect(receipt.ran.together).toBeGreaterThan(0);
  } finally {
    await server.stop();
  }
});

import { expect, test } from "vitest";
import { startServer } from "../server/server.ts";
import { storm } from "./storm.ts";

const KILLS = Number(process.env["HOLDFAST_PG_KILLS"] ?? 80);
const SEED = Number(process.env["HOLDFAST_PG_SEED"] ?? Date.now() % 1_000_000_007);

test(`P1, P2, S25: ${KILLS} kills of workers, backends and the server in mid-append lose nothing that was acknowledged, double nothing, and nobody writes after his replacement`, {
  timeout: 60_000 + KILLS * 2000,
}, async () => {
  console.log(`seed ${SEED}: HOLDFAST_PG_SEED=${SEED} HOLDFAST_PG_KILLS=${KILLS}`);
  const server = await startServer(["fsync=off", "restart_after_crash=on"]);
  try {
    const { faults, ...receipt } = await storm(server, { kills: KILLS, seed: SEED });
    console.log(JSON.stringify(receipt));
    expect(faults).toEqual([]);
  } finally {
    await server.stop();
  }
});

import { expect, test } from "vitest";
import { killServer } from "./kill-server.ts";

test("a server that is killed in mid-turn loses nothing, and every client ends with the same records", async () => {
  const seed = Math.floor(Math.random() * 1e9);
  console.log(`npm run server-kills -- 6 ${seed} repeats this run`);
  const report = await killServer(6, seed);
  expect(report.kills).toBe(6);
  expect(report.inTurn).toBeGreaterThan(0);
  expect(report.reconnects).toBeGreaterThan(6);
});

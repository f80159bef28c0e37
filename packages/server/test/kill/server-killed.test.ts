import { expect, test } from "vitest";
import { seedOf } from "../../../holdfast/test/seed.ts";
import { killServer } from "./kill-server.ts";

test("a server that is killed in mid-turn loses nothing, and every client ends with the same records", async () => {
  const report = await killServer(6, seedOf(import.meta.url, "kill"));
  expect(report.kills).toBe(6);
  expect(report.inTurn).toBeGreaterThan(0);
  expect(report.reconnects).toBeGreaterThan(6);
});

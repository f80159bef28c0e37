import { runPowerCuts, whyNoPowerCuts } from "@holdfast/testkit/internal/machine";
import { describe, expect, test } from "vitest";
import { seedOf } from "../seed.ts";
import { needs } from "./allowed.ts";

const seed = seedOf(import.meta.url, "machine");

/**
 * Nothing that ext4 had not written to its device comes back; that a store without syncs is caught by this, a test of
 * testkit shows. What this cannot show: a device that confirms a flush and has not done it (S23).
 */
describe("C8: every append that resolved under `power` is there after a real power cut", () => {
  test.for([
    { module: "folder", cuts: 6, mount: [] },
    { module: "folder", cuts: 3, mount: ["data=writeback"] },
    { module: "sqlite", cuts: 6, mount: [] },
  ])("$module, $cuts cuts $mount", async ({ module, cuts, mount }, context) => {
    needs(context, `power cuts, ${module}`, whyNoPowerCuts());
    const receipt = await runPowerCuts({ module, cuts, seed, mount });
    expect(receipt.faults).toEqual([]);
    expect(receipt.cuts).toBe(cuts);
    expect(receipt.acknowledged).toBeGreaterThan(0);
  });
});

import { describe, expect, test } from "vitest";
import { runPowerCuts, whyNoPowerCuts } from "../../../testkit/src/machine/index.ts";
import { seedOf } from "../seed.ts";
import { needs } from "./allowed.ts";

const seed = seedOf(import.meta.url, "machine");

/**
 * Nothing that was not handed to the device, and flushed, by ext4 comes back. What this cannot show: a device that confirms a flush and has not
 * done it (S23).
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
    // Cuts that took nothing away, or hit a writer that had done nothing, would prove nothing.
    expect(receipt.acknowledged).toBeGreaterThan(cuts);
    expect(receipt.recovered).toBeLessThan(receipt.attempted);
  });
});

import { runCampaign, temporaryPlace } from "@holdfast/testkit/internal/kill";
import { describe, expect, test } from "vitest";
import { seedOf } from "../seed.ts";

const seed = seedOf(import.meta.url, "kill");

describe("P1: acknowledged ⊆ recovered ⊆ attempted, after SIGKILL at random instants", () => {
  test.each([
    { module: "folder", durability: "power", kills: 80 },
    { module: "folder", durability: "process", kills: 40 },
    { module: "sqlite", durability: "power", kills: 50 },
    { module: "sqlite", durability: "process", kills: 30 },
  ] as const)("$module, $durability: $kills kills", async ({ module, durability, kills }) => {
    using place = temporaryPlace();
    const store = { module, place: place.path, durability, segmentBytesMax: 256 * 1024 };
    const receipt = await runCampaign({ store, seed, kills });
    expect(receipt.faults).toEqual([]);
    expect(receipt.kills).toBeGreaterThanOrEqual(kills);
    // A campaign that wrote nothing, or was never killed in the act, would prove nothing.
    expect(receipt.acknowledged).toBeGreaterThan(kills);
    expect(receipt.acknowledged).toBeLessThan(receipt.attempted);
    expect(receipt.recovered).toBeGreaterThanOrEqual(receipt.acknowledged);
  });
});

import { runCampaign, temporaryPlace } from "@holdfast/testkit/internal/kill";
import { expect, test } from "vitest";
import { seedOf } from "../seed.ts";

/** What campaign.test.ts tries, with fewer kills: the part that `npm test` runs. */

const seed = seedOf(import.meta.url, "kill");

test.each([
  { module: "folder", durability: "power", kills: 12 },
  { module: "sqlite", durability: "process", kills: 8 },
] as const)(
  "P1: $module, $durability: acknowledged ⊆ recovered ⊆ attempted after $kills kills at random instants",
  async ({ module, durability, kills }) => {
    using place = temporaryPlace();
    const store = { module, place: place.path, durability, segmentBytesMax: 256 * 1024 };
    const receipt = await runCampaign({ store, seed, kills });
    expect(receipt.faults).toEqual([]);
    expect(receipt.kills).toBeGreaterThanOrEqual(kills);
    expect(receipt.acknowledged).toBeGreaterThan(0);
    expect(receipt.recovered).toBeGreaterThanOrEqual(receipt.acknowledged);
  },
);

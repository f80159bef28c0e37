import { describe, expect, test } from "vitest";
import { folderPoints, folderSteps, runCampaign, temporaryPlace } from "../../src/kill/index.ts";

const SEED = 20_260_101;
const moduleOf = (name: string): string => new URL(`./stores/${name}.ts`, import.meta.url).href;

describe("the kill laboratory catches a store that breaks its promises", () => {
  test.each([
    { store: "drops-one", at: "after a sync", finds: /^(lost|gap): attempt/, durability: "power" },
    { store: "buffers-writes", at: "after a sync", finds: /^lost: attempt/, durability: "process" },
    { store: "loses-tails", at: "during a write, in the middle", finds: /^(lost|gap): attempt/, durability: "power" },
  ] as const)("$store", async ({ store: name, at, finds, durability }) => {
    using place = temporaryPlace();
    const store = { module: moduleOf(name), place: place.path, durability };
    // The session whose first kill is at that point.
    const only = folderPoints.findIndex((point) => point.name === at);
    const receipt = await runCampaign({ store, seed: SEED, kills: 40, steps: folderSteps, only });
    expect(receipt.faults.map(({ what, message }) => `${what}: ${message}`)).toContainEqual(
      expect.stringMatching(finds),
    );
  });
});

import { expect, test } from "vitest";
import { runPowerCuts, whyNoPowerCuts } from "../../src/machine/index.ts";

test("real power cuts catch a store that does not sync", async (context) => {
  const why = whyNoPowerCuts();
  if (why !== null) {
    console.log(`not run: power cuts (${why})`);
    context.skip(why);
  }
  const module = new URL("./stores/never-syncs.ts", import.meta.url).href;
  const receipt = await runPowerCuts({ module, cuts: 3, seed: 1 });
  expect(receipt.lost).toBeGreaterThan(0);
});

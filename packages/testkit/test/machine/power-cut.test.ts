import { expect, test } from "vitest";
import { needs } from "../../../holdfast/test/machine/allowed.ts";
import { runPowerCuts, whyNoPowerCuts } from "../../src/machine/index.ts";

test("real power cuts catch a store that does not sync", async (context) => {
  needs(context, "power cuts of a store that does not sync", whyNoPowerCuts());
  const module = new URL("./stores/never-syncs.ts", import.meta.url).href;
  const receipt = await runPowerCuts({ module, cuts: 3, seed: 1 });
  expect(receipt.lost).toBeGreaterThan(0);
});

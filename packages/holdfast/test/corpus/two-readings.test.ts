import fc from "fast-check";
import { expect, test } from "vitest";
import { seedOf } from "../seed.ts";
import { folderOf, folderPlan, shown } from "./random-folders.ts";
import { readTwice } from "./two-readings.ts";

/** P10: FORMAT.md says all that the store does with a folder. The other reader was written from that page alone. */

const seed = seedOf(import.meta.url, "corpus");
/** HOLDFAST_EFFORT=50 reads fifty times as many folders. */
const effort = Number(process.env["HOLDFAST_EFFORT"] ?? 1);

test(
  "a reader written from FORMAT.md alone reads any folder as the store does",
  async () => {
    const property = fc.asyncProperty(folderPlan, async (plan) => {
      const folder = folderOf(plan);
      for (const { when, store, second } of await readTwice(folder))
        expect(store, `${when}:\n${shown(folder)}`).toEqual(second);
    });
    await fc.assert(property, { seed, numRuns: 60 * effort });
  },
  60_000 * Math.max(effort, 1),
);

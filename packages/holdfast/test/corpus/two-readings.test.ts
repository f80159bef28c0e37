import fc from "fast-check";
import { expect, test } from "vitest";
import { seedOf } from "../seed.ts";
import { type FolderPlan, folderOf, folderPlan, shown } from "./random-folders.ts";
import { readTwice } from "./two-readings.ts";

/** P10: FORMAT.md says all that the store does with a folder. The other reader was written from that page alone. */

const seed = seedOf(import.meta.url, "corpus");
/** HOLDFAST_EFFORT=50 reads fifty times as many folders. */
const effort = Number(process.env["HOLDFAST_EFFORT"] ?? 1);

const rolled = {
  ...({ role: "rolled", header: "good", after: "none", end: "whole", packed: "no" } as const),
  ...{ skips: 0, jump: 0, tail: null, otherTails: [], late: [] },
};
const epochRecord = {
  is: "record",
  jump: 0,
  mark: "none",
  unit: 1,
  holds: "nothing",
  kind: "epoch",
  ending: "\n",
} as const;
/** Found by other seeds: the newest header is damaged, and a line was inserted before it. */
const inserted: FolderPlan = {
  segments: [
    { ...rolled, lines: [] },
    { ...rolled, lines: [epochRecord] },
  ],
  damage: [
    { is: "insert", file: 3, at: 0, size: 0 },
    { is: "flip", file: 1, at: 11, size: 0 },
  ],
  others: [],
};

test(
  "a reader written from FORMAT.md alone reads any folder as the store does",
  async () => {
    const property = fc.asyncProperty(folderPlan, async (plan) => {
      const folder = folderOf(plan);
      for (const { when, store, second } of await readTwice(folder))
        expect(store, `${when}:\n${shown(folder)}`).toEqual(second);
    });
    await fc.assert(property, { seed, numRuns: 60 * effort, examples: [[inserted]] });
  },
  60_000 * Math.max(effort, 1),
);

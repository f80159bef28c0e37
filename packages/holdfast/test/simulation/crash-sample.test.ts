import { describe, test } from "vitest";
import { survives } from "./survives.ts";

/** What crash.test.ts tries, with shorter workloads and seeds of its own: the part that `npm test` runs. */

describe("a sample of crashes", () => {
  test.each(["power", "kill"] as const)("P1: %s before every step: every append that resolved is there", (crash) =>
    survives({ seed: 11, length: 8, crashes: [crash], perStep: 1, recoveryEvery: 0 }, 20),
  );

  test.each(["power", "kill"] as const)("C7: %s before every step: an epoch is the old one or the new one", (crash) =>
    survives({ seed: 12, profile: "epochs", length: 6, crashes: [crash], perStep: 1, recoveryEvery: 0 }, 20),
  );

  test("C8: a crash during recovery is one more crash", () =>
    survives({ seed: 13, length: 2, perStep: 1, recoveryEvery: 150 }, 20));
});

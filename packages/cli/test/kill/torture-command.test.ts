import { existsSync, readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { temporaryHome } from "../command.ts";

test("torture kills writers and agents on this disk, and says what came of it", async () => {
  using home = temporaryHome();
  const { code, stdout, stderr } = await home.run([
    "torture",
    "--kills",
    "6",
    "--conversations",
    "2",
    "--on",
    "folder",
    "--seed",
    "7",
    "--dir",
    home.work,
  ]);
  expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: "" });
  expect(stdout).toContain("No acknowledged record was lost.");
  expect(stdout).toMatch(/kills of the writers of[\s\S]*kills? of the agents of/);
  expect(readdirSync(home.work)).toEqual([]);
});

test("a store that drops a record is found out, exit code 1, and left in place", async () => {
  using home = temporaryHome();
  const broken = new URL("../../../testkit/test/kill/stores/drops-one.ts", import.meta.url).href;
  const { code, stdout } = await home.run([
    "torture",
    "--kills",
    "4",
    "--conversations",
    "0",
    "--on",
    broken,
    "--seed",
    "1",
    "--dir",
    home.work,
    "--json",
  ]);
  expect(code, stdout).toBe(1);
  const { verdict, sums } = JSON.parse(stdout);
  expect(verdict).toBe("broken");
  // Whether the dropped record had been acknowledged before the kill is chance; that it is missed is not.
  expect(sums[0].faults).not.toEqual([]);
  expect(readdirSync(home.work)).toHaveLength(1);
  expect(existsSync(home.store)).toBe(false);
});

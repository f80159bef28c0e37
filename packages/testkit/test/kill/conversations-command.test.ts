import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const torture = fileURLToPath(new URL("../../src/torture/torture.ts", import.meta.url));

test("npm run torture -- --conversations kills agents, and says what came back and how to repeat it", () => {
  const asked = ["--kills", "0", "--conversations", "3", "--store", "folder", "--seed", "3"];
  const said = execFileSync(process.execPath, ["--conditions=holdfast-source", torture, ...asked], {
    encoding: "utf8",
  });
  expect(said).toMatch(/folder, conversations\n +[34] kills of the agents of \d conversations?\n/);
  expect(said).toMatch(/requests checked [1-9]/);
  expect(said).toContain(" faults 0\n");
  expect(said).toContain("No acknowledged record was lost.");
  expect(said).toContain("Repeat with: npm run torture -- --kills 0 --conversations 3 --store folder");
});

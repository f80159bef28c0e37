import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { document, withTables } from "../../../../scripts/cli-reference.ts";

test("the tables of docs/CLI.md are those of the code (else: node --conditions=holdfast-source scripts/cli-reference.ts)", () => {
  const text = readFileSync(document, "utf8");
  expect(text).toBe(withTables(text));
});

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { document, openApiText } from "../../../../../scripts/openapi.ts";

test("docs/openapi.json is made from the schemas (else: node --conditions=holdfast-source scripts/openapi.ts)", () => {
  expect(readFileSync(document, "utf8")).toBe(openApiText());
});

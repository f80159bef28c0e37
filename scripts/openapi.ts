import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { version } from "../packages/cli/src/version.ts";
import { openApiDocument } from "../packages/server/src/openapi/document.ts";

/**
 * Writes docs/openapi.json out of the schemas that validate requests:
 * `node --conditions=holdfast-source scripts/openapi.ts`. A test says when that is due.
 */
export const document = join(import.meta.dirname, "../docs/openapi.json");

export function openApiText(): string {
  return `${JSON.stringify(openApiDocument(version), null, 2)}\n`;
}

if (import.meta.main) writeFileSync(document, openApiText());

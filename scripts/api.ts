import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { apiPage } from "./api/page.ts";

/** `npm run api`: writes docs/API.md from the source. A unit test fails if the page and the source differ. */
export const document = join(import.meta.dirname, "../docs/API.md");

/** The page as it must be. */
export function makePage(): string {
  return apiPage(format);
}

const SEPARATOR = "// ---";

/** Formats declarations as the source is formatted, all of them in one run of Biome. */
function format(declarations: readonly string[]): string[] {
  const biome = join(import.meta.dirname, "../node_modules/@biomejs/biome/bin/biome");
  const text = execFileSync(process.execPath, [biome, "format", "--stdin-file-path=scripts/api.d.ts"], {
    input: declarations.join(`\n${SEPARATOR}\n`),
    cwd: join(import.meta.dirname, ".."),
    encoding: "utf8",
    maxBuffer: 1 << 26,
  });
  return text.split(SEPARATOR).map((code) => code.trim().replaceAll(/^export (?:declare )?/gm, ""));
}

if (import.meta.main) {
  writeFileSync(document, makePage());
  console.log("docs/API.md is written");
}

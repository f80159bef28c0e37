import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../../../../..");

/** The pages at the root, in docs/ and of each package. */
function pages(): string[] {
  const docs = readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" }).map((name) => join("docs", name));
  const packages = readdirSync(join(ROOT, "packages")).map((name) => join("packages", name, "README.md"));
  return [...readdirSync(ROOT), ...docs, ...packages].filter(
    (name) => name.endsWith(".md") && existsSync(join(ROOT, name)),
  );
}

test.each(pages())("%s: every link to a file leads to one", (page) => {
  const text = readFileSync(join(ROOT, page), "utf8").replaceAll(/^```.*?^```/gms, "");
  const targets = [...text.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target!.replace(/#.*$/, ""));
  const files = targets.filter((target) => target !== "" && !/^[a-z]+:/.test(target));
  expect(files.filter((file) => !existsSync(resolve(ROOT, dirname(page), decodeURI(file))))).toEqual([]);
});

test("SECURITY.md names a test for what it says", () => {
  const text = readFileSync(join(ROOT, "SECURITY.md"), "utf8");
  const rows = text
    .split("\n")
    .filter((line) => line.startsWith("| ") && !line.startsWith("| It |") && !line.startsWith("| They |"));
  expect(rows.length).toBeGreaterThan(15);
  for (const row of rows) if (!row.startsWith("| **can**")) expect(row).toMatch(/\.test\.ts\)/);
});

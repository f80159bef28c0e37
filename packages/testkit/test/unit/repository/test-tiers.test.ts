import { execFileSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { OLDEST_LAYER, SHORT_FILES } from "../../../../../scripts/test-tiers.ts";

const ROOT = resolve(import.meta.dirname, "../../../../..");

const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { scripts: Record<string, string> };

/** What vitest itself would run for this npm script, as `layer path`. */
function filesRunBy(script: string): string[] {
  const [, options] = /&& vitest run (.*)$/.exec(scripts[script]!)!;
  const vitest = join(ROOT, "node_modules/vitest/vitest.mjs");
  const listed = execFileSync(process.execPath, [vitest, "list", "--filesOnly", ...options!.split(" ")], {
    cwd: ROOT,
    encoding: "utf8",
    env: { ...process.env, NO_COLOR: "1" },
  });
  return [...listed.matchAll(/^\[(\S+)\] (\S+)$/gm)].map(
    ([, layer, file]) => `${layer} ${file!.replaceAll("\\", "/")}`,
  );
}

const [short, long] = [filesRunBy("test"), filesRunBy("test:long")];

test("every test file runs in npm test or in npm run test:long, once", () => {
  const run = [...short, ...long].filter((line) => !line.startsWith(OLDEST_LAYER)).map((line) => line.split(" ")[1]!);
  const all = globSync("packages/*/test/**/*.test.ts", { cwd: ROOT }).map((file) => file.replaceAll("\\", "/"));
  expect(run.toSorted()).toEqual(all.toSorted());
});

test("npm test runs the fast layers as a whole, and a share of simulations, kills and terminals", () => {
  const layersOf = (files: readonly string[]) => new Set(files.map((line) => line.split(" ")[0]));
  expect(layersOf(short)).toEqual(new Set(["unit", "corpus", "conformance", "simulation", "kill", "end-to-end"]));
  for (const layer of ["unit", "corpus", "conformance"]) expect(layersOf(long)).not.toContain(layer);
  expect(short.map((line) => line.split(" ")[1])).toEqual(expect.arrayContaining([...SHORT_FILES]));
});

test("the PostgreSQL store's tests run on the oldest supported server too, in the long tier", () => {
  const onOldest = long.filter((line) => line.startsWith(OLDEST_LAYER)).map((line) => line.split(" ")[1]!);
  const all = globSync("packages/postgres/test/**/*.test.ts", { cwd: ROOT }).map((file) => file.replaceAll("\\", "/"));
  expect(onOldest.toSorted()).toEqual(all.toSorted());
  expect(short.filter((line) => line.startsWith(OLDEST_LAYER))).toEqual([]);
});

test("no test gets a second try", () => {
  const config = readFileSync(join(ROOT, "vitest.config.ts"), "utf8");
  expect(config.match(/retry\b.*/g)).toEqual([expect.stringMatching(/^retry: 0\b/)]);
  const given = globSync("packages/*/test/**/*.test.ts", { cwd: ROOT }).filter((file) =>
    /\b(?:retry|repeats): *[1-9]/.test(readFileSync(join(ROOT, file), "utf8")),
  );
  expect(given.filter((file) => !file.endsWith("test-tiers.test.ts"))).toEqual([]);
});

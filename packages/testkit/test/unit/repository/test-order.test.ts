import { execFileSync } from "node:child_process";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { LONGEST_FILES, placeOf } from "../../../../../scripts/test-order.ts";

const ROOT = resolve(import.meta.dirname, "../../../../..");

/** Prints the files of both tiers in the order in which vitest starts them on a machine where none has run. */
const PROGRAM = `
  import { createVitest } from "vitest/node";
  const vitest = await createVitest("test", { watch: false, cache: false });
  const sequencer = new vitest.config.sequence.sequencer(vitest);
  const sorted = await sequencer.sort(await vitest.globTestSpecifications());
  console.log("\\n" + sorted.map(({ moduleId }) => "starts " + moduleId).join("\\n"));
  await vitest.close();
  process.exit();
`;

test("the longest test files start first, whatever their layer is", () => {
  const printed = execFileSync(process.execPath, ["--input-type=module", "-e", PROGRAM], {
    cwd: ROOT,
    encoding: "utf8",
  });
  const started = [...printed.matchAll(/^starts (.*)$/gm)].map(([, path]) => path!.replaceAll("\\", "/"));
  expect(started.length).toBeGreaterThan(400);
  expect(started.slice(0, LONGEST_FILES.length)).toEqual(
    LONGEST_FILES.map((file) => join(ROOT, file).replaceAll("\\", "/")),
  );
});

test("a file that is not among the longest comes behind all of them", () => {
  const longest = ["packages/a/test/kill/b.test.ts", "packages/a/test/unit/b.test.ts"];
  expect(placeOf("/x/packages/a/test/unit/b.test.ts", longest)).toBe(1);
  expect(placeOf("C:\\x\\packages\\a\\test\\kill\\b.test.ts", longest)).toBe(0);
  expect(placeOf("/x/packages/a/test/unit/bb.test.ts", longest)).toBe(2);
});

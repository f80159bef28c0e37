import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { whyNoTerminal } from "../screen/terminal.ts";

const ROOT = resolve(import.meta.dirname, "../../../..");

test("every command of README.md and docs/CLI.md, typed by somebody with an empty home, does what it says", async ({
  skip,
}) => {
  if (whyNoTerminal !== null) skip(whyNoTerminal);
  const hour = promisify(execFile)(process.execPath, ["scripts/newcomer.ts"], { cwd: ROOT });
  const { stdout } = await hour.catch((error) => ({ stdout: `${error.stdout}\n${error.stderr}` }));
  expect(stdout).toMatch(/Every command of README\.md and docs\/CLI\.md does what it says\.\n$/);
}, 600_000);

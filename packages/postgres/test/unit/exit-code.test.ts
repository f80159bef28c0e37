import { spawnSync } from "node:child_process";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../../../..");

// Both can start a PostgreSQL server. The package that does it ends every process with 0 unless it is kept from that.
test.each([
  ["bench/run.ts", "--only", "nobody"],
  ["bench/run.ts", "--peers", "--only", "nobody"],
  ["packages/postgres/test/kill/storm-command.ts", "--nonsense"],
])("a command that fails says so by its exit code: %s %s %s", (program, ...args) => {
  const command = ["--conditions=holdfast-source", join(ROOT, program), ...args];
  const { status, stderr } = spawnSync(process.execPath, command, { encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringMatching(/There is no|Unknown option/) });
});

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../../..");

/** Before tests that run the command: compiles it if a source is newer than what was compiled. */
export function setup(): void {
  const packages = ["holdfast", "adapters", "testkit", "cli"].map((name) => join(root, "packages", name));
  const newest = Math.max(...packages.map((path) => newestIn(join(path, "src"))));
  const built = statSync(join(root, "packages/cli/dist/.tsbuildinfo"), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  if (built > newest) return;
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const { status, stdout } = spawnSync(process.execPath, [tsc, "-b", "packages/cli"], { cwd: root, encoding: "utf8" });
  if (status === 0) return;
  // What is wrong with the types is for `npm run build` to say: the tests run with what was emitted.
  console.error(stdout);
  if (!existsSync(join(root, "packages/cli/dist/bin.js"))) throw new Error("packages/cli could not be compiled");
}

function newestIn(folder: string): number {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).reduce(
    (newest, name) => Math.max(newest, statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0),
    0,
  );
}

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { bundle, bundleFolder } from "../../../scripts/bundle.ts";

const root = join(import.meta.dirname, "../../..");

/** Before tests that run the command: makes what is installed anew, if a source is newer. */
export async function setup(): Promise<void> {
  // The laboratory starts its processes from files of its own, so `torture` needs them compiled. The store in a
  // database is loaded when it is needed.
  for (const name of ["testkit", "postgres"]) compile(name);
  const command = join(bundleFolder, "bin.js");
  if (timeOf(command) > newestOf("holdfast", "adapters", "cli")) return;
  try {
    // What is there is left in place: somebody may be running it.
    await bundle();
  } catch (error) {
    // A source that cannot be read is for `npm run build` to complain of: others go on with what there was.
    if (!existsSync(command)) throw error;
    console.error(error);
  }
}

function compile(name: string): void {
  const built = timeOf(join(root, "packages", name, "dist/.tsbuildinfo"));
  if (built > newestOf("holdfast", name)) return;
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const { status, stdout } = spawnSync(process.execPath, [tsc, "-b", `packages/${name}`], {
    cwd: root,
    encoding: "utf8",
  });
  if (status !== 0) console.error(stdout);
}

function newestOf(...packages: readonly string[]): number {
  return Math.max(...packages.map((name) => newestIn(join(root, "packages", name, "src"))));
}

function newestIn(folder: string): number {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).reduce(
    (newest, name) => Math.max(newest, timeOf(join(folder, name))),
    0,
  );
}

function timeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

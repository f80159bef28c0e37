import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { bundleCommand, bundleLibrary, commandFolder, libraryFolder } from "../../../scripts/bundle.ts";

const root = join(import.meta.dirname, "../../..");

/** Before tests that run what is installed: rebuilds it if a source is newer. */
export async function setup(): Promise<void> {
  // The laboratory starts its processes from files of its own, so `torture` needs them compiled. The store in a
  // database is loaded when it is needed.
  for (const name of ["testkit", "postgres", "cloudflare"]) compile(name);
  await refresh(join(libraryFolder, "index.js"), ["holdfast"], bundleLibrary);
  await refresh(
    join(commandFolder, "bin.js"),
    ["holdfast", "adapters", "server", "acp", "doctor", "cli"],
    bundleCommand,
  );
}

/** Files that are no longer made stay in place: another test may be running them. */
async function refresh(made: string, from: readonly string[], bundle: () => Promise<unknown>): Promise<void> {
  if (timeOf(made) > newestOf(...from)) return;
  try {
    await bundle();
  } catch (error) {
    // `npm run build` reports a source that cannot be compiled; these tests go on with the last good bundle.
    if (!existsSync(made)) throw error;
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

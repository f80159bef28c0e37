import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { rolldown } from "rolldown";

/**
 * The command as it is installed: the modules of packages/cli and of the packages of this repository that it needs, in
 * a few files. Node takes longer to find and link two hundred small files than the command takes to do its work. What
 * others wrote stays outside, and so does the testkit, whose processes are started from its own files.
 */

const root = join(import.meta.dirname, "..");
const cli = join(root, "packages/cli");
export const bundleFolder = join(cli, "bundle");

const OUTSIDE = [
  /^node:/,
  /^commander$/,
  /^(?:ai|ink|marked|react|string-width|zod)(?:\/|$)/,
  /^@ai-sdk\//,
  /^@holdfast\/testkit/,
];

/** Answers the names of its files. Others that are there stay: somebody may be running them. */
export async function bundle(): Promise<readonly string[]> {
  const build = await rolldown({
    input: { bin: join(cli, "src/bin.ts"), "search-worker": join(cli, "src/tools/files/search-worker.ts") },
    platform: "node",
    // A module that one command loads late may be loaded early by another: that is as it should be.
    checks: { ineffectiveDynamicImport: false },
    external: OUTSIDE,
    tsconfig: join(root, "tsconfig.base.json"),
    resolve: { conditionNames: ["holdfast-source", "node", "import", "default"] },
    transform: { target: "node24", jsx: "react-jsx" },
  });
  // No folders: the modules look for what stands beside them, and for package.json above them.
  const { output } = await build.write({
    dir: bundleFolder,
    format: "esm",
    entryFileNames: "[name].js",
    chunkFileNames: "[name]-[hash].js",
  });
  await build.close();
  chmodSync(join(bundleFolder, "bin.js"), 0o755);
  return output.map(({ fileName }) => fileName);
}

if (import.meta.main) {
  const files = new Set(await bundle());
  for (const name of readdirSync(bundleFolder)) if (!files.has(name)) rmSync(join(bundleFolder, name));
  // In a fresh clone `npm ci` finds no bundle, and so links no command: without this, `npx holdfast` does not work
  // there.
  if (!existsSync(join(root, "node_modules/.bin/holdfast")))
    execFileSync("npm", ["rebuild", "--silent", "--ignore-scripts", "@holdfast/cli"], {
      cwd: root,
      stdio: ["ignore", "ignore", "inherit"],
    });
}

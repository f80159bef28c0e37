import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import * as fs from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import type { Contender } from "./roster.ts";

/** The module in a peer's cache that imports its packages. */
export const BRIDGE = "import.mjs";
const COMPLETE = "complete";
const LIMIT_MS = 15 * 60_000;

/** Where peers are installed unless `--cache` says otherwise. Never in the workspace. */
export function defaultCache(env: Readonly<Record<string, string | undefined>>, home: () => string = homedir): string {
  return join(env["XDG_CACHE_HOME"] || join(home(), ".cache"), "holdfast-bench");
}

/** The manifest that a peer's folder in the cache gets. */
export function manifestOf({ key, packages, overrides = {} }: Contender): object {
  return { name: `holdfast-bench-${key}`, private: true, type: "module", dependencies: packages, overrides };
}

/** The folder of a peer: another one when its versions or the version of Node change. */
export function cacheFolderOf(cache: string, contender: Contender, nodeVersion: string): string {
  const hash = createHash("sha256").update(JSON.stringify([manifestOf(contender), nodeVersion]));
  return join(cache, `${contender.key}-${hash.digest("hex").slice(0, 12)}`);
}

/** Installs a peer unless it is there already. Returns its folder. Throws with npm's own words. */
export async function install(cache: string, contender: Contender, say: (line: string) => void): Promise<string> {
  const folder = cacheFolderOf(cache, contender, process.version);
  if (fs.existsSync(join(folder, COMPLETE))) return folder;
  say(`installing ${contender.name} into ${folder}`);
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifestOf(contender), null, 2)}\n`);
  fs.writeFileSync(join(folder, BRIDGE), "export const load = (name) => import(name);\n");
  // No peer needs an install script: native code comes as a binary in a package.
  await npm(folder, ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
  fs.writeFileSync(join(folder, COMPLETE), "");
  return folder;
}

async function npm(folder: string, args: readonly string[]): Promise<void> {
  // The Node that runs the peer also installs it: packages may ask for its version.
  const env = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env["PATH"]}` };
  const child = spawn("npm", args, {
    cwd: folder,
    env,
    stdio: ["ignore", "ignore", "pipe"],
    timeout: LIMIT_MS,
    shell: process.platform === "win32",
  });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const [status] = (await once(child, "close")) as [number | null];
  if (status === 0) return;
  const words = errors.split("\n").filter((line) => /error/i.test(line) && !/complete log/.test(line));
  throw new Error(`npm ${args[0]} failed: ${words.slice(0, 3).join(" ") || `status ${status}`}`);
}

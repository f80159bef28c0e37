import { chmodSync, chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  casesFor,
  type HostileStore,
  makeHostileStore,
  randomOf,
} from "../../../holdfast/test/hostile/hostile-store.ts";
import { type Outcome, runLimited } from "../../../holdfast/test/hostile/run.ts";
import { seedOf } from "../../../holdfast/test/seed.ts";
import { bin, temporaryHome } from "../command.ts";

/** P9: one hostile session does not stop the others, in any command. */

const seed = seedOf(import.meta.url, "end-to-end");
const isRoot = process.getuid?.() === 0;
const NOBODY = 65_534;

async function hostileHome(
  target: Parameters<typeof casesFor>[0],
  folder: string,
): Promise<{ store: HostileStore; run: (...args: string[]) => Promise<Outcome> }> {
  const home = join(folder, "home-of-nobody");
  mkdirSync(home);
  chmodSync(folder, 0o755);
  if (isRoot) chownSync(home, NOBODY, NOBODY);
  const cases = casesFor(target, { slow: false });
  const store = await makeHostileStore(folder, { cases, seed, ...(isRoot ? { reader: NOBODY } : {}) });
  const run = async (...args: string[]): Promise<Outcome> => {
    const options = {
      env: { HOME: home, HOLDFAST_CONFIG: "", NO_COLOR: "1" },
      cwd: home,
      ...(isRoot ? { user: NOBODY } : {}),
    };
    const ended = await runLimited(bin, args[0] === "copy" ? args : ["--store", store.root, ...args], options);
    expect({ args, hung: ended.hung, signal: ended.signal }).toEqual({ args, hung: false, signal: null });
    expect(ended.stderr, args.join(" ")).not.toMatch(/UNEXPECTED|bug in holdfast|\n {4}at /);
    expect(ended.code, `${args.join(" ")}: ${ended.stderr}`).toBeLessThan(6);
    return ended;
  };
  return { store, run };
}

const idsIn = (text: string): string[] =>
  text
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => String((JSON.parse(line) as { id: unknown }).id));

test.each(["the newest segment", "the session's folder"] as const)(
  "%s of sessions, replaced by anything: every command does its work for the others",
  async (target) => {
    using home = temporaryHome();
    const { store, run } = await hostileHome(target, home.path);
    const { healthy, bad } = store;
    expect(idsIn((await run("ls", "--json", "--all")).stdout)).toEqual(expect.arrayContaining([...healthy]));
    const listed = (await run("ls")).stdout;
    for (let i = 0; i < healthy.length; i++) expect(listed).toContain(`healthy ${i}`);
    const found = (await run("search", "healthy")).stdout;
    for (let i = 0; i < healthy.length; i++) expect(found).toContain(`healthy ${i}`);
    const verified = (await run("verify", "--json")).stdout;
    for (const id of healthy) expect(verified).toContain(id);

    const random = randomOf(seed);
    for (let i = 0; i < 6; i++) {
      const { id } = bad[random(bad.length)]!;
      await run("show", id);
      await run("export", id, "--format", "jsonl");
    }
    for (const id of healthy) {
      expect((await run("show", id)).code).toBe(0);
      expect((await run("export", id, "--format", "jsonl")).code).toBe(0);
    }
    await run("pack", "--all");
    const copy = join(home.path, "home-of-nobody", "copy");
    await run("copy", "--all", store.root, copy);
    const copied = await run("--store", copy, "ls", "--json", "--all");
    expect(idsIn(copied.stdout)).toEqual(expect.arrayContaining([...healthy]));
    await run("repair", "--all");
    await run("trash");
    await run("gc", "--older-than", "0s", "--dry-run");
    await run("gc", "--older-than", "0s", "--yes");
  },
);

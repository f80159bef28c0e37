import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { Machine, mib, whyNoMounts } from "@holdfast/testkit/internal/machine";
import { openStore } from "holdfast";
import { describe, expect, test } from "vitest";
import { needs } from "../../../holdfast/test/machine/allowed.ts";
import { type Home, type RunOptions, temporaryHome } from "../command.ts";
import { speakIn } from "../sessions.ts";

const NOBODY = 65534;

/** The commands that only read do so; those that write say what is the matter. */
async function expectReadable(home: Home, store: string, id: string, options: RunOptions): Promise<void> {
  const run = (...args: string[]) =>
    home.run(args, { ...options, env: { HOLDFAST_STORE: store, NODE_COMPILE_CACHE: undefined } });
  for (const [args, text] of [
    [["ls", "--all"], "count the stars"],
    [["ls", "--all", "--json"], id],
    [["show", id], "seven of them"],
    [["show", id, "--json"], "seven of them"],
    [["tail", id], "turn.ended"],
    [["search", "seven"], id.slice(-8)],
    [["trash"], "deleted before"],
    [["verify"], "1 session"],
    [["verify", id, "--json"], id],
    [["export", id], "seven of them"],
    [["export", id, "--format", "jsonl"], '"kind":"turn.ended"'],
  ] as const) {
    const ran = await run(...args);
    expect(ran, args.join(" ")).toMatchObject({ code: 0, stderr: "" });
    expect(ran.stdout, args.join(" ")).toContain(text);
  }
  for (const args of [
    ["rename", id, "another"],
    ["rm", id],
    ["fork", id],
    ["restore", "latest"],
    ["gc", "--older-than", "0s", "--yes"],
  ]) {
    const ran = await run(...args);
    expect(ran.code, `${args.join(" ")}: ${ran.stderr}`).toBe(5);
    expect(ran.stderr, args.join(" ")).toContain("[STORE_FORBIDDEN]");
  }
}

describe("the command on a folder store that can only be read", () => {
  const spoken = { prompt: "count the stars", answer: "seven of them" };

  const speakAndDelete = async (address: string): Promise<string> => {
    const [deleted, id] = await speakIn(address, { prompt: "deleted before" }, spoken);
    await using store = await openStore(address);
    await store.delete(deleted!);
    return id!;
  };

  test("on a read-only file system", async (context) => {
    needs(context, "read-only file system", whyNoMounts());
    using home = temporaryHome();
    await using machine = new Machine();
    const folder = join(await machine.tmpfs("readonly", mib(16)), "store");
    mkdirSync(folder);
    const id = await speakAndDelete(folder);
    execFileSync("mount", ["-o", "remount,ro", join(folder, "..")]);
    await expectReadable(home, folder, id, {});
  });

  test("of somebody else", async (context) => {
    needs(context, "another user", process.getuid?.() === 0 ? null : "needs root");
    using home = temporaryHome();
    chmodSync(home.path, 0o755);
    const folder = join(home.path, "theirs");
    mkdirSync(folder);
    const id = await speakAndDelete(folder);
    execFileSync("chmod", ["-R", "a+rX", folder]);
    await expectReadable(home, folder, id, { uid: NOBODY });
  });
});

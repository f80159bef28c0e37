import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { treeOf } from "../../src/commands/completion.ts";
import { formats } from "../../src/export/format.ts";
import { makeProgram } from "../../src/main.ts";
import { bin, type Home, temporaryHome } from "../command.ts";
import { speakIn } from "../sessions.ts";

/** The command under its own name, as a shell finds it. */
function installed(home: Home): Record<string, string> {
  const folder = join(home.path, "bin");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "holdfast"), `#!/bin/sh\nexec '${process.execPath}' '${bin}' "$@"\n`);
  chmodSync(join(folder, "holdfast"), 0o755);
  return { ...home.env, HOLDFAST_CONFIG: "", PATH: `${folder}:${process.env["PATH"]}` };
}

/** What bash offers for these words; `type` is 9 for Tab, 63 for the second Tab, which lists. */
function completeInBash(home: Home, given: readonly (readonly string[])[], type = 9): string[] {
  const script = [
    "source <(holdfast completion bash)",
    ...given.map(
      (words) =>
        `COMP_TYPE=${type}; COMP_WORDS=(holdfast ${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length}; _holdfast; (IFS='|'; echo "\${COMPREPLY[*]}")`,
    ),
  ].join("\n");
  const { stdout, stderr } = spawnSync("bash", ["-c", script], {
    encoding: "utf8",
    env: installed(home),
    cwd: home.work,
  });
  expect(stderr).toBe("");
  return stdout.trimEnd().split("\n");
}

test("bash completes commands, options, their values, and ids of sessions", async () => {
  using home = temporaryHome();
  const [id, trashed] = await speakIn(home.store, { prompt: "one" }, { prompt: "two" });
  const short = id!.slice(-8);
  await home.run(["rm", trashed!]);
  expect(
    completeInBash(home, [
      ["sho"],
      ["ls", "--sta"],
      ["ls", "--status", "run"],
      ["ls", "--status", "=", "run"],
      ["show", short.slice(0, 4)],
      ["show", id!.slice(0, 6)],
      ["completion", "f"],
      ["rm", short.slice(0, 4)],
      ["chat", "--resume", short.slice(0, 4)],
      ["-r", short.slice(0, 4)],
      ["restore", ""],
      ["export", "--format", "m"],
      ["export", "-f", "openai"],
      ["run", "--model", "off"],
      ["chat", "-m", "comp"],
      ["-m", "off"],
      ["-"],
    ]),
  ).toEqual([
    ...["show", "--status", "running", "running", short, id, "fish", short, short, short, trashed!.slice(-8)],
    ...["markdown|messages", "openai-chat|openai-responses", "offline", "compatible/", "offline"],
    "-c|-p|-r|-m|-v|-h|--store|--version|--help",
  ]);
});

test("bash lists several ids with their titles, and runs nothing that a title contains", async () => {
  using home = temporaryHome();
  const ids = await speakIn(
    home.store,
    { prompt: "$(touch pwned)" },
    { prompt: "`touch pwned`; touch pwned \x1b[2J" },
    { prompt: 'a "quoted\ttitle" and \ud83d' },
  );
  expect(
    completeInBash(home, [["show", ""]], 63)[0]!
      .split("|")
      .toSorted(),
  ).toEqual(
    [
      `${ids[0]!.slice(-8)}  $(touch pwned)`,
      `${ids[1]!.slice(-8)}  \`touch pwned\`; touch pwned`,
      `${ids[2]!.slice(-8)}  a "quoted title" and \ufffd`,
    ].toSorted(),
  );
  expect(
    completeInBash(home, [["show", ""]])[0]!
      .split("|")
      .toSorted(),
  ).toEqual(ids.map((id) => id.slice(-8)).toSorted());
  expect(existsSync(join(home.work, "pwned"))).toBe(false);
});

test("zsh gets each id with its title, in which nothing has a meaning for zsh", async () => {
  using home = temporaryHome();
  const { stdout } = await home.run(["completion", "zsh"]);
  const [, awk] = /\| (awk .*')\)\}"\)/.exec(stdout) ?? [];
  const { stdout: described, stderr } = spawnSync("sh", ["-c", awk!], {
    encoding: "utf8",
    input: "5f2a91c0\ta: b\\c $(x)\n",
  });
  expect({ described, stderr }).toEqual({ described: "5f2a91c0:a- b-c $(x)\n", stderr: "" });
});

test.for([
  ["zsh", ["-n"]],
  ["fish", ["--no-execute"]],
] as const)("%s can read its script", async ([shell, flags], context) => {
  if (spawnSync(shell, ["--version"]).error) context.skip(`not run: ${shell} is missing`);
  using home = temporaryHome();
  const script = join(home.path, "script");
  writeFileSync(script, (await home.run(["completion", shell])).stdout);
  expect(spawnSync(shell, [...flags, script], { encoding: "utf8" })).toMatchObject({ status: 0, stderr: "" });
});

test("the values that are completed are those that the command takes", () => {
  const exported = treeOf(makeProgram()).find(({ name }) => name === "export");
  expect(exported?.options.find(({ flags }) => flags.includes("--format"))?.values).toEqual(formats);
});

test.each(["bash", "zsh", "fish"])("the script for %s names every command and every option", async (shell) => {
  using home = temporaryHome();
  const { code, stdout } = await home.run(["completion", shell]);
  expect(code).toBe(0);
  const program = makeProgram();
  const help = program.createHelp();
  for (const command of help.visibleCommands(program)) {
    expect(stdout).toContain(command.name());
    for (const option of help.visibleOptions(command)) expect(stdout).toContain(option.long!.slice(2));
  }
  expect(stdout).not.toContain("complete-ids [");
});

test("another shell is a wrong argument", async () => {
  using home = temporaryHome();
  expect(await home.run(["completion", "tcsh"])).toMatchObject({ code: 2, stdout: "" });
});

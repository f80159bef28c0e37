import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeProgram } from "../../src/main.ts";
import { bin, type Home, temporaryHome } from "../command.ts";
import { speakIn } from "../sessions.ts";

/** The command under its own name, as a shell finds it. */
function installed(home: Home): Record<string, string> {
  const folder = join(home.path, "bin");
  mkdirSync(folder);
  writeFileSync(join(folder, "holdfast"), `#!/bin/sh\nexec '${process.execPath}' '${bin}' "$@"\n`);
  chmodSync(join(folder, "holdfast"), 0o755);
  return { ...home.env, HOLDFAST_CONFIG: "", PATH: `${folder}:${process.env["PATH"]}` };
}

test("bash completes commands, options, their values, and ids of sessions", async () => {
  using home = temporaryHome();
  const [id] = await speakIn(home.store, { prompt: "one" });
  const words = [
    ["sh"],
    ["ls", "--sta"],
    ["ls", "--status", "run"],
    ["show", id!.slice(0, 6)],
    ["completion", "f"],
    ["rm", id!.slice(0, 6)],
  ];
  const script = [
    "source <(holdfast completion bash)",
    ...words.map(
      (given) =>
        `COMP_WORDS=(holdfast ${given.join(" ")}); COMP_CWORD=${given.length}; _holdfast; echo "\${COMPREPLY[*]}"`,
    ),
  ].join("\n");
  const { stdout, stderr } = spawnSync("bash", ["-c", script], { encoding: "utf8", env: installed(home) });
  expect(stderr).toBe("");
  expect(stdout.trimEnd().split("\n")).toEqual(["show", "--status", "running", id, "fish", id]);
});

test.each(["bash", "zsh", "fish"])("the script for %s names every command and every option", async (shell) => {
  using home = temporaryHome();
  const { code, stdout } = await home.run(["completion", shell]);
  expect(code).toBe(0);
  const program = makeProgram();
  for (const command of program.createHelp().visibleCommands(program)) {
    expect(stdout).toContain(command.name());
    for (const option of command.options) expect(stdout).toContain(option.long!.slice(2));
  }
  expect(stdout).not.toContain("complete-ids [");
});

test("another shell is a wrong argument", async () => {
  using home = temporaryHome();
  expect(await home.run(["completion", "tcsh"])).toMatchObject({ code: 2, stdout: "" });
});

import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { parse } from "jsonc-parser";
import { expect, test } from "vitest";
import { bin, type Home, temporaryHome } from "../command.ts";
import { editorOf } from "../editor.ts";
import { Terminal, whyNoTerminal } from "../screen/terminal.ts";

const SETTINGS = `// mine
{
  "agent_servers": {
    "Gemini": { "command": "gemini", "args": ["--acp"], "env": { "KEY": "sk-ant-api03-${"x".repeat(80)}AA" } },
    "Other": { "type": "registry" },
  },
}
`;

function zed(home: Home, text: string | null = SETTINGS): string {
  const path = join(home.path, ".config/zed/settings.json");
  mkdirSync(dirname(path), { recursive: true });
  if (text !== null) writeFileSync(path, text);
  return path;
}
const backups = (path: string) => readdirSync(dirname(path)).filter((name) => name.endsWith(".bak"));

test("wrap --install zed: shows the change, keeps a copy and the file's mode; --uninstall restores the file exactly", async () => {
  using home = temporaryHome();
  const path = zed(home);
  chmodSync(path, 0o640);
  const installed = await home.run(["wrap", "--install", "zed", "--yes"]);
  expect(installed).toMatchObject({ code: 0, stderr: "" });
  expect(installed.stdout).toContain('"Other" stays as it is: the editor runs it from its registry');
  expect(installed.stdout).toMatch(/^- .*"command": "gemini"/m);
  expect(installed.stdout).toMatch(/^\+ .*"wrap", "--", "gemini", "--acp"/m);
  expect(installed.stdout).not.toContain("xxxxxxxx");
  const { Gemini } = parse(readFileSync(path, "utf8")).agent_servers;
  expect(Gemini).toMatchObject({ command: process.execPath, args: [bin, "wrap", "--", "gemini", "--acp"] });
  expect(statSync(path).mode & 0o777).toBe(0o640);
  const [copy] = backups(path);
  expect(readFileSync(join(dirname(path), copy!), "utf8")).toBe(SETTINGS);

  const again = await home.run(["wrap", "--install", "zed", "--yes"]);
  expect(again.stdout).toMatch(/wrapped already[\s\S]*Nothing to do/);
  const removed = await home.run(["wrap", "--uninstall", "zed", "--yes"]);
  expect(removed.code).toBe(0);
  expect(readFileSync(path, "utf8")).toBe(SETTINGS);
  expect(backups(path)).toHaveLength(2);
  expect((await home.run(["wrap", "--uninstall", "zed", "--yes"])).stdout).toContain("Nothing to do");
});

test("wrap --install jetbrains -- <command> makes the file, and what it wrote runs", async () => {
  using home = temporaryHome();
  const agent = join(import.meta.dirname, "../agents/plain-agent.ts");
  const added = await home.run([
    "wrap",
    "--install",
    "jetbrains",
    "--name",
    "Mine",
    "--yes",
    "--",
    process.execPath,
    agent,
    "nothing",
  ]);
  expect(added).toMatchObject({ code: 0, stderr: "" });
  const path = join(home.path, ".jetbrains/acp.json");
  const { command, args } = JSON.parse(readFileSync(path, "utf8")).agent_servers.Mine;
  expect(command).toBe(process.execPath);
  const editor = await editorOf(home.start(args.slice(1)), async () => "yes");
  expect(await editor.leave()).toBe(0);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

test("without a terminal it asks for --yes, and changes nothing", async () => {
  using home = temporaryHome();
  const path = zed(home);
  const asked = await home.run(["wrap", "--install", "zed"]);
  expect(asked.code).toBe(2);
  expect(asked.stderr).toContain("--yes");
  expect([readFileSync(path, "utf8"), backups(path)]).toEqual([SETTINGS, []]);
});

test("in a terminal it asks: n changes nothing, y writes", async (context) => {
  if (whyNoTerminal !== null) context.skip(whyNoTerminal);
  using home = temporaryHome();
  const path = zed(home);
  for (const [key, isChanged] of [
    ["n", false],
    ["y", true],
  ] as const) {
    await using terminal = await Terminal.open(["wrap", "--install", "zed"], {
      cwd: home.work,
      env: { ...home.env, XDG_CONFIG_HOME: join(home.path, ".config") },
    });
    await terminal.until("Make this change? [y/N]");
    await terminal.type(key);
    await terminal.keys("Enter");
    await terminal.ended();
    expect(readFileSync(path, "utf8") !== SETTINGS).toBe(isChanged);
  }
});

test("a link stays a link, and its file changes; a pipe, a huge file and broken settings are refused", async () => {
  using home = temporaryHome();
  const path = zed(home, null);
  const real = join(home.path, "dotfiles.json");
  writeFileSync(real, SETTINGS);
  symlinkSync(real, path);
  expect((await home.run(["wrap", "--install", "zed", "--yes"])).code).toBe(0);
  expect(lstatSync(path).isSymbolicLink()).toBe(true);
  expect(readFileSync(real, "utf8")).toContain('"wrap"');

  const other = join(home.path, "other.json");
  const install = (file: string) => home.run(["wrap", "--install", "zed", "--yes", "--file", file]);
  spawnSync("mkfifo", [other]);
  expect(await install(other)).toMatchObject({ code: 5, stderr: expect.stringContaining("not a regular file") });
  const huge = join(home.path, "huge.json");
  writeFileSync(huge, " ".repeat(5_000_000));
  expect(await install(huge)).toMatchObject({ code: 5, stderr: expect.stringContaining("5000000 bytes") });
  const broken = join(home.path, "broken.json");
  writeFileSync(broken, '{\n  "agent_servers": {\n');
  expect(await install(broken)).toMatchObject({ code: 2, stderr: expect.stringContaining("not valid JSON at line") });
  expect(readFileSync(broken, "utf8")).toBe('{\n  "agent_servers": {\n');
  const dangling = join(home.path, "dangling.json");
  symlinkSync(join(home.path, "nowhere"), dangling);
  expect(await install(dangling)).toMatchObject({ code: 5, stderr: expect.stringContaining("does not exist") });
  if (process.getuid?.() === 0) {
    const foreign = join(home.path, "foreign.json");
    writeFileSync(foreign, SETTINGS);
    chownSync(foreign, 65534, 65534);
    expect(await install(foreign)).toMatchObject({ code: 5, stderr: expect.stringContaining("another user") });
  } else console.log("not run: a file of another user needs root");
});

test("options that contradict each other are refused", async () => {
  using home = temporaryHome();
  for (const args of [
    [],
    ["--yes", "--", "x"],
    ["--install", "zed", "--uninstall", "zed"],
    ["--uninstall", "zed", "--", "x"],
    ["--install", "vim"],
  ])
    expect(await home.run(["wrap", ...args])).toMatchObject({ code: 2, stdout: "" });
  const missing = await home.run(["wrap", "--install", "zed", "--name", "None", "--yes"]);
  expect(missing).toMatchObject({ code: 3, stderr: expect.stringContaining('no agent "None"') });
});

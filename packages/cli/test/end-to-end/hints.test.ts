import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { dialects, openStore } from "holdfast";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bin, temporaryHome } from "../command.ts";
import { Terminal, whyNoTerminal } from "../screen/terminal.ts";
import { speakIn } from "../sessions.ts";

/** Every command that the user is told to type is typed: in another folder, with nothing but the hint to go by. */

const home = temporaryHome();
/** It takes quotes to type. */
const store = join(home.path, "the store's");
const env = { HOLDFAST_STORE: undefined };
let idle = "";
let busy = "";
let foreign = "";
let anthropic = "";
const empty = join(home.path, "empty");

beforeAll(async () => {
  const programs = join(home.path, "programs");
  mkdirSync(programs);
  writeFileSync(join(programs, "holdfast"), `#!/bin/sh\nexec '${process.execPath}' '${bin}' "$@"\n`);
  chmodSync(join(programs, "holdfast"), 0o755);
  mkdirSync(empty);
  const spoken = { prompt: "which river", answer: "the long one", cwd: home.work };
  [idle, busy] = (await speakIn(store, spoken, spoken)) as [string, string];
  await using opened = await openStore(store);
  await using made = await opened.create({ dialect: { ...dialects.anthropic, name: "unheard-of" } });
  foreign = made.id;
  await using other = await opened.create({ dialect: "anthropic" });
  anthropic = other.id;
});
afterAll(() => home[Symbol.dispose]());

/** A session whose turn was killed. */
async function killed(): Promise<string> {
  const slow = { ...env, HOLDFAST_OFFLINE_DELAY_MS: "50" };
  const child = home.start(["run", "--json", "tell me a story of 400 lines", "--store", store], { env: slow });
  let id = "";
  for await (const line of createInterface(child.stdout)) {
    const event = JSON.parse(line) as { readonly type: string; readonly session: string };
    if (event.type === "session") id = event.session;
    if (event.type === "turn.started") break;
  }
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
  return id;
}

/** Runs the command with the store given by a relative path, and returns everything it says. */
const said = (...args: string[]): Promise<string> => saidIn(home.work, ...args);

async function saidIn(cwd: string, ...args: string[]): Promise<string> {
  const { stdout, stderr } = await home.run([...args, "--store", "../the store's"], { cwd, env });
  return stdout + stderr;
}

/** The commands in a text: in quotes, or after a colon up to the end of the line. */
function commandsIn(text: string): string[] {
  return [...text.matchAll(/"(holdfast [^"]+)"|: (holdfast .+)$/gm)].map(([, quoted, last]) => (quoted ?? last)!);
}

const typedEnv = {
  ...{ HOME: home.path, XDG_STATE_HOME: home.env["XDG_STATE_HOME"]!, HOLDFAST_CONFIG: "" },
  ...{ HOLDFAST_OFFLINE_DELAY_MS: "0", PATH: `${join(home.path, "programs")}:${process.env["PATH"]}` },
};

function type(hint: string): { readonly code: number | null; readonly out: string } {
  const command = hint.replace("tail -f", "tail").replace("<id>", idle).replace("<title>", "'a title'");
  const { status, stdout, stderr } = spawnSync("sh", ["-c", command.replace(/ \| jq .*/, "")], {
    ...{ cwd: "/", encoding: "utf8", env: typedEnv, timeout: 60_000 },
  });
  return { code: status, out: stdout + stderr };
}

interface Situation {
  readonly what: string;
  readonly say: () => Promise<string>;
  readonly commands: readonly string[];
  readonly code: number;
}

const situations = (
  [
    ["a killed turn", async () => said("show", await killed()), ["run"]],
    ["a turn that fails", () => said("run", "fail: 401"), ["run"], 6],
    ["a prompt after a killed turn", async () => said("run", "--resume", await killed(), "list ."), ["run"]],
    ["--continue where nothing is", () => saidIn(empty, "run", "--continue", "hello"), ["ls"]],
    ["--title for an old session", () => said("run", "--resume", idle, "--title", "x", "hello"), ["rename"]],
    ["an unknown id", () => said("show", "ffff0000"), ["ls"]],
    ["an unknown id in the trash", () => said("restore", "ffff0000"), ["trash"]],
    ["an unknown turn", () => said("fork", idle, "--at", "99"), ["show"]],
    ["an unknown message", () => said("fork", idle, "--at", "nonsense"), ["show"]],
    ["an unknown dialect", () => said("show", foreign), ["tail", "export"]],
    ["the same, to continue it", () => said("run", "--resume", foreign, "hello"), ["tail", "export"]],
    ["another agent's dialect", () => said("run", "--resume", anthropic, "hello"), ["show", "export"]],
    ["a deleted session", async () => said("rm", await killed()), ["restore"]],
    [
      "a session in use",
      async () => {
        await using opened = await openStore(store);
        await using _held = await opened.resume(busy);
        return await said("run", "--resume", busy, "hello");
      },
      ["tail", "fork", "resume"],
    ],
    [
      "output that cannot be written",
      async () => {
        const shell = `'${process.execPath}' '${bin}' run 'list .' > /dev/full`;
        const options = { cwd: home.work, env: { ...typedEnv, HOLDFAST_STORE: "../the store's" } };
        return spawnSync("sh", ["-c", shell], { ...options, encoding: "utf8" }).stderr;
      },
      ["show"],
    ],
  ] as const
).map(([what, say, commands, code = 0]): Situation => ({ what, say, commands, code }));

test.each(situations)("$what", async ({ say, commands: expected, code: expectedCode }) => {
  const text = await say();
  const commands = commandsIn(text);
  expect(
    commands.map((command) => command.split(" ")[1]),
    text,
  ).toEqual(expected);
  for (const command of commands.filter((one) => !one.startsWith("holdfast resume"))) {
    const { code, out } = type(command);
    expect(code, `${command}\n${out}`).toBe(expectedCode);
  }
});

test("where there is no store, the command that shows the address shows this one", async () => {
  const { stderr } = await home.run(["show", "latest", "--store", "none here"], { env });
  const [config] = commandsIn(stderr);
  expect(type(config!).out).toContain(join(home.work, "none here"));
});

test.skipIf(whyNoTerminal)("a restored session is resumed in a terminal", async () => {
  await said("rm", idle);
  const [command] = commandsIn(await said("restore", idle));
  const words = `export PATH='${typedEnv.PATH}'; cd '${home.work}'; ${command}`;
  await using terminal = await Terminal.open([], { cwd: "/", env: typedEnv, command: ["sh", "-c", words] });
  await terminal.until(/the long one|not found|FOLDER|needs/);
  expect(await terminal.screen()).toContain("the long one");
});

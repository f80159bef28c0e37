import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { bin, type Home, temporaryHome } from "../command.ts";
import { eventually, processesWith, reading, startRun } from "./run-lines.ts";

interface Terminal {
  readonly child: ChildProcess;
  /** All that stands on the screen so far. */
  screen(): string;
  type(keys: string): void;
  readonly ended: Promise<number | null>;
}

/** The command at a terminal of its own. The end is that of the shell: 128 and the number for a signal. */
function atTerminal(home: Home, args: readonly string[]): Terminal {
  const words = [process.execPath, bin, ...args].map((word) => `'${word}'`).join(" ");
  const child = spawn("script", ["-qfec", words, "/dev/null"], {
    cwd: home.work,
    env: { ...process.env, ...home.env, HOLDFAST_CONFIG: "", HOLDFAST_OFFLINE_DELAY_MS: "0", NO_COLOR: "1" },
  });
  let text = "";
  child.stdout!.setEncoding("utf8").on("data", (piece: string) => {
    text += piece;
  });
  const ended = once(child, "close").then(([code]) => code as number | null);
  return { child, screen: () => text, type: (keys) => void child.stdin!.write(keys), ended };
}

async function only(home: Home): Promise<{ id: string; status: string }> {
  const { stdout } = await home.run(["ls", "--json"]);
  return JSON.parse(stdout) as { id: string; status: string };
}

const COMMAND = "echo ran >> log.txt";
const ran = (home: Home): string =>
  existsSync(join(home.work, "log.txt")) ? readFileSync(join(home.work, "log.txt"), "utf8") : "";

/** Waits for permission, and is killed. */
async function killedWaiting(home: Home): Promise<string> {
  // Known by its title among all that run here.
  const terminal = atTerminal(home, ["run", "--title", home.path, `run ${COMMAND}`]);
  await eventually(() => terminal.screen().includes("Enter: n)"));
  // The command alone: without its terminal it would be hung up before it is killed.
  const [command, ...others] = processesWith(`${bin}\0run\0--title\0${home.path}`);
  expect(others).toEqual([]);
  process.kill(command!, "SIGKILL");
  await terminal.ended;
  const { id, status } = await only(home);
  expect(status).toBe("waiting");
  expect((await reading(home, id)).interruption?.calls).toMatchObject([{ name: "shell", state: "awaiting" }]);
  return id;
}

test.concurrent("R7: without a terminal what no rule allows is denied, the flag is named, exit 7", async () => {
  using home = temporaryHome();
  const { code, stderr } = await home.run(["run", `run ${COMMAND}`]);
  expect(code).toBe(7);
  expect(stderr).toContain(`--allow 'shell(${COMMAND})'`);
  expect(ran(home)).toBe("");
  expect(await home.run(["run", "--allow", `shell(${COMMAND})`, `run ${COMMAND}`])).toMatchObject({ code: 0 });
  expect(ran(home)).toBe("ran\n");
});

test.concurrent("what is denied to a sub-agent is told too, with the flag: exit 7", async () => {
  using home = temporaryHome();
  const { code, stderr } = await home.run(["run", "--allow", "task", `delegate: run ${COMMAND}`]);
  expect(stderr).toContain(`--allow 'shell(${COMMAND})'`);
  expect(code).toBe(7);
  expect(ran(home)).toBe("");
});

test.concurrent("C37: killed while it waits it comes back as waiting; approved by another process it runs once", async () => {
  using home = temporaryHome();
  const id = await killedWaiting(home);
  const { code, stderr } = await home.run(["run", "--resume", id, "--finish", "--allow", `shell(${COMMAND})`]);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(ran(home)).toBe("ran\n");
  expect(await only(home)).toEqual(expect.objectContaining({ status: "idle" }));
});

test.concurrent("C37: killed while it waits; a person approves it in another process, and it runs once", async () => {
  using home = temporaryHome();
  const id = await killedWaiting(home);
  const terminal = atTerminal(home, ["run", "--resume", id, "--finish"]);
  await eventually(() => terminal.screen().includes("Enter: n)"));
  expect(ran(home)).toBe("");
  terminal.type("y\r");
  expect(await terminal.ended).toBe(0);
  expect(ran(home)).toBe("ran\n");
});

test.concurrent("C37: killed while it waits; where nobody can be asked it is denied for good, with the flag, and never runs", async () => {
  using home = temporaryHome();
  const id = await killedWaiting(home);
  const { code, stderr } = await home.run(["run", "--resume", id, "--finish"]);
  expect(code).toBe(7);
  expect(stderr).toContain(`--allow 'shell(${COMMAND})'`);
  expect(ran(home)).toBe("");
  expect((await reading(home, id)).interruption).toBeNull();
});

test.concurrent("R7: where nobody can be asked a new prompt closes what waited: it did not run, and that is said, also with --quiet", async () => {
  using home = temporaryHome();
  const id = await killedWaiting(home);
  const { code, stderr } = await home.run([
    ...["run", "--quiet", "--resume", id, "--allow", "shell", "--allow", "write", "write a.txt: else"],
  ]);
  expect(code).toBe(0);
  expect(stderr).toContain(`waiting for approval and stays unfinished. Did not run: shell: ${COMMAND}`);
  expect(ran(home)).toBe("");
});

test.concurrent("R7: at a terminal a new prompt waits until the question that was open is answered", async () => {
  using home = temporaryHome();
  const id = await killedWaiting(home);
  const terminal = atTerminal(home, ["run", "--continue", "--allow", "write", "write a.txt: else"]);
  await eventually(() => terminal.screen().includes("Enter: n)"));
  expect(existsSync(join(home.work, "a.txt"))).toBe(false);
  terminal.type("y\r");
  expect(await terminal.ended).toBe(0);
  expect(ran(home)).toBe("ran\n");
  expect(readFileSync(join(home.work, "a.txt"), "utf8")).toBe("else\n");
  expect((await reading(home, id)).interruption).toBeNull();
});

test.concurrent("at a terminal: no is a no, and always counts for the session, also after a restart", async () => {
  using home = temporaryHome();
  const no = atTerminal(home, ["run", `run ${COMMAND}`]);
  await eventually(() => no.screen().includes("Enter: n)"));
  no.type("n\r");
  expect(await no.ended).toBe(7);
  expect(ran(home)).toBe("");
  const { id } = await only(home);
  const always = atTerminal(home, ["run", "--resume", id, `run ${COMMAND}`]);
  await eventually(() => always.screen().includes("Enter: n)"));
  always.type("a\r");
  expect(await always.ended).toBe(0);
  expect(await home.run(["run", "--resume", id, `run ${COMMAND}`])).toMatchObject({ code: 0 });
  expect(ran(home)).toBe("ran\nran\n");
});

test.concurrent("at a terminal: all of the command is shown, with its control characters; what was typed before the question is no answer, and Enter is a no", async () => {
  using home = temporaryHome();
  const hidden = `echo harmless\u001b[2K\u202e; ${COMMAND} # ${"x".repeat(300)} the end`;
  const gate = "until test -e go; do sleep 0.05; done";
  const terminal = atTerminal(home, ["run", "--allow", `shell(${gate})`, `1. run ${gate} 2. run ${hidden}`]);
  await eventually(() => processesWith(gate).length > 0);
  terminal.type("y\ryes\r");
  // The terminal echoes it: it waits to be read.
  await eventually(() => terminal.screen().includes("yes\r\n"));
  writeFileSync(join(home.work, "go"), "");
  await eventually(() => terminal.screen().includes("Enter: n)"));
  expect(terminal.screen()).toContain(
    `command: echo harmless<U+001B>[2K<U+202E>; ${COMMAND} # ${"x".repeat(300)} the end`,
  );
  expect(terminal.screen()).toContain('"always" allows: exactly this command');
  terminal.type("\r");
  expect(await terminal.ended).toBe(7);
  expect(ran(home)).toBe("");
});

test.concurrent("at a terminal: of a very long request it is said how much is not shown, and in which file all of it is", async () => {
  using home = temporaryHome();
  const command = `echo ${"x".repeat(100_000)}; ${COMMAND}`;
  const terminal = atTerminal(home, ["run", `run ${command}`]);
  await eventually(() => terminal.screen().includes("Enter: n)"));
  const [, bytes, file] = /… \d+ lines? \((\d+) bytes\) not shown. Full request: (\S+)/.exec(terminal.screen())!;
  const whole = readFileSync(file!, "utf8");
  expect(whole).toContain(`command: ${command}\n`);
  expect(whole.length - Number(bytes)).toBe(64 * 1024);
  expect(statSync(file!).mode & 0o777).toBe(0o600);
  terminal.type("yes\r");
  await terminal.ended;
  expect(ran(home)).toBe("ran\n");
  expect(existsSync(file!)).toBe(false);
});

test.concurrent("at a terminal: a path that is swapped for a link while the question stands is not written through", async () => {
  using home = temporaryHome();
  const [sub, precious] = [join(home.work, "sub"), join(home.path, "precious")];
  for (const folder of [sub, precious]) mkdirSync(folder);
  const terminal = atTerminal(home, ["run", "write sub/a.txt: evil"]);
  await eventually(() => terminal.screen().includes("Enter: n)"));
  expect(terminal.screen()).toMatch(/real path: .*\/sub\/a\.txt\r\n {2}file: new\r\n[\s\S]*│ evil↵/);
  rmdirSync(sub);
  symlinkSync(precious, sub);
  terminal.type("y\r");
  // The model tries again, and the person is asked again, with where it leads now.
  await eventually(() => terminal.screen().split("Enter: n)").length === 3);
  expect(terminal.screen()).toMatch(/write failed: .*Not run: Its path now leads to .*precious/);
  expect(terminal.screen()).toMatch(/real path: .*\/precious\/a\.txt\r\n/);
  terminal.type("no\r");
  await terminal.ended;
  expect(existsSync(join(precious, "a.txt"))).toBe(false);
});

test.concurrent("at a terminal: Ctrl+C at the question leaves it waiting and ends by SIGINT; so does the end of input, with exit 7", async () => {
  using home = temporaryHome();
  const first = atTerminal(home, ["run", `run ${COMMAND}`]);
  await eventually(() => first.screen().includes("Enter: n)"));
  first.type("\x03");
  expect(await first.ended).toBe(130);
  const { id, status } = await only(home);
  expect(status).toBe("waiting");
  const second = atTerminal(home, ["run", "--resume", id, "--finish"]);
  await eventually(() => second.screen().includes("Enter: n)"));
  second.type("\x04");
  expect(await second.ended).toBe(7);
  expect(second.screen()).not.toMatch(/\n\s+at /);
  expect((await only(home)).status).toBe("waiting");
  expect(ran(home)).toBe("");
});

test.concurrent("R7: a denied call beside allowed ones: those run, that one does not, and the answer is valid", async () => {
  using home = temporaryHome();
  const run = startRun(home, [
    "--allow",
    "write(a.txt)",
    "1. write a.txt: one 2. write b.txt: two 3. append a.txt: three",
  ]);
  const { session } = await run.until("session");
  expect(await run.ended).toMatchObject({ code: 7 });
  expect(existsSync(join(home.work, "b.txt"))).toBe(false);
  expect((await reading(home, session)).interruption).toBeNull();
});

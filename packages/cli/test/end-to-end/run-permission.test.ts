import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
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
  await eventually(() => terminal.screen().includes("Allow it?"));
  for (const pid of processesWith(home.path)) process.kill(pid, "SIGKILL");
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
  await eventually(() => terminal.screen().includes("Allow it?"));
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
  expect(stderr).toContain(`waiting for approval, and is left: it did not run shell: ${COMMAND}`);
  expect(ran(home)).toBe("");
});

test.concurrent("R7: at a terminal a new prompt waits until the question that was open is answered", async () => {
  using home = temporaryHome();
  const id = await killedWaiting(home);
  const terminal = atTerminal(home, ["run", "--continue", "--allow", "write", "write a.txt: else"]);
  await eventually(() => terminal.screen().includes("Allow it?"));
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
  await eventually(() => no.screen().includes("Allow it?"));
  no.type("n\r");
  expect(await no.ended).toBe(7);
  expect(ran(home)).toBe("");
  const { id } = await only(home);
  const always = atTerminal(home, ["run", "--resume", id, `run ${COMMAND}`]);
  await eventually(() => always.screen().includes("Allow it?"));
  always.type("a\r");
  expect(await always.ended).toBe(0);
  expect(await home.run(["run", "--resume", id, `run ${COMMAND}`])).toMatchObject({ code: 0 });
  expect(ran(home)).toBe("ran\nran\n");
});

test.concurrent("at a terminal: Ctrl+C at the question leaves it waiting and ends by SIGINT; the end of input is a no", async () => {
  using home = temporaryHome();
  const first = atTerminal(home, ["run", `run ${COMMAND}`]);
  await eventually(() => first.screen().includes("Allow it?"));
  first.type("\x03");
  expect(await first.ended).toBe(130);
  const { id, status } = await only(home);
  expect(status).toBe("waiting");
  const second = atTerminal(home, ["run", "--resume", id, "--finish"]);
  await eventually(() => second.screen().includes("Allow it?"));
  second.type("\x04");
  expect(await second.ended).toBe(7);
  expect(second.screen()).not.toMatch(/\n\s+at /);
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

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Home, temporaryHome } from "../command.ts";
import { chat } from "../screen/chat.ts";
import { eventually, reading, recordsOf, startRun } from "./run-lines.ts";

/** Changes files, and goes on. */
const WORK = "echo two >> a.txt; rm gone.txt; mkdir b; echo n > b/new.txt; touch ready; sleep 300";
const SINCE = "changed in the folder since it began: a.txt (+1 -0), b/new.txt (new), gone.txt (removed), ready (new)";

function git(home: Home, ...args: readonly string[]): void {
  const who = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
  execFileSync("git", ["-C", home.work, ...who, ...args], { stdio: "pipe" });
}

function fill(home: Home, isGit: boolean): void {
  writeFileSync(join(home.work, "a.txt"), "one\n");
  writeFileSync(join(home.work, "gone.txt"), "x\n");
  if (!isGit) return;
  git(home, "init", "-q");
  git(home, "add", "-A");
  git(home, "commit", "-qm", "first");
}

/** Runs a command and kills its agent, and then what is left of the command. */
async function killedIn(home: Home, command: string, env: Record<string, string> = {}): Promise<string> {
  const run = startRun(home, ["--allow", "shell", `run ${command}`], env);
  const { session } = await run.until("session");
  await eventually(() => existsSync(join(home.work, "ready")));
  run.child.kill("SIGKILL");
  await run.ended;
  const [call] = (await reading(home, session)).interruption!.calls;
  process.kill(-call!.process!.pid, "SIGKILL");
  return session;
}

/** What the model is told about the call. */
async function toldIn(home: Home, id: string): Promise<string> {
  const ended = (await recordsOf(home, id)).filter(({ kind }) => kind === "tool.ended");
  return String(ended.at(-1)?.["error"]);
}

for (const isGit of [true, false]) {
  test.concurrent(`a command is killed with its agent in a ${isGit ? "git" : "plain"} folder: the person and the model learn what has changed since`, async () => {
    using home = temporaryHome();
    fill(home, isGit);
    const id = await killedIn(home, WORK);
    const { stdout } = await home.run(["show", id]);
    expect(stdout.replaceAll(/\s+/g, " ")).toContain(`started, outcome unknown; ${SINCE}`);
    expect(stdout).toMatch(/a\.txt, since the call began:\n {4}one\n {2}\+ two\n/);
    const { account } = JSON.parse((await home.run(["show", id, "--json"])).stdout);
    expect(account.calls[0].changes.files.map(({ path }: { path: string }) => path)).toContain("b/new.txt");
    const finished = await home.run(["run", "--resume", id, "--finish", "--allow", "shell"]);
    expect(finished.stderr).toContain(SINCE);
    const told = await toldIn(home, id);
    expect(told).toContain(`C${SINCE.slice(1)}.\n`);
    expect(told).toContain("a.txt:\n  one\n+ two\n");
    // Nothing was put back, and it did not run again.
    expect(readFileSync(join(home.work, "a.txt"), "utf8")).toBe("one\ntwo\n");
  });
}

test.concurrent("nothing has changed: that is said, and that it may have done something elsewhere", async () => {
  using home = temporaryHome();
  fill(home, true);
  writeFileSync(join(home.work, ".gitignore"), "ready\n");
  const id = await killedIn(home, "touch ready; sleep 300");
  expect((await home.run(["show", id])).stdout.replaceAll(/\s+/g, " ")).toContain(
    "started, outcome unknown; nothing in the folder has changed since it began",
  );
  await home.run(["run", "--resume", id, "--finish"]);
  expect(await toldIn(home, id)).toContain(
    "Nothing in the folder has changed since it began. What it may have done elsewhere is not known.",
  );
});

test.concurrent("a file that may hold secrets is named, and nothing of it is shown", async () => {
  using home = temporaryHome();
  fill(home, true);
  writeFileSync(join(home.work, ".env"), "KEY=hunter2\n");
  const id = await killedIn(home, "echo KEY=hunter3 > .env; touch ready; sleep 300");
  const { stdout } = await home.run(["show", id]);
  expect(stdout).toContain(".env (changed)");
  await home.run(["run", "--resume", id, "--finish"]);
  const told = await toldIn(home, id);
  expect(told).toContain(".env (changed)");
  // The command names the new one itself.
  expect(told).not.toContain("hunter2");
});

test.concurrent("a safe call notes nothing, and neither does one where git is missing", async () => {
  using home = temporaryHome();
  fill(home, true);
  const run = startRun(home, ["--allow", "shell", "--allow", "write", "1. read a.txt 2. write b.txt: b 3. run true"]);
  const { session } = await run.until("session");
  expect((await run.ended).code).toBe(0);
  const starts = (await recordsOf(home, session)).filter(({ kind }) => kind === "tool.started");
  expect(starts.map(({ name, before }) => [name, before !== undefined])).toEqual([
    ["read", false],
    ["write", false],
    ["shell", true],
  ]);
  const without = startRun(home, ["--allow", "shell", "run true"], { PATH: "/nowhere" });
  const { session: second } = await without.until("session");
  await without.ended;
  const [start] = (await recordsOf(home, second)).filter(({ kind }) => kind === "tool.started");
  expect(start!["before"]).toBeUndefined();
});

test.concurrent("chat says it in its panel, with the differences when asked", async (context) => {
  using home = temporaryHome();
  fill(home, true);
  await killedIn(home, WORK);
  await using terminal = await chat(context, home, ["--continue"]);
  await terminal.until(/changed in the folder since it began:\s+a\.txt\s+\(\+1\s+-0\),/);
  await terminal.say("s");
  await terminal.untilAll(/a\.txt, since it began:\s+one\s+\+ two/);
});

for (const isGit of [true, false]) {
  test.concurrent(`restore-files in a ${isGit ? "git" : "plain"} folder: shows what it would change, puts back what was noted, and the model learns of it`, async () => {
    using home = temporaryHome();
    fill(home, isGit);
    writeFileSync(join(home.work, "run.sh"), "#!/bin/sh\n", { mode: 0o755 });
    const id = await killedIn(home, `${WORK.replace("touch ready", "rm run.sh; touch ready")}`);
    const unasked = await home.run(["restore-files", id]);
    expect(unasked.code).toBe(2);
    expect(unasked.stdout).toMatch(/gone\.txt comes back\n {2}\+ x\n/);
    expect(readFileSync(join(home.work, "a.txt"), "utf8")).toBe("one\ntwo\n");
    const { stdout, code } = await home.run(["restore-files", id, "--yes", "--json"]);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      restored: ["a.txt", "gone.txt", "run.sh"],
      left: [
        { path: "b/new.txt", why: "it was not there before" },
        { path: "ready", why: "it was not there before" },
      ],
    });
    expect(readFileSync(join(home.work, "a.txt"), "utf8")).toBe("one\n");
    expect(readFileSync(join(home.work, "gone.txt"), "utf8")).toBe("x\n");
    expect(statSync(join(home.work, "run.sh")).mode & 0o100).toBe(0o100);
    expect((await home.run(["show", id])).stdout.replaceAll(/\s+/g, " ")).toContain(
      "changed in the folder since it began: b/new.txt (new), ready (new) (the user has put back 3 files since)",
    );
    await home.run(["run", "--resume", id, "--finish"]);
    expect(await toldIn(home, id)).toContain("(the user has put back 3 files since)");
    // There is no such call any more.
    const again = await home.run(["restore-files", id, "--yes"]);
    expect(again.code).toBe(1);
    expect(again.stderr).toContain("Nothing can be put back");
  });
}

test.concurrent("restore-files is refused while a process of the dead agent runs, or an agent has the session open", async () => {
  using home = temporaryHome();
  fill(home, true);
  const run = startRun(home, ["--allow", "shell", `run ${WORK}`]);
  const { session } = await run.until("session");
  await eventually(() => existsSync(join(home.work, "ready")));
  expect((await home.run(["restore-files", session, "--yes"])).code).toBe(4);
  run.child.kill("SIGKILL");
  await run.ended;
  const refused = await home.run(["restore-files", session, "--yes"]);
  expect(refused.code).toBe(4);
  const [call] = (await reading(home, session)).interruption!.calls;
  expect(refused.stderr).toContain(`Process ${call!.process!.pid}, which the dead agent started, still runs`);
  expect(readFileSync(join(home.work, "a.txt"), "utf8")).toBe("one\ntwo\n");
  process.kill(-call!.process!.pid, "SIGKILL");
  await eventually(async () => (await home.run(["restore-files", session, "--yes"])).code === 0);
  expect(readFileSync(join(home.work, "a.txt"), "utf8")).toBe("one\n");
});

test.concurrent("where nobody has worked with the session, no folder is looked at, and nothing is put back", async () => {
  using home = temporaryHome();
  fill(home, true);
  const id = await killedIn(home, WORK);
  const env = { XDG_STATE_HOME: join(home.path, "other state") };
  expect((await home.run(["show", id], { env })).stdout).not.toContain("changed in the folder");
  expect((await home.run(["restore-files", id, "--yes"], { env })).stderr).toContain("Nothing can be put back");
  expect(readFileSync(join(home.work, "a.txt"), "utf8")).toBe("one\ntwo\n");
});

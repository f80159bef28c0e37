import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { bin, temporaryHome } from "../command.ts";
import { eventually, processesWith, reading, recordsOf, startRun } from "./run-lines.ts";

const SLOW = { HOLDFAST_OFFLINE_DELAY_MS: "20" };

for (const signal of ["SIGTERM", "SIGHUP"] as const) {
  test(`C6: ${signal} while the answer streams is recorded, what was said is kept, and the parent sees it`, async () => {
    using home = temporaryHome();
    const run = startRun(home, ["tell me a story of 400 lines"], SLOW);
    const { session } = await run.until("session");
    for (let n = 0; n < 15; n++) await run.until("text");
    run.child.kill(signal);
    expect(await run.ended).toMatchObject({ code: null, signal });
    const { interruption } = await reading(home, session);
    expect(interruption?.how).toEqual({ kind: "signal", signal });
    expect(interruption?.draft?.text).not.toBe("");
  });

  test(`C6: ${signal} with a command in flight ends the command's whole group, begins nothing new, and is recorded`, async () => {
    using home = temporaryHome();
    const mark = `4${Date.now() % 1_000_000}`;
    const prompt = `1. run sleep ${mark} & sleep ${mark}; wait 2. run echo second >> second.txt`;
    const run = startRun(home, ["--allow", "shell", prompt]);
    const { session } = await run.until("session");
    await run.until("tool.started");
    await eventually(() => processesWith(`sleep\0${mark}`).length === 2);
    run.child.kill(signal);
    expect(await run.ended).toMatchObject({ code: null, signal });
    expect(processesWith(`sleep\0${mark}`)).toEqual([]);
    expect(existsSync(join(home.work, "second.txt"))).toBe(false);
    const { interruption } = await reading(home, session);
    expect(interruption?.how).toEqual({ kind: "signal", signal });
    const starts = (await recordsOf(home, session)).filter(({ kind }) => kind === "tool.started");
    expect(new Set(starts.map((record) => (record as unknown as { call: string }).call)).size).toBe(1);
  });
}

test.concurrent("C6: while a stubborn command is being ended, no other is begun, also not by a sub-agent; what was open is taken up", async () => {
  using home = temporaryHome();
  const mark = `7${Date.now() % 1_000_000}`;
  // The first ends only when it is killed, so the signal finds both at work.
  const prompt = `delegate: 1. run trap '' TERM; sleep 300; echo ${mark} 2. run sleep ${mark} && echo second >> second.txt || echo second >> second.txt`;
  const run = startRun(home, ["--allow", "shell", prompt]);
  const { session } = await run.until("session");
  await eventually(() => processesWith(`sleep\0${mark}`).length === 1 && processesWith(`echo ${mark}`).length > 0);
  run.child.kill("SIGTERM");
  expect(await run.ended).toMatchObject({ code: null, signal: "SIGTERM" });
  expect(existsSync(join(home.work, "second.txt"))).toBe(false);
  const { interruption } = await reading(home, session);
  expect(interruption?.how).toEqual({ kind: "signal", signal: "SIGTERM" });
  expect(interruption?.calls.map(({ name, state }) => ({ name, state }))).toEqual([
    { name: "task", state: "outcome-unknown" },
    { name: "task", state: "outcome-unknown" },
  ]);
});

test.concurrent("C11: SIGINT stops the turn, keeps it, ends the command, and the parent sees SIGINT", async () => {
  using home = temporaryHome();
  const mark = `5${Date.now() % 1_000_000}`;
  const run = startRun(home, ["--allow", "shell", `run sleep ${mark}`]);
  const { session } = await run.until("session");
  await run.until("tool.started");
  await eventually(() => processesWith(`sleep\0${mark}`).length === 1);
  run.child.kill("SIGINT");
  expect(await run.ended).toMatchObject({ code: null, signal: "SIGINT" });
  expect(run.events.at(-1)).toMatchObject({ type: "turn.ended", outcome: "aborted", by: "user" });
  expect(processesWith(`sleep\0${mark}`)).toEqual([]);
  expect((await reading(home, session)).interruption?.how).toEqual({ kind: "aborted", by: "user" });
});

test.concurrent("SIGINT while --finish waits for a process that outlived its agent ends the waiting, and leaves the process", async () => {
  using home = temporaryHome();
  const mark = `6${Date.now() % 1_000_000}`;
  const first = startRun(home, ["--allow", "shell", `run sleep ${mark}`]);
  const { session } = await first.until("session");
  await first.until("tool.started");
  await eventually(() => processesWith(`sleep\0${mark}`).length === 1);
  first.child.kill("SIGKILL");
  await first.ended;
  const [outlived] = processesWith(`sleep\0${mark}`);
  const second = startRun(home, ["--resume", session, "--finish"]);
  await second.until("notice");
  second.child.kill("SIGINT");
  expect(await second.ended).toMatchObject({ signal: "SIGINT" });
  expect(second.events.at(-1)).toMatchObject({ type: "turn.ended", outcome: "aborted", by: "user" });
  expect(processesWith(`sleep\0${mark}`)).toEqual([outlived]);
  const third = await home.run(["run", "--resume", session, "--finish", "--stop-processes"]);
  expect(third).toMatchObject({ code: 0 });
  expect(processesWith(`sleep\0${mark}`)).toEqual([]);
});

test.concurrent("C13: a reader that goes away is no cancel: the turn is recorded to its end", async () => {
  using home = temporaryHome();
  const prompt = "1. write a.txt: one 2. append a.txt: two 3. run echo three >> a.txt";
  const command = `"${process.execPath}" "${bin}" run --json --allow write --allow edit --allow shell "${prompt}" | head -1`;
  const shell = spawn("sh", ["-c", command], {
    cwd: home.work,
    env: { ...process.env, ...home.env, HOLDFAST_CONFIG: "", HOLDFAST_OFFLINE_DELAY_MS: "0" },
  });
  let line = "";
  shell.stdout.setEncoding("utf8").on("data", (text: string) => {
    line += text;
  });
  await new Promise((closed) => shell.once("close", closed));
  const { session } = JSON.parse(line) as { session: string };
  await eventually(async () => (await reading(home, session)).holder === null);
  const { interruption, entries } = await reading(home, session);
  expect(interruption).toBeNull();
  expect(entries.at(-1)?.message.role).toBe("assistant");
  expect(readFileSync(join(home.work, "a.txt"), "utf8")).toBe("one\ntwo\nthree\n");
});

test.concurrent("C13: a parent that dies does not take the turn with it", async () => {
  using home = temporaryHome();
  const prompt = "1. run sleep 0.3 2. write a.txt: done";
  const command = `"${process.execPath}" "${bin}" run --json --allow write --allow shell "${prompt}" & echo started; sleep 60`;
  const parent = spawn("sh", ["-c", command], {
    cwd: home.work,
    env: { ...process.env, ...home.env, HOLDFAST_CONFIG: "", HOLDFAST_OFFLINE_DELAY_MS: "0" },
  });
  let out = "";
  parent.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
  });
  await eventually(() => out.includes("tool.started"));
  parent.kill("SIGKILL");
  parent.stdout.destroy();
  await eventually(() => existsSync(join(home.work, "a.txt")));
  const session = /"session":"([^"]+)"/.exec(out)![1]!;
  await eventually(async () => (await reading(home, session)).holder === null);
  expect((await reading(home, session)).interruption).toBeNull();
});

test.concurrent("a prompt on standard input; the answer alone on standard output", async () => {
  using home = temporaryHome();
  const { code, stdout, stderr } = await home.run(["run", "--allow", "write"], { input: "write a.txt: from a pipe\n" });
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(readFileSync(join(home.work, "a.txt"), "utf8")).toBe("from a pipe\n");
  expect(stdout).toContain("a.txt");
  expect(stdout.endsWith("\n")).toBe(true);
  expect(await home.run(["run"], { input: " \n" })).toMatchObject({ code: 2 });
});

import { spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { join } from "node:path";
import { Machine } from "@holdfast/testkit/internal/machine";
import { expect, test } from "vitest";
import { anthropic } from "../../../adapters/test/loopback/anthropic.ts";
import { openaiChat } from "../../../adapters/test/loopback/openai-chat.ts";
import { loopback } from "../../../adapters/test/loopback/server.ts";
import { bin, ended, temporaryHome } from "../command.ts";
import { eventually, reading, startRun } from "./run-lines.ts";

const isRoot = process.getuid?.() === 0;

test.concurrent("C19: a full disk in mid-turn: no tool runs after it, kind words, exit 5; with space it goes on, nothing twice", async (context) => {
  if (!isRoot) context.skip("not run: only root can mount a disk");
  await using machine = new Machine();
  const disk = await machine.tmpfs("full", 1024 * 1024);
  using home = temporaryHome();
  const env = { HOLDFAST_STORE: join(disk, "store") };
  // The third waits until the disk is full.
  const commands = Array.from({ length: 12 }, (_, n) => {
    return `${n + 1}. run ${n === 2 ? "until test -e go; do sleep 0.05; done; " : ""}echo line ${n} >> log.txt`;
  });
  const run = startRun(home, ["--allow", "shell", commands.join("\n")], env);
  const { session } = await run.until("session");
  await run.until("tool.ended");
  await run.until("tool.ended");
  const ballast = join(disk, "ballast");
  fill(ballast);
  writeFileSync(join(home.work, "go"), "");
  const ended = await run.ended;
  expect(ended.code).toBe(5);
  expect(ended.stderr).not.toMatch(/ at .*:\d+:\d+/);
  expect(run.events.at(-1)).toMatchObject({ type: "turn.ended", outcome: "failed", error: { code: "STORE_FULL" } });
  const before = linesIn(join(home.work, "log.txt"));
  expect(before).toBeLessThan(12);
  const still = await home.run(["run", "--resume", session, "--finish", "--allow", "shell"], { env });
  expect(still.code).toBe(5);
  expect(still.stderr.match(/STORE_FULL|no space|full/gi)?.length ?? 0).toBeGreaterThan(0);
  rmSync(ballast);
  const finished = await home.run(["run", "--resume", session, "--finish", "--allow", "shell"], { env });
  expect(finished, finished.stderr).toMatchObject({ code: 0 });
  const text = readFileSync(join(home.work, "log.txt"), "utf8");
  expect(text).toBe(Array.from({ length: 12 }, (_, n) => `line ${n}\n`).join(""));
});

function fill(path: string): void {
  const file = openSync(path, "w");
  const block = Buffer.alloc(4096);
  try {
    for (;;) writeSync(file, block);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  } finally {
    closeSync(file);
  }
}

function linesIn(path: string): number {
  return existsSync(path) ? readFileSync(path, "utf8").split("\n").length - 1 : 0;
}

test.concurrent("a full disk before the first prompt: exit 5, said once", async (context) => {
  if (!isRoot) context.skip("not run: only root can mount a disk");
  await using machine = new Machine();
  const disk = await machine.tmpfs("full", 512 * 1024);
  using home = temporaryHome();
  const env = { HOLDFAST_STORE: join(disk, "store") };
  expect(await home.run(["run", "hello"], { env })).toMatchObject({ code: 0 });
  fill(join(disk, "ballast"));
  const { code, stderr } = await home.run(["run", "hello"], { env });
  expect(code).toBe(5);
  expect(stderr.match(/\[STORE_FULL\]/g)).toHaveLength(1);
});

test.concurrent("C15: a session that another process has is refused with who has it: exit 4", async () => {
  using home = temporaryHome();
  const run = startRun(home, ["hang"]);
  const { session } = await run.until("session");
  await run.until("turn.started");
  const second = await home.run(["run", "--resume", session, "hello"]);
  expect(second.code).toBe(4);
  expect(second.stderr).toContain(String(run.child.pid));
  const ls = await home.run(["ls", "--json"]);
  expect(JSON.parse(ls.stdout)).toMatchObject({ id: session, status: "running" });
  const latest = await home.run(["run", "--continue", "hello"]);
  expect(latest.code).toBe(4);
  expect(latest.stderr).toContain(String(run.child.pid));
  run.child.kill("SIGKILL");
  await run.ended;
  expect(await home.run(["run", "--resume", session, "write a.txt: free", "--allow", "write"])).toMatchObject({
    code: 0,
  });
});

test.concurrent("C20: a damaged record is told of with its place and passed over, and the session goes on", async () => {
  using home = temporaryHome();
  const first = startRun(home, ["--allow", "write", "write a.txt: one"]);
  const { session } = await first.until("session");
  expect(await first.ended).toMatchObject({ code: 0 });
  const folder = join(home.store, "sessions", session);
  const segment = join(folder, readdirSync(folder).find((name) => name.endsWith(".jsonl"))!);
  const bytes = readFileSync(segment);
  const at = bytes.indexOf("tool.ended");
  writeFileSync(segment, Buffer.concat([bytes.subarray(0, at), Buffer.from("XXXX"), bytes.subarray(at + 4)]));
  const { size } = statSync(segment);
  const run = startRun(home, ["--resume", session, "--allow", "write", "write b.txt: two"]);
  const notice = await run.until("notice");
  expect(notice).toMatchObject({ level: "warning", text: expect.stringMatching(/bytes at \d+ of .*damaged/) });
  expect(await run.ended).toMatchObject({ code: 0 });
  expect(statSync(segment).size).toBeGreaterThanOrEqual(size);
  expect(readFileSync(join(home.work, "b.txt"), "utf8")).toBe("two\n");
});

test.concurrent("no key, no such provider, no such session, no prompt twice: words, codes, and nothing is begun", async () => {
  using home = temporaryHome();
  const cases: [string[], number, RegExp][] = [
    [["--model", "anthropic/claude-x", "hello"], 6, /ANTHROPIC_API_KEY/],
    [["--model", "nobody/x", "hello"], 2, /Unknown provider "nobody"/],
    [["--model", "compatible/x", "hello"], 2, /--base-url/],
    [["--resume", "01999999-9999-7999-8999-999999999999", "hello"], 3, /ls/],
    [["--finish"], 3, /No free session/],
    [["--continue", "hello"], 3, /No free session/],
    [["--finish", "hello"], 2, /--finish/],
    [["--stop-processes", "hello"], 2, /--finish/],
    [["--window-tokens", "many", "hello"], 2, /window-tokens/],
  ];
  for (const [args, code, words] of cases) {
    const ended = await home.run(["run", ...args]);
    expect(ended, `${args.join(" ")}: ${ended.stderr}`).toMatchObject({ code, stderr: expect.stringMatching(words) });
    expect(ended.stderr).not.toMatch(/\n\s+at /);
  }
  expect((await home.run(["ls", "--all", "--json"])).stdout).toBe("");
});

test.concurrent("a turn that completed is not finished again", async () => {
  using home = temporaryHome();
  expect(await home.run(["run", "hello"])).toMatchObject({ code: 0 });
  expect(await home.run(["run", "--finish"])).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("Nothing to finish"),
  });
});

const KEY = { ANTHROPIC_API_KEY: "none" };

test.concurrent("a server that is not there, does not know the model, or refuses the key: exit 6, recorded, and finished with another model", async () => {
  using home = temporaryHome();
  const closed = createServer().listen(0, "127.0.0.1");
  await new Promise((listening) => closed.once("listening", listening));
  const { port } = closed.address() as AddressInfo;
  await new Promise((done) => closed.close(done));
  const base = ["run", "--model", "anthropic/claude-test"];
  const gone = await home.run([...base, "write a.txt: at last"], {
    env: { ...KEY, ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}/v1` },
  });
  expect(gone).toMatchObject({ code: 6, stderr: expect.stringMatching(/does not respond/) });
  await using unknown = await loopback(anthropic, () => ({ status: 404, message: "model: claude-test" }));
  const env = { ...KEY, ANTHROPIC_BASE_URL: unknown.url };
  expect(await home.run([...base, "hello"], { env })).toMatchObject({
    code: 6,
    stderr: expect.stringMatching(/no model anthropic\/claude-test/),
  });
  await using refused = await loopback(anthropic, () => ({ status: 401, message: "invalid x-api-key" }));
  const denied = await home.run([...base, "write a.txt: at last"], {
    env: { ...KEY, ANTHROPIC_BASE_URL: refused.url },
  });
  expect(denied).toMatchObject({ code: 6, stderr: expect.stringMatching(/key/) });
  const finished = await home.run(["run", "--continue", "--finish", "--model", "offline", "--allow", "write"]);
  expect(finished, finished.stderr).toMatchObject({ code: 0 });
  expect(readFileSync(join(home.work, "a.txt"), "utf8")).toBe("at last\n");
});

test.concurrent("500 and 429 are asked again; a stream that is cut, malformed or fails ends the turn, keeps what was said, and is finished", async () => {
  using home = temporaryHome();
  const answer = { text: "It was a dark and stormy night, and the rain fell in torrents." };
  for (const end of ["cut", "malformed", "error"] as const) {
    let n = 0;
    await using server = await loopback(openaiChat, () => {
      n++;
      if (n === 1) return { status: 500, headers: { "retry-after-ms": "1" } };
      if (n === 2) return { status: 429, headers: { "retry-after-ms": "1" } };
      return n === 3 ? { answer, after: 6, end } : answer;
    });
    const args = ["--model", "compatible/test", "--base-url", server.url];
    const run = startRun(home, [...args, "tell me"]);
    const { session } = await run.until("session");
    const ended = await run.ended;
    expect(run.events.filter(({ type }) => type === "retry")).toEqual([
      { type: "retry", reason: "status 500" },
      { type: "retry", reason: "status 429" },
    ]);
    expect(ended.code, `${end}: ${JSON.stringify(run.events.at(-1))}`).toBe(6);
    const { interruption } = await reading(home, session);
    expect(interruption?.how.kind, end).toBe("failed");
    expect(interruption?.draft?.text, end).toMatch(/^It was/);
    const finished = await home.run(["run", "--resume", session, "--finish", ...args]);
    expect(finished, `${end}: ${finished.stderr}`).toMatchObject({ code: 0 });
    expect(finished.stdout).toContain("torrents.");
    expect(server.violations, end).toEqual([]);
    // What the failed attempt had said is not sent as the model's words.
    expect(JSON.stringify(server.requests.at(-1))).not.toContain("It was");
  }
});

test.concurrent("R9: a server that repeats its call ids: each call is its own, also a sub-agent's", async () => {
  using home = temporaryHome();
  const call = (name: string, input: unknown) => ({ calls: [{ id: "call_0", name, input }] });
  let parent = 0;
  await using server = await loopback(openaiChat, (body) => {
    const text = JSON.stringify(body["messages"]);
    if (text.includes("say one") && !text.includes("two steps")) return { text: "the first" };
    if (text.includes("say two") && !text.includes("two steps")) return { text: "the second" };
    parent++;
    if (parent === 1) return call("task", { prompt: "say one" });
    if (parent === 2) return call("task", { prompt: "say two" });
    return { text: `done: ${/the first/.test(text)} ${/the second/.test(text)}` };
  });
  const args = ["--model", "compatible/test", "--base-url", server.url, "--allow", "task"];
  const ended = await home.run(["run", ...args, "two steps"]);
  expect(ended, ended.stderr).toMatchObject({ code: 0 });
  expect(ended.stdout).toContain("done: true true");
});

test.concurrent("a server that hangs: SIGTERM ends the waiting, and the prompt is there", async () => {
  using home = temporaryHome();
  await using server = await loopback(anthropic, () => ({ answer: { text: "never" }, after: 0, end: "silence" }));
  const run = startRun(home, ["--model", "anthropic/claude-test", "hello"], { ...KEY, ANTHROPIC_BASE_URL: server.url });
  const { session } = await run.until("session");
  await eventually(() => server.requests.length > 0);
  run.child.kill("SIGTERM");
  expect(await run.ended).toMatchObject({ signal: "SIGTERM" });
  expect((await reading(home, session)).interruption?.prompt.message).toEqual({ role: "user", content: "hello" });
});

test.concurrent("output that cannot be written is no reason to lose the turn: it is recorded to its end, and said at the end", async () => {
  using home = temporaryHome();
  const command = `"${process.execPath}" "${bin}" run --allow write "1. write a.txt: one 2. append a.txt: two" --allow edit > /dev/full`;
  const shell = spawn("sh", ["-c", command], {
    cwd: home.work,
    env: { ...process.env, ...home.env, HOLDFAST_CONFIG: "" },
  });
  const { code, stderr } = await ended(shell);
  expect(code).toBe(1);
  expect(stderr).toMatch(/could not be written.*holdfast show/s);
  expect(stderr).not.toMatch(/\n\s+at /);
  expect(readFileSync(join(home.work, "a.txt"), "utf8")).toBe("one\ntwo\n");
  expect((await home.run(["ls", "--json"])).stdout).toContain('"status":"idle"');
});

test.concurrent("a turn that did not complete says how it is gone on with", async () => {
  using home = temporaryHome();
  const { code, stderr } = await home.run(["run", "fail: 401"]);
  expect(code).toBe(6);
  const [, id] = /holdfast run --resume (\S+) --finish/.exec(stderr) ?? [];
  expect((await home.run(["ls", "--json"])).stdout).toMatch(new RegExp(`"id":"[0-9a-f-]{28}${id}"`));
});

import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ended, type Home, temporaryHome } from "../command.ts";
import { accountsIn, leftIn, notesOf, promptsOf, taskAgent, victimsIn } from "../driver.ts";
import { eventually } from "./run-lines.ts";

const PROMPT = "Do all steps.";
const ALLOW = ["--allow", "shell(step *)"];

/** The arguments of a command that a hint tells people to type. */
async function typed(home: Home, text: string): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const line = /To finish the turn: (holdfast [^\n]*(?:\n[^\n]*--store [^\n]*)?)/.exec(text)?.[1];
  expect(line).toBeDefined();
  const { spawn } = await import("node:child_process");
  const bin = join(import.meta.dirname, "../../bundle/bin.js");
  // As a person would: in a shell.
  const script = `holdfast() { '${process.execPath}' '${bin}' "$@"; }; ${line}`;
  const child = spawn("/bin/sh", ["-c", script], {
    cwd: home.work,
    env: { PATH: process.env["PATH"], HOLDFAST_CONFIG: "", ...home.env },
  });
  child.stdin.end();
  return ended(child as never);
}

test("an agent is driven to the end of its turn: text to standard output, the rest to standard error", async () => {
  using home = temporaryHome();
  const agent = taskAgent(home, { steps: 2, asks: true });
  const { code, stdout, stderr } = await home.run(["run", "--agent", agent, PROMPT, ...ALLOW]);
  expect({ code, stdout }).toEqual({ code: 0, stdout: "I look. \nAll steps are done.\n" });
  expect(stderr).toContain("$ shell: step 1");
  expect(notesOf(home, "ledger")).toEqual(["begin 1", "end 1", "begin 2", "end 2"]);
  expect((await home.run(["ls"])).stdout).toContain(PROMPT);
  expect(await leftIn(home)).toEqual([]);

  // The same session goes on with another prompt, and a turn that is over is over.
  rmSync(join(home.path, "task/ledger"));
  expect((await home.run(["run", "--agent", agent, "--continue", "Once more.", "--quiet", ...ALLOW])).code).toBe(0);
  expect(await accountsIn(home)).toHaveLength(1);
  const again = await home.run(["run", "--agent", agent, "--continue", "--finish"]);
  expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining("Nothing to finish") });
});

test("--json prints the events of a run, of our own agent's kinds", async () => {
  using home = temporaryHome();
  const { stdout } = await home.run(["run", "--agent", taskAgent(home, { steps: 1 }), PROMPT, "--json"]);
  const events = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(events.map(({ type }) => type)).toEqual([
    ...["session", "turn.started", "text", "tool.started", "tool.ended", "text", "turn.ended"],
  ]);
  expect(events.at(-1)).toEqual({ type: "turn.ended", outcome: "completed", denied: 0 });
});

test("what no rule allows is denied, with the flag that allows it; a rule that denies wins", async () => {
  using home = temporaryHome();
  const agent = taskAgent(home, { steps: 2, asks: true });
  const first = await home.run(["run", "--agent", agent, PROMPT, "--allow", "shell(step 1)"]);
  expect(first).toMatchObject({ code: 7, stderr: expect.stringContaining("--allow 'shell(step 2)'") });
  expect(notesOf(home, "ledger")).toEqual(["begin 1", "end 1"]);
  const second = await home.run(["run", "--agent", agent, PROMPT, ...ALLOW, "--deny", "shell(step 2)"]);
  expect(second).toMatchObject({ code: 7, stderr: expect.stringContaining("a rule denies it") });
  expect(notesOf(home, "ledger")).toEqual(["begin 1", "end 1"]);
});

test("an agent that dies is started again and told what had happened; progress lets it die as often as it likes", async () => {
  using home = temporaryHome();
  const agent = taskAgent(home, { steps: 6, dies: "end", can: { sessionCapabilities: { resume: {} } } });
  const first = await home.run(["run", "--agent", agent, PROMPT]);
  expect(first.code).toBe(0);
  expect(notesOf(home, "starts").map((line) => line.split(" ")[1])).toEqual([
    "session/new",
    ...Array.from({ length: 6 }, () => "session/resume"),
  ]);
  rmSync(join(home.path, "task"), { recursive: true });
  expect(
    (await home.run(["run", "--agent", taskAgent(home, { steps: 2, dies: "begin 2", times: 1 }), PROMPT])).code,
  ).toBe(0);
  const told = promptsOf(home)[1]!.at(-2)!;
  expect(told).toContain('"Step 1": completed.');
  expect(told).toContain('"Step 2": was reported as running; may have run');
  expect(notesOf(home, "ledger")).toEqual(["begin 1", "end 1", "begin 2", "found 2"]);
});

test("an agent that only dies is parked after three restarts, and the hint tries it again", async () => {
  using home = temporaryHome();
  const agent = taskAgent(home, { steps: 1, dies: "prompt", times: 5 });
  const first = await home.run(["run", "--agent", agent, PROMPT]);
  expect(first).toMatchObject({ code: 1, stderr: expect.stringContaining("parked after 3 attempts") });
  expect(promptsOf(home)).toHaveLength(4);
  expect((await accountsIn(home))[0]).toMatchObject({ state: "parked" });
  // Without the word of a person, nobody tries it again.
  const finish = ["run", "--agent", agent, "--continue", "--finish"];
  expect(await home.run(finish)).toMatchObject({ code: 1, stderr: expect.stringContaining("parked after 3") });
  expect(promptsOf(home)).toHaveLength(4);
  expect(await typed(home, first.stderr)).toMatchObject({ code: 0 });
  expect((await accountsIn(home))[0]).toMatchObject({ state: "idle" });
  expect(promptsOf(home)).toHaveLength(6);
});

test("SIGTERM between two calls hands the turn over: the next run continues it, and nothing was interrupted", async () => {
  using home = temporaryHome();
  const agent = taskAgent(home, { steps: 2, asks: true, ms: 400 });
  const child = home.start(["run", "--agent", agent, PROMPT, ...ALLOW]);
  const end = ended(child);
  await eventually(() => notesOf(home, "ledger").includes("begin 1"));
  child.kill("SIGTERM");
  expect(await end).toMatchObject({ code: null, signal: "SIGTERM" });
  expect(await leftIn(home)).toEqual([]);
  expect(notesOf(home, "ledger")).toContain("end 1");
  const words = { status: expect.stringContaining("handed over") };
  expect((await accountsIn(home))[0]).toMatchObject({ state: "paused", words });
  expect((await home.run(["run", "--agent", agent, "--continue", "--finish", ...ALLOW])).code).toBe(0);
  expect(promptsOf(home)[1]!.at(-2)).toMatch(/^\[The program that runs you was restarted between two steps\./);
  expect(notesOf(home, "ledger")).toEqual(["begin 1", "end 1", "begin 2", "end 2"]);
});

test("Ctrl+C stops the turn, which is then over until somebody asks for its end", async () => {
  using home = temporaryHome();
  const agent = taskAgent(home, { steps: 2, ms: 400 });
  const child = home.start(["run", "--agent", agent, PROMPT]);
  const end = ended(child);
  await eventually(() => notesOf(home, "ledger").includes("begin 1"));
  child.kill("SIGINT");
  expect(await end).toMatchObject({ signal: "SIGINT", stderr: expect.stringContaining("Stopped.") });
  expect((await accountsIn(home))[0]).toMatchObject({ state: "stopped" });
  expect(await leftIn(home)).toEqual([]);
});

test("a second driver of a session is refused, with the name of the first; one that was stopped goes on", async () => {
  using home = temporaryHome();
  const agent = taskAgent(home, { steps: 1, ms: 1_500 });
  const child = home.start(["run", "--agent", agent, PROMPT]);
  const end = ended(child);
  await eventually(() => notesOf(home, "ledger").includes("begin 1"));
  child.kill("SIGSTOP");
  const [supervisor] = victimsIn(home, "the supervisor");
  const second = await home.run(["run", "--agent", agent, "--continue", "And now?"]);
  expect(second).toMatchObject({ code: 4, stderr: expect.stringContaining(`process ${supervisor!.pid} on`) });
  child.kill("SIGCONT");
  expect((await end).code).toBe(0);
  expect(promptsOf(home)).toHaveLength(1);
});

test("what cannot be driven is refused, and nothing is recorded", async () => {
  using home = temporaryHome();
  const run = async (...args: string[]) => {
    const { code, stderr } = await home.run(["run", ...args]);
    return `${code} ${stderr.replaceAll(/\s+/g, " ")}`;
  };
  expect(await run("--agent", "/no/such/agent", "hi")).toMatch(/^3 .*could not be started: no such command/);
  expect(await run("--agent", "a | b", "hi")).toMatch(/^2 .*means something to a shell only/);
  expect(await run("--agent", "'a", "hi")).toMatch(/^2 .*without its end/);
  expect(await run("--agent", "a", "-m", "x/y", "hi")).toMatch(/^2 .*--model cannot be used with --agent/);
  expect(await run("--agent", "a", "--allow", "shel(x)", "hi")).toMatch(/^2 .*unknown tool/);
  expect(await run("--agent", "a", "--retry", "hi")).toMatch(/^2 .*--retry requires/);
  expect(await run("--agent", `${process.execPath} -e 0`, "hi")).toMatch(/^1 .*The agent made no session/);
  expect(await run("--agent", taskAgent(home, { error: "no tokens left" }), "hi")).toMatch(/^1 no tokens left/);
  expect(await run("--agent", "another", "--resume", "latest", "--finish")).toMatch(/^2 .*not one of this agent/);
  expect(await run("--agent", "another", "--continue", "--finish")).toMatch(/^3 .*No session of this agent/);
});

test("wrap --finish: an editor that loads a session finds its turn being finished, by the rules", async () => {
  using home = temporaryHome();
  const agent = taskAgent(home, { steps: 2, asks: true, ms: 1_000 });
  const child = home.start(["run", "--agent", agent, PROMPT, ...ALLOW]);
  const end = ended(child);
  await eventually(() => notesOf(home, "ledger").includes("begin 1"));
  for (const { pid } of victimsIn(home, "all of them")) process.kill(pid, "SIGKILL");
  await end;
  await eventually(() => victimsIn(home, "all of them").length === 0);
  expect((await accountsIn(home))[0]).toMatchObject({ state: "interrupted" });
  const { agentWords } = await import("../../src/acp/agent-words.ts");
  const wrap = home.start(["wrap", "--finish", ...ALLOW, "--grace", "0.1", "--", ...agentWords(agent)]);
  const lines: Record<string, never>[] = [];
  wrap.stdout.setEncoding("utf8").on("data", (text: string) => {
    for (const line of text.split("\n")) if (line.trim() !== "") lines.push(JSON.parse(line));
  });
  const ask = (id: number, method: string, params: object): void =>
    void wrap.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
  ask(1, "initialize", { protocolVersion: 1 });
  ask(2, "session/list", { cwd: home.work });
  await eventually(() => lines.some(({ id }) => id === 2));
  // biome-ignore lint/suspicious/noExplicitAny: messages as they are on the wire.
  const [{ sessionId }] = (lines.find(({ id }) => id === 2) as any).result.sessions;
  ask(3, "session/load", { sessionId, cwd: home.work, mcpServers: [] });
  await eventually(() => notesOf(home, "ledger").includes("end 2"));
  // A prompt that comes meanwhile waits for the end of that turn, and is a turn of its own.
  ask(4, "session/prompt", { sessionId, prompt: [{ type: "text", text: "And then?" }] });
  await eventually(() => lines.some(({ id }) => id === 4));
  wrap.stdin.end();
  await ended(wrap);
  // The editor was not asked: the rules allow it.
  expect(lines.some(({ method }) => method === "session/request_permission")).toBe(false);
  expect(notesOf(home, "ledger")).toEqual(["begin 1", "found 1", "begin 2", "end 2"]);
  expect(promptsOf(home).map((texts) => texts.at(-1))).toEqual([PROMPT, PROMPT, "And then?"]);
  expect((await accountsIn(home))[0]).toMatchObject({ state: "idle" });
  expect(await leftIn(home)).toEqual([]);
  expect(readFileSync(join(home.path, "state/holdfast/wrap.log"), "utf8")).not.toContain("failed:");
});

import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as passed } from "node:timers/promises";
import { type ContentBlock, methods } from "@agentclientprotocol/sdk/unstable";
import { expect, test } from "vitest";
import { type Home, temporaryHome } from "../command.ts";
import { editorOf, shownIn } from "../editor.ts";
import { eventually, processesWith } from "./run-lines.ts";

const { session } = methods.agent;
const said = (text: string): ContentBlock[] => [{ type: "text", text }];
const AGENT = join(import.meta.dirname, "../agents/plain-agent.ts");

type Ability = "nothing" | "load" | "resume" | "fork";

function command(home: Home, can: Ability): string[] {
  return [process.execPath, AGENT, can, join(home.path, "effects.txt")];
}

const wrapped = (home: Home, can: Ability, answer = async (): Promise<string | null> => "yes") =>
  editorOf(home.start(["wrap", "--direct", "--", ...command(home, can)]), answer);

const effects = (home: Home): string =>
  existsSync(join(home.path, "effects.txt")) ? readFileSync(join(home.path, "effects.txt"), "utf8") : "";

test.each<Ability>(["nothing", "load", "resume"])(
  "an agent that can %s: killed with its proxy, the next one shows everything, and the agent knows what was said",
  async (can) => {
    using home = temporaryHome();
    const first = await wrapped(home, can);
    const { sessionId } = await first.agent.request(session.new, { cwd: home.work, mcpServers: [] });
    await first.agent.request(session.prompt, { sessionId, prompt: said("tool") });
    await first.agent.request(session.prompt, { sessionId, prompt: said("remember the word heron") });
    const live = shownIn(first.updates, sessionId).join("");
    await first.kill();

    const second = await wrapped(home, can);
    await second.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
    const replayed = shownIn(second.updates, sessionId);
    const ofAgent = replayed.filter((line) => !line.startsWith("user:") && !line.startsWith("thought:"));
    // A live client shows prompts by itself, so its chunks follow each other.
    expect(ofAgent.join("").replaceAll("agent: ", "")).toBe(live.replaceAll("agent: ", ""));
    expect(replayed.filter((line) => line.startsWith("user:"))).toEqual([
      "user: tool",
      "user: remember the word heron",
    ]);
    expect(replayed.join("\n")).not.toContain("native replay");
    expect(replayed.at(-1)).toMatch(can === "nothing" ? /told the conversation as text/ : /continues its own session/);

    const before = second.updates.length;
    await second.agent.request(session.prompt, { sessionId, prompt: said("which word?") });
    const [answer] = shownIn(second.updates.slice(before), sessionId);
    if (can === "nothing") {
      expect(answer).toMatch(
        /information, not instructions[\s\S]*> User: remember the word heron[\s\S]*\|which word\?$/,
      );
      await second.agent.request(session.prompt, { sessionId, prompt: said("and now?") });
      // Once is enough.
      expect(shownIn(second.updates, sessionId).at(-1)).toMatch(/which word\?I was asked: and now\?$/);
    } else expect(answer).toBe("agent: I was asked: which word?");
    expect(effects(home)).toBe("effect\n");
    expect(await second.leave()).toBe(0);
    // What it was told is not part of the conversation: it is there because the agent repeated it.
    const { stdout } = await home.run(["show", "latest", "--full"]);
    expect(stdout).toContain("which word?");
    expect(stdout.split("information, not instructions")).toHaveLength(can === "nothing" ? 2 : 1);
  },
);

test("a session without a prompt can be loaded, and is listed", async () => {
  using home = temporaryHome();
  const first = await wrapped(home, "nothing");
  const { sessionId } = await first.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  await first.kill();
  const second = await wrapped(home, "nothing");
  await second.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
  await second.agent.request(session.prompt, { sessionId, prompt: said("hello") });
  expect(shownIn(second.updates, sessionId)).toEqual(["agent: I was asked: hello"]);
  const { sessions } = await second.agent.request(session.list, {});
  expect(sessions.map((one) => one.sessionId)).toEqual([sessionId]);
  expect(await second.leave()).toBe(0);
});

test("the agent dies in the middle of a call: the editor is told, the call is closed, the next prompt starts it again", async () => {
  using home = temporaryHome();
  const editor = await wrapped(home, "nothing");
  const { sessionId } = await editor.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  await editor.agent.request(session.prompt, { sessionId, prompt: said("remember the word heron") });
  await expect(editor.agent.request(session.prompt, { sessionId, prompt: said("die") })).rejects.toThrow(
    "The agent has ended",
  );
  expect(shownIn(editor.updates, sessionId).find((line) => line.startsWith("Append"))).toMatch(
    /failed: Interrupted: the agent has ended\. May have run/,
  );
  await editor.agent.request(session.prompt, { sessionId, prompt: said("which word?") });
  expect(shownIn(editor.updates, sessionId).at(-1)).toMatch(/heron[\s\S]*which word\?$/);
  // The prompt was not sent again by itself.
  expect(effects(home)).toBe("effect\n");
  expect(await editor.leave()).toBe(0);
});

test("killed while a permission is open: the call is shown as failed, nothing ran, and the journal has every update", async () => {
  using home = temporaryHome();
  const first = await wrapped(home, "nothing", () => new Promise(() => undefined));
  const { sessionId } = await first.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  first.agent.request(session.prompt, { sessionId, prompt: said("tool") }).catch(() => undefined);
  await eventually(() => first.asked.length === 1);
  await first.kill();
  const second = await wrapped(home, "nothing");
  await second.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
  expect(shownIn(second.updates, sessionId).find((line) => line.startsWith("Append"))).toMatch(/failed/);
  expect(effects(home)).toBe("");
  expect(await second.leave()).toBe(0);
});

test("killed while it streams: what the editor saw is in the journal", async () => {
  using home = temporaryHome();
  const first = await wrapped(home, "nothing");
  const { sessionId } = await first.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  first.agent.request(session.prompt, { sessionId, prompt: said("slow") }).catch(() => undefined);
  await eventually(() => first.updates.length > 10);
  await first.kill();
  const seen = shownIn(first.updates, sessionId).join("");
  const second = await wrapped(home, "nothing");
  await second.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
  const replayed = shownIn(second.updates, sessionId)
    .filter((line) => line.startsWith("agent:"))
    .join("");
  expect(replayed.startsWith(seen)).toBe(true);
  expect(await second.leave()).toBe(0);
});

test("no agent is left behind: the editor goes in mid-turn, and the agent is cancelled and ended", async () => {
  using home = temporaryHome();
  const editor = await wrapped(home, "nothing");
  const { sessionId } = await editor.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  editor.agent.request(session.prompt, { sessionId, prompt: said("slow") }).catch(() => undefined);
  await eventually(() => editor.updates.length > 3);
  await editor.leave();
  await eventually(() => processesWith(home.path).length === 0);
  const { stdout } = await home.run(["ls", "--json"]);
  // Cancelled by the proxy, or cut off with it: either way it does not run.
  expect(["stopped", "interrupted"]).toContain(JSON.parse(stdout.trim().split("\n")[0]!).status);
});

test("a prompt that comes while a dead agent is cleared away is either refused or sent to the next one, once", async () => {
  using home = temporaryHome();
  const editor = await wrapped(home, "nothing");
  const { sessionId } = await editor.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  const answered: string[] = [];
  // The agents of this test write down that they end, and then they do.
  const left = `${join(home.path, "effects.txt")}.left`;
  const hasLeft = (round: number): boolean => {
    const pid = existsSync(left) ? readFileSync(left, "utf8").split("\n").slice(0, -1)[round] : undefined;
    return pid !== undefined && !processesWith(home.path).includes(Number(pid));
  };
  for (const [round, asked] of ["one", "two", "three"].entries()) {
    const dying = editor.agent.request(session.prompt, { sessionId, prompt: said("linger") });
    dying.catch(() => undefined);
    await eventually(() => hasLeft(round));
    // The first one may come before the proxy has noticed. The tool is killed after half a second.
    await passed(round * 100);
    const next = editor.agent.request(session.prompt, { sessionId, prompt: said(`what is ${asked}?`) });
    next.then(
      () => answered.push(asked),
      () => undefined,
    );
    await expect(dying).rejects.toThrow("The agent has ended");
    await next.catch((error: Error) => expect(error.message).toMatch("The agent has ended"));
  }
  expect(await editor.leave()).toBe(0);
  const heard = shownIn(editor.updates, sessionId).filter((line) => line.includes("I was asked: "));
  expect(heard.map((line) => /what is (\w+)\?$/.exec(line)?.[1])).toEqual(answered);
  await eventually(() => processesWith(home.path).length === 0);
});

test("a fork holds the conversation of its source, and they part there", async () => {
  using home = temporaryHome();
  const first = await wrapped(home, "fork");
  const { sessionId } = await first.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  await first.agent.request(session.prompt, { sessionId, prompt: said("remember the word heron") });
  const { sessionId: fork } = await first.agent.request(session.fork, { sessionId, cwd: home.path, mcpServers: [] });
  await first.agent.request(session.prompt, { sessionId: fork, prompt: said("in the fork") });
  await first.agent.request(session.prompt, { sessionId, prompt: said("in the source") });
  await first.kill();

  const second = await wrapped(home, "fork");
  await second.agent.request(session.load, { sessionId: fork, cwd: home.work, mcpServers: [] });
  await second.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
  const users = (id: string): string[] => shownIn(second.updates, id).filter((line) => line.startsWith("user:"));
  expect(users(fork)).toEqual(["user: remember the word heron", "user: in the fork"]);
  expect(users(sessionId)).toEqual(["user: remember the word heron", "user: in the source"]);
  const { sessions } = await second.agent.request(session.list, {});
  // Each in its folder.
  expect(Object.fromEntries(sessions.map((one) => [one.sessionId, one.cwd]))).toEqual({
    [fork]: home.path,
    [sessionId]: home.work,
  });
  // The agent forgot both, and each is a session of its own there.
  await second.agent.request(session.prompt, { sessionId: fork, prompt: said("which?") });
  await second.agent.request(session.prompt, { sessionId, prompt: said("which?") });
  expect(shownIn(second.updates, fork).at(-1)).toMatch(/> User: in the fork/);
  expect(shownIn(second.updates, sessionId).at(-1)).not.toMatch(/> User: in the fork/);
  expect(await second.leave()).toBe(0);
});

test("a prompt that could not be recorded does not use up what the agent is told of the conversation", async () => {
  using home = temporaryHome();
  const first = await wrapped(home, "nothing");
  const { sessionId } = await first.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  await first.agent.request(session.prompt, { sessionId, prompt: said("remember the word heron") });
  await first.kill();
  const second = await wrapped(home, "nothing");
  await second.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
  await expect(second.agent.request(session.prompt, { sessionId, prompt: [] })).rejects.toThrow(/not recorded/);
  await second.agent.request(session.prompt, { sessionId, prompt: said("which word?") });
  expect(shownIn(second.updates, sessionId).at(-1)).toMatch(/> User: remember the word heron[\s\S]*which word\?$/);
  expect(await second.leave()).toBe(0);
});

test.each([[["--direct"]], [[]]])("bytes pass unchanged, except for the capabilities %j", async (layout) => {
  using home = temporaryHome();
  const lines = [
    '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{},"_meta":{"a":1e3}}}',
    '{"method":"_example.com/ping","jsonrpc":"2.0","params":{"big":12345678901234567890,"text":"\\u00e9 é"}}',
    '{"jsonrpc":"2.0","id":"x","method":"_example.com/ask"}',
    "not json",
    "",
  ];
  const run = async (args: readonly string[]): Promise<string[]> => {
    const child = args[0] === "wrap" ? home.start(args) : spawn(args[0]!, args.slice(1), { stdio: "pipe" });
    let out = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
    });
    child.stdin.write(lines.join("\n"));
    await eventually(() => out.split("\n").length > 3);
    child.stdin.end();
    await new Promise((resolve) => child.once("close", resolve));
    return out.split("\n");
  };
  const alone = await run(command(home, "nothing"));
  const through = await run(["wrap", ...layout, "--", ...command(home, "nothing")]);
  const isAnswer = (line: string): boolean => line.includes('"id":0');
  expect(through.filter((line) => !isAnswer(line))).toEqual(alone.filter((line) => !isAnswer(line)));
  const [first, own] = [alone, through].map((all) => JSON.parse(all.find(isAnswer)!));
  expect(own.result.agentCapabilities).toMatchObject({
    loadSession: true,
    sessionCapabilities: { list: {}, resume: {} },
  });
  expect({ ...own.result, agentCapabilities: null }).toEqual({ ...first.result, agentCapabilities: null });
});

test("an agent that cannot be started, or ends at once, is reported with its own status", async () => {
  using home = temporaryHome();
  const missing = await home.run(["wrap", "--", "no-such-agent"]);
  expect(missing).toMatchObject({ code: 3, stdout: "" });
  expect(missing.stderr).toContain('The agent "no-such-agent" could not be started: no such command');
  const ended = await home.run(["wrap", "--", process.execPath, "-e", "process.exit(9)"]);
  expect(ended).toMatchObject({ code: 9, stdout: "" });
});

test.each([[["--direct"]], [[]]])(
  "an editor that closes its side after a request gets the answer (%j)",
  async (flags) => {
    using home = temporaryHome();
    const input = `${JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params: { protocolVersion: 1 } })}\n`;
    const { stdout } = await home.run(["wrap", ...flags, "--", ...command(home, "nothing")], { input });
    expect(JSON.parse(stdout)).toMatchObject({ id: 0, result: { protocolVersion: 1 } });
  },
);

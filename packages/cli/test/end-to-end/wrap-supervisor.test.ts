import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { type McpServer, methods, type NewSessionRequest } from "@agentclientprotocol/sdk/unstable";
import { expect, test } from "vitest";
import { type Control, controlFrame, FrameReader } from "../../../acp/src/layout/frames.ts";
import { type Home, temporaryHome } from "../command.ts";
import { type Editor, editorOf, shownIn } from "../editor.ts";
import { EditorProject } from "../editor-project.ts";
import { eventually, processesWith } from "./run-lines.ts";

const { session } = methods.agent;
const said = (text: string) => [{ type: "text" as const, text }];
const AGENTS = join(import.meta.dirname, "../agents");
const never = () => new Promise<never>(() => undefined);

interface More {
  readonly env?: Record<string, string>;
  readonly can?: string;
  readonly project?: EditorProject;
}

function open(home: Home, grace: string, { env = {}, can = "nothing", project }: More = {}): Promise<Editor> {
  const agent = [process.execPath, join(AGENTS, "plain-agent.ts"), can, join(home.path, "effects.txt")];
  return editorOf(home.start(["wrap", "--grace", grace, "--", ...agent], { detached: true, env }), never, project);
}

const runFolder = (home: Home): string => join(home.path, "state/holdfast/run");
const sockets = (home: Home): string[] => readdirSync(runFolder(home)).filter((name) => name.endsWith(".sock"));

interface Facts {
  readonly pid: number;
  readonly agent: { readonly pid: number } | null;
}
const factsOf = (home: Home): Facts[] =>
  sockets(home).map((name) => JSON.parse(readFileSync(join(runFolder(home), `${name}.json`), "utf8")) as Facts);

/** The supervisor writes down its agent a moment after it has started it. */
async function factsWithAgent(home: Home, isOther: (pid: number) => boolean = () => true): Promise<Facts> {
  const found = (): Facts | undefined => factsOf(home).find(({ agent }) => agent !== null && isOther(agent.pid));
  await eventually(() => found() !== undefined);
  return found()!;
}

const killGroup = (editor: Editor): boolean => process.kill(-editor.child.pid!, "SIGKILL");
const gone = (home: Home): Promise<void> => eventually(() => processesWith(home.path).length === 0);

test("an editor that comes back in time gets the agent that kept running, and its turn without a gap", async () => {
  using home = temporaryHome();
  const first = await open(home, "300");
  const { sessionId } = await first.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  first.agent.request(session.prompt, { sessionId, prompt: said("slow 200") }).catch(() => undefined);
  await eventually(() => first.updates.length > 10);
  const before = await factsWithAgent(home);
  killGroup(first);
  const second = await open(home, "300");
  await second.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
  expect(factsOf(home).map(({ pid, agent }) => [pid, agent?.pid])).toEqual([[before.pid, before.agent!.pid]]);
  const spoken = (): string =>
    second.updates
      .map(({ update }) =>
        "content" in update && update.sessionUpdate === "agent_message_chunk" ? update.content : null,
      )
      .map((content) => (content && "text" in content ? content.text : ""))
      .join("");
  await eventually(() => spoken().includes("piece 199 "));
  expect(spoken()).toBe(Array.from({ length: 200 }, (_, n) => `piece ${n} `).join(""));
  expect(shownIn(second.updates, sessionId).join("\n")).toContain("Reattached");
  // Both editors number their requests from 0.
  await second.agent.request(session.prompt, { sessionId, prompt: said("still there?") });
  expect(shownIn(second.updates, sessionId).at(-1)).toMatch(/I was asked: still there\?$/);
  expect(await second.leave()).toBe(0);
  await gone(home);
  expect(readdirSync(runFolder(home))).toEqual([]);
});

test("an editor that can do other things than the one before it gets another agent, and its session", async () => {
  using home = temporaryHome();
  const first = await open(home, "300");
  const { sessionId } = await first.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  await first.agent.request(session.prompt, { sessionId, prompt: said("remember the word heron") });
  const before = await factsWithAgent(home);
  killGroup(first);
  const project = new EditorProject({ fs: { readTextFile: true, writeTextFile: true } });
  const second = await open(home, "1", { project });
  await second.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
  await second.agent.request(session.prompt, { sessionId, prompt: said("still there?") });
  expect(shownIn(second.updates, sessionId).at(-1)).toMatch(/> User: remember the word heron[\s\S]*still there\?$/);
  const after = await factsWithAgent(home, (pid) => pid !== before.agent!.pid);
  expect(after.pid).toBe(before.pid);
  expect(await second.leave()).toBe(0);
  await gone(home);
});

test("a turn that the returned editor does not look at is cancelled after the grace", async () => {
  using home = temporaryHome();
  const first = await open(home, "1.5");
  const { sessionId } = await first.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  first.agent.request(session.prompt, { sessionId, prompt: said("slow") }).catch(() => undefined);
  await eventually(() => first.updates.length > 3);
  killGroup(first);
  const second = await open(home, "1.5");
  const other = await second.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  await second.agent.request(session.prompt, { sessionId: other.sessionId, prompt: said("hello") });
  // Nothing of a session that it has not opened.
  expect(second.updates.every((one) => one.session === other.sessionId)).toBe(true);
  await eventually(() => readFileSync(join(home.path, "state/holdfast/wrap.log"), "utf8").includes("cancelled"));
  await eventually(async () => (await home.run(["ls", "--json"])).stdout.includes('"stopped"'));
  expect(await second.leave()).toBe(0);
  await gone(home);
});

test.each(["before the next editor loads the session", "after that"])(
  "a permission that is open when the editor is killed is refused, not left open or granted; the agent hears of it %s",
  async (when) => {
    using home = temporaryHome();
    const hold = join(home.path, "effects.txt.hold");
    writeFileSync(hold, "");
    const first = await open(home, "300");
    const { sessionId } = await first.agent.request(session.new, { cwd: home.work, mcpServers: [] });
    first.agent.request(session.prompt, { sessionId, prompt: said("tool") }).catch(() => undefined);
    await eventually(() => first.asked.length === 1);
    killGroup(first);
    if (when !== "after that") {
      rmSync(hold);
      await eventually(async () => (await home.run(["ls", "--json"])).stdout.includes('"stopped"'));
    }
    const second = await open(home, "300");
    await second.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
    const call = () => shownIn(second.updates, sessionId).find((line) => line.startsWith("Append"));
    if (when === "after that") {
      expect(call()).toBe("Append a line: pending");
      rmSync(hold);
      await eventually(() => call() !== "Append a line: pending");
    }
    expect(call()).toBe("Append a line: failed: Cancelled.");
    expect(existsSync(join(home.path, "effects.txt"))).toBe(false);
    await second.leave();
    await gone(home);
  },
);

test("a session is open in one editor at a time; a second one is told so, and the first goes on", async () => {
  using home = temporaryHome();
  const first = await open(home, "300");
  const { sessionId } = await first.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  await first.agent.request(session.prompt, { sessionId, prompt: said("hello") });
  const second = await open(home, "300");
  expect(sockets(home)).toHaveLength(2);
  await expect(second.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] })).rejects.toThrow(
    /open in another editor/,
  );
  await first.agent.request(session.prompt, { sessionId, prompt: said("still here") });
  expect(await second.leave()).toBe(0);
  expect(await first.leave()).toBe(0);
  await gone(home);
});

test("an agent with another environment is not given back; it lets go of the session at once", async () => {
  using home = temporaryHome();
  const first = await open(home, "300");
  const { sessionId } = await first.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  await first.agent.request(session.prompt, { sessionId, prompt: said("remember the word heron") });
  const [before] = factsOf(home);
  killGroup(first);
  const second = await open(home, "1", { env: { API_KEY: "another" } });
  await second.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
  expect(shownIn(second.updates, sessionId).join("\n")).toContain("told the conversation as text");
  expect(factsOf(home).map(({ pid }) => pid)).not.toContain(before!.pid);
  expect(await second.leave()).toBe(0);
  await gone(home);
});

test("what killed processes left is removed by the next start: the socket, the agent and its tool", async () => {
  using home = temporaryHome();
  const first = await open(home, "300");
  const { sessionId } = await first.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  first.agent.request(session.prompt, { sessionId, prompt: said("run") }).catch(() => undefined);
  // The agent starts its tool while the supervisor may still be about to record that.
  await eventually(() => first.updates.some(({ update }) => update.sessionUpdate === "tool_call"));
  await eventually(() => processesWith(`tool of ${home.path}`).length > 0 && factsOf(home)[0]?.agent != null);
  const [{ pid, agent }] = factsOf(home) as [Facts];
  process.kill(pid, "SIGSTOP");
  killGroup(first);
  process.kill(pid, "SIGKILL");
  const stale = sockets(home)[0]!;
  expect(processesWith(home.path)).toContain(agent!.pid);
  const second = await open(home, "1");
  await eventually(() => !sockets(home).includes(stale));
  // What is killed takes a moment to end.
  await eventually(() => !processesWith(join(home.path, "effects.txt")).includes(agent!.pid));
  await eventually(() => processesWith(`tool of ${home.path}`).length === 0);
  await second.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
  expect(shownIn(second.updates, sessionId).find((line) => line.startsWith("Run"))).toMatch(/failed/);
  expect(await second.leave()).toBe(0);
  await gone(home);
});

/** The files below a folder that hold this text. */
const filesWith = (folder: string, text: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: "utf8", withFileTypes: true })
    .filter((entry) => entry.isFile() && readFileSync(join(entry.parentPath, entry.name)).includes(text))
    .map(({ name }) => name);

/** Kills the supervisor and asks on: what the editor was told of the session, and with what the agent opened it. */
async function afterDeath(home: Home, editor: Editor, sessionId: string): Promise<{ told: string; opened: unknown }> {
  await eventually(() => factsOf(home)[0]?.agent != null);
  const from = editor.updates.length;
  const [{ pid }] = factsOf(home) as [Facts];
  process.kill(pid, "SIGKILL");
  await eventually(() => processesWith(`--supervise ${runFolder(home)}`).every((one) => one !== pid));
  const ask = () => editor.agent.request(session.prompt, { sessionId, prompt: said("where") });
  // A prompt that meets the death is refused.
  await ask().catch(ask);
  const opened = JSON.parse(readFileSync(join(home.path, "effects.txt.where"), "utf8")) as unknown;
  rmSync(join(home.path, "effects.txt.where"));
  return { told: shownIn(editor.updates.slice(from), sessionId).join("\n"), opened };
}

test.each(["nothing", "resume"])(
  "the supervisor of an agent that can %s is killed, twice: sessions keep their MCP servers, and no file has them",
  async (can) => {
    using home = temporaryHome();
    const editor = await open(home, "1", { can });
    const server = (name: string, value: string): McpServer => ({
      ...{ name, command: "/bin/true", args: [] },
      env: [{ name: "TOKEN", value }],
    });
    const more = { additionalDirectories: [home.path], _meta: { "example.com/x": 1 } };
    const notes: NewSessionRequest = { cwd: home.work, mcpServers: [server("notes", "s3cret-of-notes")], ...more };
    const { sessionId: made } = await editor.agent.request(session.new, notes);
    const { sessionId: loaded } = await editor.agent.request(session.new, { cwd: home.work, mcpServers: [] });
    for (const sessionId of [made, loaded])
      await editor.agent.request(session.prompt, { sessionId, prompt: said("hello") });
    await editor.agent.request(session.close, { sessionId: loaded });
    const mcpServers = [server("search", "s3cret-of-search")];
    await editor.agent.request(session.load, { sessionId: loaded, cwd: home.work, mcpServers });
    for (const sessionId of [made, loaded]) {
      const { told, opened } = await afterDeath(home, editor, sessionId);
      expect(told).toMatch(/^thought: Restored/);
      expect(told).not.toContain("are missing");
      const isMade = sessionId === made;
      const [name, value] = isMade ? ["notes", "s3cret-of-notes"] : ["search", "s3cret-of-search"];
      expect(opened).toMatchObject({ cwd: home.work, mcpServers: [server(name, value)], ...(isMade ? more : {}) });
    }
    expect(await editor.leave()).toBe(0);
    await gone(home);
    expect(filesWith(home.path, "hello")).not.toEqual([]);
    expect(filesWith(home.path, "s3cret")).toEqual([]);
  },
);

test("the supervisor is killed in the middle of a call: the editor is shown its end, before the prompt's", async () => {
  using home = temporaryHome();
  const editor = await open(home, "1");
  const { sessionId } = await editor.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  const call = () => shownIn(editor.updates, sessionId).find((line) => line.startsWith("Run"));
  const running = editor.agent.request(session.prompt, { sessionId, prompt: said("run") }).then(
    () => "completed",
    (error: Error) => `${error.message} ${call()}`,
  );
  await eventually(() => processesWith(`tool of ${home.path}`).length > 0 && factsOf(home)[0]?.agent != null);
  await eventually(() => call() === "Run a command: in_progress");
  process.kill(factsOf(home)[0]!.pid, "SIGKILL");
  expect(await running).toMatch(/has died.*failed: Interrupted, outcome unknown/);
  // The next prompt starts both again. The record says the same of the call.
  await editor.agent.request(session.prompt, { sessionId, prompt: said("hello") });
  const from = editor.updates.length;
  await editor.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
  expect(shownIn(editor.updates.slice(from), sessionId).find((line) => line.startsWith("Run"))).toMatch(/failed/);
  expect(await editor.leave()).toBe(0);
  await gone(home);
});

test("MCP servers that are too large to keep are missing after a death of the supervisor, in words, until a load", async () => {
  using home = temporaryHome();
  const editor = await open(home, "1");
  const mcpServers: McpServer[] = [{ name: "large", command: "/bin/true", args: ["x".repeat(3_000_000)], env: [] }];
  const { sessionId } = await editor.agent.request(session.new, { cwd: home.work, mcpServers });
  await editor.agent.request(session.prompt, { sessionId, prompt: said("hello") });
  const { told, opened } = await afterDeath(home, editor, sessionId);
  expect(told).toMatch(/^thought: Restored[\s\S]*MCP servers, they are missing[\s\S]*Load the session again/);
  expect(opened).toMatchObject({ cwd: home.work, mcpServers: [] });
  expect(await editor.leave()).toBe(0);
  await gone(home);
  expect(filesWith(home.path, "x".repeat(1000))).toEqual([]);
});

test("the socket is the user's alone, and refuses other versions and what is no shim; the editor does not notice", async () => {
  using home = temporaryHome();
  const editor = await open(home, "1");
  const [name] = sockets(home);
  const path = join(runFolder(home), name!);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(runFolder(home)).mode & 0o777).toBe(0o700);
  const answers = async (bytes: Buffer): Promise<Control[]> => {
    const socket = connect(path);
    socket.on("error", () => undefined);
    socket.end(bytes);
    const reader = new FrameReader();
    const found: Control[] = [];
    for await (const chunk of socket as AsyncIterable<Buffer>)
      for (const frame of reader.push(chunk)) if ("control" in frame) found.push(frame.control);
    return found;
  };
  expect(await answers(controlFrame({ type: "hello", version: 99 }))).toEqual([{ type: "refused", version: 1 }]);
  expect(await answers(controlFrame({ type: "hello", version: 1 }))).toEqual([{ type: "busy" }]);
  expect(await answers(controlFrame({ type: "retire" }))).toEqual([{ type: "busy" }]);
  expect(await answers(Buffer.from("GET / HTTP/1.1\r\n\r\n"))).toEqual([]);
  const { sessionId } = await editor.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  await editor.agent.request(session.prompt, { sessionId, prompt: said("hello") });
  expect(await editor.leave()).toBe(0);
  await gone(home);
  const log = readFileSync(join(home.path, "state/holdfast/wrap.log"), "utf8");
  expect(log).toMatch(/an editor is attached[\s\S]*the editor has left[\s\S]*ended/);
  expect(statSync(join(home.path, "state/holdfast/wrap.log")).mode & 0o777).toBe(0o600);
});

test.each([["--direct"], ["--grace=1"]])(
  "%s: an editor that stops reading stops the agent, and gets everything when it reads on",
  async (option) => {
    using home = temporaryHome();
    const progress = join(home.path, "progress");
    const COUNT = 30_000;
    const child = home.start([
      "wrap",
      option,
      "--",
      process.execPath,
      join(AGENTS, "flood-agent.ts"),
      progress,
      "x".repeat(200),
    ]);
    const send = (message: object): boolean => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
    const lines = (async function* () {
      let rest = "";
      for await (const chunk of child.stdout.setEncoding("utf8") as AsyncIterable<string>) {
        const [first, ...more] = chunk.split("\n");
        for (const line of [rest + first, ...more].slice(0, -1))
          yield JSON.parse(line) as {
            id?: number;
            result?: { sessionId: string };
            params?: { update: { content: { text: string } } };
          };
        rest = more.length === 0 ? rest + first : more.at(-1)!;
      }
    })();
    send({ id: 0, method: "initialize", params: { protocolVersion: 1 } });
    await lines.next();
    send({ id: 1, method: "session/new", params: { cwd: home.work, mcpServers: [] } });
    const { value: made } = await lines.next();
    send({
      id: 2,
      method: "session/prompt",
      params: { sessionId: made!.result!.sessionId, prompt: said(String(COUNT)) },
    });
    // Nobody reads now. The agent comes to a stop, long before it has said everything.
    const sent = (): number => (existsSync(progress) ? Number(readFileSync(progress, "utf8")) : 0);
    for (let last = -1, same = 0; same < 20; ) {
      await new Promise((resolve) => setTimeout(resolve, 25));
      same = sent() === last && last > 0 ? same + 1 : 0;
      last = sent();
    }
    expect(sent() * 330).toBeLessThan(4 * 1024 * 1024);
    let count = 0;
    for await (const line of lines) {
      if (line.id === 2) break;
      if (!line.params!.update.content.text.startsWith(`${count} `)) throw new Error(`not update ${count}`);
      count += 1;
    }
    expect(count).toBe(COUNT);
    child.stdin.end();
    await new Promise((resolve) => child.once("exit", resolve));
    await gone(home);
  },
);

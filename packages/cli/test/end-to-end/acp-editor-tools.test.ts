import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type ContentBlock, type McpServer, methods } from "@agentclientprotocol/sdk/unstable";
import type { CallItem } from "@holdfast/server/contract";
import { expect, test } from "vitest";
import { type Home, temporaryHome } from "../command.ts";
import { type Editor, openEditor, shownIn } from "../editor.ts";
import { EditorProject } from "../editor-project.ts";
import { eventually, processesWith } from "./run-lines.ts";

const { session } = methods.agent;
const said = (text: string): ContentBlock[] => [{ type: "text", text }];
const FILES = { fs: { readTextFile: true, writeTextFile: true } };
const allow = ["--allow", "write", "--allow", "edit", "--allow", "shell", "--allow", "mcp__*"];

async function begin(home: Home, project: EditorProject, args: readonly string[] = allow) {
  const editor = await openEditor(home, async () => "allow", args, project);
  const { sessionId } = await editor.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  const prompt = (text: string) => editor.agent.request(session.prompt, { sessionId, prompt: said(text) });
  return { editor, sessionId, prompt };
}

function callsIn(editor: Editor, sessionId: string): string[] {
  return shownIn(editor.updates, sessionId).filter((line) => /^(?:read|write|edit|shell)/.test(line));
}

test("the agent reads what is not saved yet, and changes files through the editor", async () => {
  using home = temporaryHome();
  const path = join(home.work, "a.txt");
  writeFileSync(path, "on disk\n");
  const project = new EditorProject(FILES);
  project.unsaved.set(path, "typed by the user\n");
  const { editor, sessionId, prompt } = await begin(home, project);
  expect(editor.capabilities).toMatchObject({ mcpCapabilities: { http: true, sse: false } });
  await prompt("read a.txt");
  expect(shownIn(editor.updates, sessionId).at(-1)).toContain("It begins: typed by the user");
  await prompt('edit a.txt: replace "user" with "person"');
  expect(readFileSync(path, "utf8")).toBe("typed by the person\n");
  await prompt("write b.txt: new");
  expect(project.asked.filter((one) => one.startsWith("write"))).toEqual([
    `write ${path}`,
    `write ${join(home.work, "b.txt")}`,
  ]);
  expect(await editor.leave()).toBe(0);
});

test("an approved edit does not run if the user has typed into the file since", async () => {
  using home = temporaryHome();
  const path = join(home.work, "a.txt");
  writeFileSync(path, "one\n");
  const project = new EditorProject(FILES);
  let questions = 0;
  const answer = async () => {
    questions += 1;
    if (questions === 1) project.unsaved.set(path, "one, and more\n");
    return "allow";
  };
  const editor = await openEditor(home, answer, [], project);
  const { sessionId } = await editor.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  await editor.agent.request(session.prompt, { sessionId, prompt: said('edit a.txt: replace "one" with "two"') });
  expect(callsIn(editor, sessionId).find((line) => line.startsWith("edit"))).toMatch(/was changed after the call was/);
  // The model looks again, and asks again: what the user typed is still there.
  expect(questions).toBe(2);
  expect(readFileSync(path, "utf8")).toBe("two, and more\n");
  expect(await editor.leave()).toBe(0);
});

test("paths that lead out of the folder and special files are judged before the editor is asked", async () => {
  using home = temporaryHome();
  const outside = join(home.path, "outside.txt");
  writeFileSync(outside, "outside\n");
  symlinkSync(outside, join(home.work, "link.txt"));
  writeFileSync(join(home.work, ".env"), "KEY=1\n");
  const project = new EditorProject(FILES);
  const asked: string[] = [];
  const editor = await openEditor(
    home,
    async ({ toolCall }) => {
      asked.push(toolCall.title ?? "");
      return "deny";
    },
    allow,
    project,
  );
  const { sessionId } = await editor.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  for (const text of ["write link.txt: x", "read link.txt", "read .env"])
    await editor.agent.request(session.prompt, { sessionId, prompt: said(text) });
  expect(asked).toEqual(["write link.txt", "read link.txt", "read .env"]);
  expect(project.asked).toEqual([]);
  expect(readFileSync(outside, "utf8")).toBe("outside\n");
  expect(await editor.leave()).toBe(0);
});

test("a write that the editor answers with an error has an unknown outcome, and is not repeated", async () => {
  using home = temporaryHome();
  const project = new EditorProject(FILES);
  project.afterWrite = async () => {
    throw new Error("the disk is on fire");
  };
  const { editor, sessionId, prompt } = await begin(home, project);
  await prompt("write a.txt: one");
  const calls = callsIn(editor, sessionId);
  expect(calls[0]).toMatch(/^write a.txt: failed: .*Started, then the editor did not confirm .*: outcome unknown/);
  expect(project.asked.filter((one) => one.startsWith("write"))).toHaveLength(1);
  expect(await editor.leave()).toBe(0);
});

test("killed while the editor writes: the outcome is unknown, and /finish does not write again", async () => {
  using home = temporaryHome();
  const path = join(home.work, "a.txt");
  const first = new EditorProject(FILES);
  first.afterWrite = () => new Promise(() => undefined);
  const { editor, sessionId, prompt } = await begin(home, first);
  prompt("write a.txt: one").catch(() => undefined);
  await eventually(() => existsSync(path));
  await editor.kill();
  // The user goes on typing.
  const second = new EditorProject(FILES);
  second.unsaved.set(path, "one\nand the user's own line\n");
  const next = await openEditor(home, async () => "allow", allow, second);
  await next.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
  expect(callsIn(next, sessionId)[0]).toMatch(/failed: Interrupted, outcome unknown/);
  await next.agent.request(session.prompt, { sessionId, prompt: said("/finish") });
  // The model was told, and decides what to do: the call itself was not repeated.
  const { items } = JSON.parse((await home.run(["show", "--json", sessionId])).stdout) as { items: CallItem[] };
  expect(items.find(({ kind }) => kind === "call")).toMatchObject({ name: "write", state: "unknown" });
  expect(await next.leave()).toBe(0);
});

test("commands run in the editor's terminal: shown in the call, released, without the editor's keys", async () => {
  using home = temporaryHome();
  const project = new EditorProject({ terminal: true });
  const { editor, sessionId, prompt } = await begin(home, project);
  await prompt('run echo "made $EDITOR_API_KEY" > made.txt; cat made.txt; exit 3');
  expect(readFileSync(join(home.work, "made.txt"), "utf8")).toBe("made \n");
  const embedded = editor.updates.flatMap(({ update }) =>
    update.sessionUpdate === "tool_call_update" ? (update.content ?? []) : [],
  );
  expect(embedded).toContainEqual({ type: "terminal", terminalId: "1" });
  // The last word on the call keeps it.
  expect(embedded.at(-1)).toEqual({ type: "terminal", terminalId: "1" });
  expect(project.asked).toEqual(['create echo "made $EDITOR_API_KEY" > made.txt; cat made.txt; exit 3', "release 1"]);
  expect(project.open).toEqual([]);
  expect((await home.run(["show", sessionId])).stdout).toContain("exit status 3");
  await editor.kill();

  // Its terminal is gone: the recorded output is shown.
  const second = await openEditor(home);
  await second.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
  expect(callsIn(second, sessionId)[0]).toMatch(/completed: made/);
  expect(JSON.stringify(second.updates)).not.toContain('"terminal"');
  expect(await second.leave()).toBe(0);
});

test("cancelling a turn kills the command in the editor's terminal, and releases it", async () => {
  using home = temporaryHome();
  const mark = `7${Date.now() % 1_000_000}`;
  const project = new EditorProject({ terminal: true });
  const { editor, sessionId, prompt } = await begin(home, project);
  const answer = prompt(`run sleep ${mark}`);
  await eventually(() => processesWith(`sleep\0${mark}`).length === 1);
  await editor.agent.notify(session.cancel, { sessionId });
  expect(await answer).toEqual({ stopReason: "cancelled" });
  expect(processesWith(`sleep\0${mark}`)).toEqual([]);
  expect(project.asked.slice(1)).toEqual(["kill 1", "release 1"]);
  expect(await editor.leave()).toBe(0);
});

test("killed while a command runs in the editor's terminal: outcome unknown, and /finish does not run it again", async () => {
  using home = temporaryHome();
  const first = new EditorProject({ terminal: true });
  const { editor, sessionId, prompt } = await begin(home, first);
  prompt("run echo once >> log.txt; sleep 600").catch(() => undefined);
  await eventually(() => existsSync(join(home.work, "log.txt")));
  await editor.kill();
  await first.close();
  const second = new EditorProject({ terminal: true });
  const next = await openEditor(home, async () => "allow", allow, second);
  await next.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
  expect(callsIn(next, sessionId)[0]).toMatch(/failed: Interrupted, outcome unknown/);
  await next.agent.request(session.prompt, { sessionId, prompt: said("/finish") });
  expect(second.asked).toEqual([]);
  expect(readFileSync(join(home.work, "log.txt"), "utf8")).toBe("once\n");
  expect((await home.run(["show", "--full", sessionId])).stdout).toContain("in a terminal of the editor");
  expect(await next.leave()).toBe(0);
});

const SERVER = join(import.meta.dirname, "../mcp-server.ts");
const stdio = (name: string, env: Readonly<Record<string, string>> = {}): McpServer & { command: string } => ({
  name,
  command: process.execPath,
  args: ["--conditions=holdfast-source", SERVER],
  env: Object.entries(env).map(([key, value]) => ({ name: key, value })),
});

test("the editor's MCP servers serve its session; their keys are in no record; names do not clash", async () => {
  using home = temporaryHome();
  const project = new EditorProject({});
  const editor = await openEditor(home, async () => "allow", allow, project);
  const { agent } = editor;
  const key = "sk-very-secret-0123456789";
  const mcpServers = [stdio("My Server", { NOTES_API_KEY: key }), stdio("my server"), stdio("gone")];
  mcpServers[2]!.command = join(home.path, "no-such-program");
  const { sessionId } = await agent.request(session.new, { cwd: home.work, mcpServers });
  const prompt = (text: string) => agent.request(session.prompt, { sessionId, prompt: said(text) });
  await prompt('use mcp__My_Server__echo: {"text":"hello from the editor"}');
  expect(shownIn(editor.updates, sessionId).at(-1)).toContain("said: hello from the editor");
  // A dead server is named, and does not stop the others.
  expect(shownIn(editor.updates, sessionId).join("\n")).toMatch(/MCP server "gone" is not available/);
  await prompt('use mcp__my_server-2__echo: {"text":"the second one"}');
  expect(shownIn(editor.updates, sessionId).at(-1)).toContain("said: the second one");
  await prompt("use mcp__My_Server__environment: {}");
  expect(await editor.leave()).toBe(0);
  const journal = readdirSync(home.store, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"))
    .join("");
  expect(journal).toContain("hello from the editor");
  expect(journal).not.toContain(key);
  await eventually(() => processesWith(SERVER).length === 0);
});

test("an MCP server of the editor over HTTP gets its headers; one over SSE is refused in words", async () => {
  using home = temporaryHome();
  const keys: unknown[] = [];
  const http = createServer((request, response) => {
    keys.push(request.headers.authorization);
    response.writeHead(500).end();
  }).listen(0, "127.0.0.1");
  try {
    await eventually(() => http.listening);
    const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`;
    const editor = await openEditor(home);
    const template = `Bearer \${HOME}`;
    const headers = [{ name: "Authorization", value: template }];
    const mcpServers: McpServer[] = [
      { type: "http" as const, name: "web", url, headers },
      { type: "sse" as const, name: "old", url, headers: [] },
    ];
    const { sessionId } = await editor.agent.request(session.new, { cwd: home.work, mcpServers });
    await editor.agent.request(session.prompt, { sessionId, prompt: said("think about rivers") });
    // The editor's values are not templates.
    expect(keys).toContain(template);
    const told = shownIn(editor.updates, sessionId).join("\n");
    expect(told).toMatch(/"old" is not used: this agent cannot reach servers of the type "sse"/);
    expect(told).toMatch(/MCP server "web" is not available/);
    expect(await editor.leave()).toBe(0);
  } finally {
    http.close();
  }
});

test("the plan is shown as a plan; the next process shows it again, also after /compact; /clear takes it away", async () => {
  using home = temporaryHome();
  const plan = (editor: Editor) =>
    editor.updates.flatMap(({ update }) =>
      update.sessionUpdate === "plan" ? [update.entries.map(({ content, status }) => `${status} ${content}`)] : [],
    );
  const { editor, sessionId, prompt } = await begin(home, new EditorProject({}), []);
  await prompt("plan: 1. read the notes 2. write the report");
  const made = ["in_progress read the notes", "pending write the report"];
  expect(plan(editor)).toEqual([made]);
  expect(editor.asked).toEqual([]);
  expect(shownIn(editor.updates, sessionId).some((line) => line.startsWith("plan"))).toBe(false);
  await editor.kill();

  const second = await openEditor(home);
  await second.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
  expect(plan(second)).toEqual([made]);
  await second.agent.request(session.prompt, { sessionId, prompt: said("/compact") });
  await second.kill();

  const third = await openEditor(home);
  await third.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
  expect(plan(third)).toEqual([made]);
  await third.agent.request(session.prompt, { sessionId, prompt: said("/clear") });
  expect(plan(third).at(-1)).toEqual([]);
  expect(await third.leave()).toBe(0);
});

import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ContentBlock, type McpServer, methods } from "@agentclientprotocol/sdk/unstable";
import { expect, test } from "vitest";
import { temporaryHome } from "../command.ts";
import { openEditor, shownIn } from "../editor.ts";
import { EditorProject } from "../editor-project.ts";
import { eventually } from "./run-lines.ts";

const { session } = methods.agent;
/** It ends after the test has said so: after the editor has. */
const HELD = "run until test -e go; do sleep 0.05; done; echo done >> done.txt";
const said = (text: string): ContentBlock[] => [{ type: "text", text }];

test("C13: with --server the turn outlives its editor, and the next editor is shown all of it", async () => {
  using home = temporaryHome();
  const server = home.start(["serve", "--port", "0", "--allow", "shell"]);
  try {
    let output = "";
    server.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    await eventually(() => /http:\/\/[\d.]+:\d+/.test(output));
    const [url = ""] = /http:\/\/[\d.]+:\d+/.exec(output) ?? [];
    const project = new EditorProject({ fs: { readTextFile: true, writeTextFile: true }, terminal: true });
    const open = () => openEditor(home, async () => "allow", ["--server", url], project);

    const first = await open();
    expect(first.capabilities).toMatchObject({ mcpCapabilities: { http: false, sse: false } });
    // The server cannot reach the editor's files, terminals and servers, so it does not claim to use them.
    const notes: McpServer = { name: "notes", command: "/bin/true", args: [], env: [] };
    const { sessionId } = await first.agent.request(session.new, { cwd: home.work, mcpServers: [notes] });
    await eventually(() => shownIn(first.updates, sessionId).some((line) => /\(notes\) are not used/.test(line)));
    first.agent.request(session.prompt, { sessionId, prompt: said(HELD) }).catch(() => undefined);
    await eventually(() => shownIn(first.updates, sessionId).some((line) => line.includes("in_progress")));
    await first.kill();
    writeFileSync(join(home.work, "go"), "");
    await eventually(() => existsSync(join(home.work, "done.txt")));

    const second = await open();
    await second.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
    await eventually(() => shownIn(second.updates, sessionId).some((line) => line.startsWith("agent:")));
    const shown = shownIn(second.updates, sessionId);
    expect(shown[0]).toBe(`user: ${HELD}`);
    expect(shown.find((line) => line.startsWith("shell"))).toMatch(/completed/);
    expect(readFileSync(join(home.work, "done.txt"), "utf8")).toBe("done\n");
    const { stopReason } = (await second.agent.request(session.prompt, {
      sessionId,
      prompt: said("think about rivers"),
    })) as { stopReason: string };
    expect(stopReason).toBe("end_turn");
    const other = join(home.path, "other");
    mkdirSync(other);
    const fork = await second.agent.request(session.fork, { sessionId, cwd: other });
    await second.agent.request(session.prompt, { sessionId: fork.sessionId, prompt: said("run echo here > here.txt") });
    expect(existsSync(join(other, "here.txt"))).toBe(true);
    expect(project.asked).toEqual([]);
    expect(await second.leave()).toBe(0);
    expect(second.stderr()).toBe("");
  } finally {
    server.kill("SIGTERM");
  }
});

/** A server of this user, and where it listens. */
async function served(home: ReturnType<typeof temporaryHome>) {
  const server = home.start(["serve", "--port", "0"]);
  let output = "";
  server.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  await eventually(() => /http:\/\/[\d.]+:\d+/.test(output));
  const [url = ""] = /http:\/\/[\d.]+:\d+/.exec(output) ?? [];
  return { server, url };
}

test("with --server a prompt is answered when its turn has ended, also after an approval and on another port", async () => {
  using home = temporaryHome();
  let { server, url } = await served(home);
  try {
    const editor = await openEditor(home, async () => "allow", ["--server", url], new EditorProject({}));
    const { sessionId } = await editor.agent.request(session.new, { cwd: home.work, mcpServers: [] });
    const prompt = async (name: string): Promise<void> => {
      const { stopReason } = (await editor.agent.request(session.prompt, {
        sessionId,
        prompt: said(`write ${name}: one`),
      })) as { stopReason: string };
      expect(stopReason).toBe("end_turn");
      expect(existsSync(join(home.work, name))).toBe(true);
      expect(shownIn(editor.updates, sessionId).at(-1)).toMatch(/^agent:/);
    };
    for (const name of ["a.txt", "b.txt", "c.txt"]) await prompt(name);
    const ended = once(server, "exit");
    server.kill("SIGKILL");
    await ended;
    ({ server, url } = await served(home));
    await prompt("d.txt");
    expect(await editor.leave()).toBe(0);
  } finally {
    server.kill("SIGTERM");
  }
});

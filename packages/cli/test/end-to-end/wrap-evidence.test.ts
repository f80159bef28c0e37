import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { methods } from "@agentclientprotocol/sdk/unstable";
import { expect, test } from "vitest";
import { type Home, temporaryHome } from "../command.ts";
import { type Editor, editorOf, shownIn } from "../editor.ts";
import { eventually, processesWith } from "./run-lines.ts";

const { session } = methods.agent;
const said = (text: string) => [{ type: "text" as const, text }];
const AGENT = join(import.meta.dirname, "../agents/plain-agent.ts");
const effectsOf = (home: Home): string => join(home.work, "effects.txt");

const open = (home: Home): Promise<Editor> =>
  editorOf(
    home.start(["wrap", "--grace", "0.1", "--", process.execPath, AGENT, "nothing", effectsOf(home)], {
      detached: true,
    }),
    async () => "yes",
  );

for (const isGit of [true, false]) {
  test.concurrent(`wrap, in a ${isGit ? "git" : "plain"} folder: an agent dies in a call; the call says what has changed since, and nothing is said of reading`, async () => {
    using home = temporaryHome();
    writeFileSync(effectsOf(home), "before\n");
    if (isGit) execFileSync("git", ["-C", home.work, "init", "-q"]);
    const editor = await open(home);
    const { sessionId } = await editor.agent.request(session.new, { cwd: home.work, mcpServers: [] });
    const died = editor.agent.request(session.prompt, { sessionId, prompt: said("die") });
    await expect(died).rejects.toThrow(/has ended/);
    const words =
      "Interrupted: the agent has ended. May have run: its start was not recorded; changed in the folder since it began: effects.txt (+1 -0).";
    await eventually(() => shownIn(editor.updates, sessionId).some((line) => line.includes(words)));
    // The next agent is told, too.
    await editor.agent.request(session.prompt, { sessionId, prompt: said("and now?") });
    expect(shownIn(editor.updates, sessionId).at(-1)).toContain("effects.txt (+1 -0)");
    expect(await editor.leave()).toBe(0);
    // The record has it.
    expect((await home.run(["show", "latest"])).stdout.replaceAll(/\s+/g, " ")).toContain(words);
  });
}

test.concurrent("wrap: everything is killed; the editor that loads the session learns what has changed since, and so does the agent", async () => {
  using home = temporaryHome();
  execFileSync("git", ["-C", home.work, "init", "-q"]);
  const first = await open(home);
  const { sessionId } = await first.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  void first.agent.request(session.prompt, { sessionId, prompt: said("run") }).catch(() => undefined);
  await eventually(async () => (await home.run(["tail", "latest", "--json"])).stdout.includes("acp.before"));
  writeFileSync(join(home.work, "made.txt"), "m\n");
  for (const pid of processesWith(home.path)) process.kill(pid, "SIGKILL");
  await eventually(() => processesWith(home.path).length === 0);
  const second = await open(home);
  await second.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
  const since = "ay have run: its start was not recorded; changed in the folder since it began: made.txt (new).";
  const lines = (): string => shownIn(second.updates, sessionId).join("\n");
  await eventually(() => lines().includes(since));
  expect(lines()).toContain("The last turn: interrupted: its process died.\nRun a command: may have run");
  await second.agent.request(session.prompt, { sessionId, prompt: said("and now?") });
  expect(shownIn(second.updates, sessionId).at(-1)).toContain(`> Tool call: Run a command: Interrupted. M${since}`);
  expect(await second.leave()).toBe(0);
  expect(readFileSync(join(home.work, "made.txt"), "utf8")).toBe("m\n");
  expect(readdirSync(home.work).sort()).toEqual([".git", "made.txt"]);
});

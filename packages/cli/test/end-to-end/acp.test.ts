import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ContentBlock, methods } from "@agentclientprotocol/sdk/unstable";
import { expect, test } from "vitest";
import { temporaryHome } from "../command.ts";
import { openEditor, shownIn } from "../editor.ts";
import { eventually, processesWith } from "./run-lines.ts";

const { session } = methods.agent;
const said = (text: string): ContentBlock[] => [{ type: "text", text }];

test("a session in an editor: prompt, approval, answer; the next process loads all of it, in order, before it answers", async () => {
  using home = temporaryHome();
  const first = await openEditor(home);
  const { sessionId, modes, configOptions } = await first.agent.request(session.new, {
    cwd: home.work,
    mcpServers: [],
  });
  expect(modes?.currentModeId).toBe("ask");
  expect(configOptions?.[0]).toMatchObject({ id: "model", currentValue: "offline/offline" });
  const { stopReason } = await first.agent.request(session.prompt, {
    sessionId,
    prompt: said("write notes.md: some text"),
  });
  expect(stopReason).toBe("end_turn");
  expect(readFileSync(join(home.work, "notes.md"), "utf8")).toContain("some text");
  expect(first.asked).toHaveLength(1);
  expect(first.asked[0]!.options.map(({ kind }) => kind)).toContain("reject_once");
  const live = shownIn(first.updates, sessionId).filter((line) => !line.startsWith("thought"));
  await first.kill();

  const second = await openEditor(home);
  await second.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
  const replayed = shownIn(second.updates, sessionId).filter((line) => !line.startsWith("thought"));
  expect(replayed).toEqual(["user: write notes.md: some text", ...live]);
  expect(second.asked).toEqual([]);
  const { sessions } = await second.agent.request(session.list, { cwd: home.work });
  expect(sessions).toMatchObject([{ sessionId, cwd: home.work }]);
  expect(await second.leave()).toBe(0);
  expect(second.stderr()).toBe("");
});

test("killed in mid-tool: the call is shown as failed with an unknown outcome, and /finish finishes the turn", async () => {
  using home = temporaryHome();
  const mark = `9${Date.now() % 1_000_000}`;
  const first = await openEditor(home);
  const { sessionId } = await first.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  first.agent.request(session.prompt, { sessionId, prompt: said(`run sleep ${mark}`) }).catch(() => undefined);
  await eventually(() => processesWith(`sleep\0${mark}`).length === 1);
  await first.kill();
  for (const pid of processesWith(`sleep\0${mark}`)) process.kill(pid, "SIGKILL");

  const second = await openEditor(home);
  await second.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
  const replayed = shownIn(second.updates, sessionId);
  expect(replayed[0]).toBe(`user: run sleep ${mark}`);
  expect(replayed.find((line) => line.startsWith("shell"))).toMatch(/failed: Interrupted, outcome unknown/);
  expect(replayed.at(-1)).toMatch(/The last turn: interrupted: its process died[\s\S]*\/finish/);
  const { stopReason } = await second.agent.request(session.prompt, { sessionId, prompt: said("/finish") });
  expect(stopReason).toBe("end_turn");
  expect(await second.leave()).toBe(0);
});

test("killed while a permission is open: the next editor is asked again, and nothing was assumed", async () => {
  using home = temporaryHome();
  const first = await openEditor(home, () => new Promise(() => undefined));
  const { sessionId } = await first.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  first.agent.request(session.prompt, { sessionId, prompt: said("write notes.md: approved") }).catch(() => undefined);
  await eventually(() => first.asked.length === 1);
  await first.kill();
  expect(existsSync(join(home.work, "notes.md"))).toBe(false);

  const second = await openEditor(home);
  await second.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] });
  await eventually(() => second.asked.length === 1);
  expect(second.asked[0]!.toolCall.toolCallId).toBe(first.asked[0]!.toolCall.toolCallId);
  await eventually(() => existsSync(join(home.work, "notes.md")));
  await eventually(() => shownIn(second.updates, sessionId).some((line) => line.startsWith("agent:")));
  expect(await second.leave()).toBe(0);
});

test("cancelling a turn stops it and its command; the answer to the prompt is `cancelled`", async () => {
  using home = temporaryHome();
  const mark = `8${Date.now() % 1_000_000}`;
  const editor = await openEditor(home);
  const { sessionId } = await editor.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  const answer = editor.agent.request(session.prompt, { sessionId, prompt: said(`run sleep ${mark}`) });
  await eventually(() => processesWith(`sleep\0${mark}`).length === 1);
  await editor.agent.notify(session.cancel, { sessionId });
  expect(await answer).toEqual({ stopReason: "cancelled" });
  expect(processesWith(`sleep\0${mark}`)).toEqual([]);
  expect(await editor.leave()).toBe(0);
});

test("a denied call did not run, and the model goes on", async () => {
  using home = temporaryHome();
  const editor = await openEditor(home, async () => "deny");
  const { sessionId } = await editor.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  await editor.agent.request(session.prompt, { sessionId, prompt: said("write notes.md: no") });
  expect(existsSync(join(home.work, "notes.md"))).toBe(false);
  expect(shownIn(editor.updates, sessionId).find((line) => line.startsWith("write"))).toMatch(
    /^write notes.md: failed: Denied/,
  );
  expect(await editor.leave()).toBe(0);
});

test("modes, models, forks, closing and deleting; a resumed session is not replayed", async () => {
  using home = temporaryHome();
  const editor = await openEditor(home);
  const { agent } = editor;
  const { sessionId } = await agent.request(session.new, { cwd: home.work, mcpServers: [] });
  await agent.request(session.setMode, { sessionId, modeId: "accept edits" });
  await agent.request(session.prompt, { sessionId, prompt: said("write a.txt: one") });
  expect(editor.asked).toEqual([]);
  await expect(agent.request(session.setMode, { sessionId, modeId: "yolo" })).rejects.toThrow("no such mode");
  await expect(
    agent.request(session.setConfigOption, { sessionId, configId: "model", value: "nobody/x" }),
  ).rejects.toThrow("nobody");

  const fork = await agent.request(session.fork, { sessionId, cwd: home.work });
  expect(fork.sessionId).not.toBe(sessionId);
  await agent.request(session.close, { sessionId });
  await expect(agent.request(session.prompt, { sessionId, prompt: said("more") })).rejects.toThrow("not open");
  const before = editor.updates.length;
  await agent.request(session.resume, { sessionId, cwd: home.work });
  expect(editor.updates.slice(before).some(({ update }) => update.sessionUpdate === "user_message_chunk")).toBe(false);
  await agent.request(session.delete, { sessionId });
  await expect(agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] })).rejects.toThrow();
  const { sessions } = await agent.request(session.list, {});
  expect(sessions.map((one) => one.sessionId)).toEqual([fork.sessionId]);
  expect(await editor.leave()).toBe(0);
});

test("a fork works in the folder that the editor names, and its source stays where it was", async () => {
  using home = temporaryHome();
  const other = join(home.path, "other");
  mkdirSync(other);
  const editor = await openEditor(home);
  const { agent } = editor;
  const { sessionId } = await agent.request(session.new, { cwd: home.work, mcpServers: [] });
  await agent.request(session.prompt, { sessionId, prompt: said("think about rivers") });
  await expect(agent.request(session.fork, { sessionId, cwd: "other" })).rejects.toThrow("must be an absolute path");
  const fork = await agent.request(session.fork, { sessionId, cwd: other });
  await agent.request(session.prompt, { sessionId: fork.sessionId, prompt: said("write a.txt: in the fork") });
  await agent.request(session.prompt, { sessionId, prompt: said("write a.txt: in the source") });
  expect(readFileSync(join(other, "a.txt"), "utf8").trim()).toBe("in the fork");
  expect(readFileSync(join(home.work, "a.txt"), "utf8").trim()).toBe("in the source");
  const there = await agent.request(session.list, { cwd: other });
  expect(there.sessions.map((one) => [one.sessionId, one.cwd])).toEqual([[fork.sessionId, other]]);
  // Its folder is this user's word, not only the journal's.
  await editor.kill();
  const second = await openEditor(home);
  await second.agent.request(session.load, { sessionId: fork.sessionId, cwd: other, mcpServers: [] });
  await second.agent.request(session.prompt, { sessionId: fork.sessionId, prompt: said("append a.txt: and again") });
  expect(readFileSync(join(other, "a.txt"), "utf8")).toContain("and again");
  expect(await second.leave()).toBe(0);
});

test("attached files and links reach the model; audio is refused in words", async () => {
  using home = temporaryHome();
  writeFileSync(join(home.work, "a.txt"), "content of a");
  const editor = await openEditor(home);
  const { sessionId } = await editor.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  const uri = `file://${join(home.work, "a.txt")}`;
  await editor.agent.request(session.prompt, {
    sessionId,
    prompt: [
      { type: "text", text: "look at " },
      { type: "resource", resource: { uri, text: "content of a", mimeType: "text/plain" } },
    ],
  });
  const { stdout } = await home.run(["show", sessionId]);
  expect(stdout).toContain("content of a");
  await expect(
    editor.agent.request(session.prompt, { sessionId, prompt: [{ type: "audio", data: "", mimeType: "audio/wav" }] }),
  ).rejects.toThrow('does not accept prompts with content of the type "audio"');
  expect(await editor.leave()).toBe(0);
});

test("a session that another editor has open is refused with its holder", async () => {
  using home = temporaryHome();
  const first = await openEditor(home);
  const { sessionId } = await first.agent.request(session.new, { cwd: home.work, mcpServers: [] });
  await first.agent.request(session.prompt, { sessionId, prompt: said("think about rivers") });
  const second = await openEditor(home);
  await expect(second.agent.request(session.load, { sessionId, cwd: home.work, mcpServers: [] })).rejects.toThrow(
    /is being written by holdfast \(process \d+/,
  );
  expect(await second.leave()).toBe(0);
  expect(await first.leave()).toBe(0);
});

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HoldfastError, openStore } from "holdfast";
import { expect, onTestFinished, test, vi } from "vitest";
import { Library } from "../../../src/record/library.ts";
import { FINISH } from "../../../src/wrap/editor-to-agent.ts";
import { blocks, rawEditor, said } from "../../wrapped.ts";

const FOLDER = { cwd: "/work", mcpServers: [] };
const RESUMES = { sessionCapabilities: { resume: {} } };
const DRIVEN = { onLoad: false, permit: () => null };

function files() {
  const folder = mkdtempSync(join(tmpdir(), "hf-finish-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return { trace: join(folder, "trace"), fate: join(folder, "fate") };
}

const asked = (trace: string, method: string): string[] =>
  readFileSync(trace, "utf8")
    .split("\n")
    .filter((line) => line.startsWith(`${method} `));

test("the prompt of an editor is answered by the next agent if the first one dies in the middle of it", async () => {
  const { trace, fate } = files();
  await using editor = await rawEditor({ can: RESUMES, trace, fate }, { finishing: DRIVEN });
  const { result } = await editor.ask("session/new", FOLDER);
  writeFileSync(fate, "session/prompt dies");
  const answer = await editor.ask("session/prompt", { sessionId: result.sessionId, prompt: blocks("hello") });
  expect(answer.result).toMatchObject({ stopReason: "end_turn" });
  expect(said(editor.seen).at(-1)).toBe("hello");
  const prompts = asked(trace, "session/prompt");
  expect(prompts).toHaveLength(2);
  expect(prompts[1]).toContain("Your turn was cut off");
  expect(prompts[1]).toContain("the agent has ended");
  const { account } = await editor.library.of(result.sessionId)!.read();
  expect(account.state).toBe("idle");
});

test("without it, the prompt ends with an error, as before", async () => {
  const { trace, fate } = files();
  await using editor = await rawEditor({ can: RESUMES, trace, fate });
  const { result } = await editor.ask("session/new", FOLDER);
  writeFileSync(fate, "session/prompt dies");
  const answer = await editor.ask("session/prompt", { sessionId: result.sessionId, prompt: blocks("hello") });
  expect(answer.error.data).toEqual({ interrupted: true });
  expect((await editor.ask(FINISH, { sessionId: result.sessionId, ...FOLDER })).result).toEqual({});
  expect(asked(trace, "session/prompt")).toHaveLength(1);
});

test("an agent that dies again and again is given up, and its turn is parked with the reason", async () => {
  const { trace } = files();
  await using editor = await rawEditor({ can: RESUMES, trace }, { finishing: DRIVEN });
  const { result } = await editor.ask("session/new", FOLDER);
  const { sessionId } = result;
  const answer = await editor.ask("session/prompt", { sessionId, prompt: blocks("die") });
  expect(answer.error).toMatchObject({
    message: "parked after 3 attempts without progress: the agent has ended",
    data: { code: "TURN_PARKED" },
  });
  expect(asked(trace, "session/prompt")).toHaveLength(4);
  const again = await editor.ask(FINISH, { sessionId, ...FOLDER, asked: true });
  expect(again.error.data).toEqual({ code: "TURN_PARKED" });
  expect(asked(trace, "session/prompt")).toHaveLength(4);
  // A new prompt leaves it.
  expect((await editor.ask("session/prompt", { sessionId, prompt: blocks("hi") })).result).toBeDefined();
});

test("a turn that another process left is finished when it is asked for; a stopped one only by a person", async () => {
  const { trace } = files();
  const store = await openStore("memory:");
  onTestFinished(() => store.close());
  const library = (): Library => new Library(store, ["agent"]);
  const earlier = library();
  for (const [id, by] of [
    ["cut", "close"],
    ["stopped", "user"],
  ] as const) {
    const session = await earlier.create(id, "/work");
    await session.prompt({ prompt: blocks("build it") });
    if (by === "user") await session.ended({ stopReason: "cancelled" }, undefined);
  }
  await earlier.closeAll();
  await using editor = await rawEditor({ can: RESUMES, trace }, { store, library: library(), finishing: DRIVEN });
  const finish = async (sessionId: string, more = {}) =>
    (await editor.ask(FINISH, { sessionId, ...FOLDER, ...more })).result;
  expect(await finish("stopped")).toEqual({ finished: false, turns: 1 });
  expect(await finish("cut")).toMatchObject({ finished: true, turns: 1, stopReason: "end_turn" });
  expect(await finish("cut")).toEqual({ finished: false, turns: 1 });
  expect(await finish("stopped", { asked: true })).toMatchObject({ finished: true });
  expect((await editor.ask(FINISH, { sessionId: "none", ...FOLDER })).error.message).toContain("no such session");
  expect(asked(trace, "session/prompt").every((line) => line.includes("build it"))).toBe(true);
});

test("an editor that loads an interrupted session sees it finished; the rules decide, and the rest is its to answer", async () => {
  const store = await openStore("memory:");
  onTestFinished(() => store.close());
  const earlier = new Library(store, ["agent"]);
  const session = await earlier.create("cut", "/work");
  await session.prompt({ prompt: blocks("ask 1", "ask 2") });
  await earlier.closeAll();
  const permit = (cwd: string, { toolCall }: Readonly<Record<string, unknown>>) =>
    cwd === "/work" && (toolCall as { toolCallId: string }).toolCallId === "ask 1"
      ? { outcome: "selected", optionId: "yes" }
      : null;
  await using editor = await rawEditor(
    { can: RESUMES },
    { store, library: new Library(store, ["agent"]), finishing: { onLoad: true, permit } },
  );
  await editor.ask("session/load", { sessionId: "cut", ...FOLDER });
  const request = await editor.until(({ method }) => method === "session/request_permission");
  expect(request.params.toolCall.toolCallId).toBe("ask 2");
  // A prompt of the editor waits for the end of that turn.
  const later = editor.ask("session/prompt", { sessionId: "cut", prompt: blocks("later") });
  editor.send({ id: request.id, result: { outcome: { outcome: "cancelled" } } });
  expect((await later).result).toMatchObject({ stopReason: "end_turn" });
  const words = said(editor.seen);
  expect(words.filter((text) => text.startsWith("answer to ask"))).toEqual([
    'answer to ask 1: {"outcome":{"outcome":"selected","optionId":"yes"}}',
    'answer to ask 2: {"outcome":{"outcome":"cancelled"}}',
  ]);
  expect(words.at(-1)).toBe("later");
});

test("a driver that has lost its session ends its agent, and nothing more is answered", async () => {
  const { trace } = files();
  await using editor = await rawEditor({ trace }, { finishing: DRIVEN });
  const { result } = await editor.ask("session/new", FOLDER);
  const { sessionId } = result;
  const session = editor.library.of(sessionId)!;
  const agent = editor.wrapped.agent!.pid;
  // What the store throws when another process has taken the session over while this one was stopped.
  vi.spyOn(session, "updates").mockRejectedValueOnce(new HoldfastError("LEASE_LOST", "taken over", {}));
  const answer = await editor.ask("session/prompt", { sessionId, prompt: blocks("one", "ask", "two") });
  expect(answer.error.data).toMatchObject({ code: "LEASE_LOST" });
  await expect.poll(() => isRunning(agent)).toBe(false);
  expect(said(editor.seen)).not.toContain("two");
  expect(asked(trace, "session/prompt")).toHaveLength(1);
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

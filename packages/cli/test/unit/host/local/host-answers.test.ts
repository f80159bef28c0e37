import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import type { Chat, PermissionAsk } from "../../../../src/host/host.ts";
import { ProjectRules } from "../../../../src/trust/project-rules.ts";
import { call, heard, Stage, text } from "../host-stage.ts";

/** A call that no rule allows, and what the model says when it has its result. */
const WRITE = [call("c0", "write", { path: "a.txt", content: "one" })];
const keys = ({ choices }: PermissionAsk): string => choices.map(({ key }) => key).join("");

/** Fails if the chat settles in another status. */
async function until(chat: Chat, status: Chat["state"]["status"]): Promise<void> {
  for (let tries = 0; chat.state.status !== status && tries < 100; tries++) {
    await chat.settled();
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(chat.state.status).toBe(status);
}

test("always in this project: the rule is in the user's configuration, and the next session in this folder does not ask", async () => {
  await using stage = new Stage();
  const first = await stage.chat([WRITE, [text("done")]], { asks: "person" });
  const { events } = heard(first);
  await first.prompt("go");
  await until(first, "waiting");
  const [ask] = first.state.asks;
  expect(keys(ask!)).toBe("yapnt");
  expect(ask!.choices[2]!.label).toBe(`always in this project (${stage.work})`);
  expect(ask!.parts).toContainEqual({ kind: "fact", label: '"always" allows', text: "write(a.txt)" });
  await first.answer("c0", "project");
  await until(first, "idle");
  expect(events).toContainEqual(expect.objectContaining({ type: "notice", level: "info" }));
  expect(new ProjectRules(stage.rules).of(stage.work).allow).toEqual(["write(a.txt)"]);
  await first.close();
  const second = await stage.chat([WRITE, [call("c1", "write", { path: "b.txt", content: "x" })], [text("done")]], {
    asks: "person",
  });
  await second.prompt("go");
  await until(second, "waiting");
  // Only what the rule says: another file is asked about.
  expect(second.state.asks.map(({ input }) => input)).toEqual([{ path: "b.txt", content: "x" }]);
  await second.close();
  expect(JSON.stringify(second.state.items)).not.toContain("Saved as a rule");
});

test("a rule for the project that cannot be saved counts for the session, and that is said", async () => {
  await using stage = new Stage();
  writeFileSync(stage.rules, "{ broken", { mode: 0o600 });
  const chat = await stage.chat([WRITE, [text("done")]], { asks: "person" });
  const { events } = heard(chat);
  await chat.prompt("go");
  await until(chat, "waiting");
  await chat.answer("c0", "project");
  await until(chat, "idle");
  expect(readFileSync(join(stage.work, "a.txt"), "utf8")).toBe("one");
  const notices = events.flatMap((event) => (event.type === "notice" ? [event.text] : []));
  expect(notices).toEqual([expect.stringMatching(/^Allowed in this session only: .*not valid JSON/)]);
  expect(readFileSync(stage.rules, "utf8")).toBe("{ broken");
});

test("no, and why: the model is told the reason, and nothing runs", async () => {
  await using stage = new Stage();
  const chat = await stage.chat([WRITE, [text("done")]], { asks: "person" });
  await chat.prompt("go");
  await until(chat, "waiting");
  await chat.answer("c0", "deny", "use b.txt instead");
  await until(chat, "idle");
  expect(existsSync(join(stage.work, "a.txt"))).toBe(false);
  const told = JSON.stringify(chat.model.prompts.at(-1));
  expect(told).toContain("The user did not allow this call: it did not run: use b.txt instead. Do not try");
});

test("no without a reason: the model is told not to try the same by other means", async () => {
  await using stage = new Stage();
  const chat = await stage.chat([WRITE, [text("done")]], { asks: "person" });
  await chat.prompt("go");
  await until(chat, "waiting");
  await chat.answer("c0", "deny");
  await until(chat, "idle");
  expect(JSON.stringify(chat.model.prompts.at(-1))).toContain("Do not try to achieve the same by other means");
});

test("where a rule asks every time, there is no always: it would be a lie", async () => {
  await using stage = new Stage();
  const chat = await stage.chat([WRITE, [text("done")]], { asks: "person", config: { ask: ["write"] } });
  await chat.prompt("go");
  await until(chat, "waiting");
  const [ask] = chat.state.asks;
  expect(keys(ask!)).toBe("ynt");
  expect(ask!.always).toBe("nothing: you are asked about this call every time");
  for (const answer of ["always", "project"] as const)
    await expect(chat.answer("c0", answer)).rejects.toThrow("is not among the answers");
  expect(existsSync(stage.rules)).toBe(false);
});

test("rules of the project that deny and ask count too, and beat those that allow", async () => {
  await using stage = new Stage();
  const rules = new ProjectRules(stage.rules);
  rules.add(stage.work, "deny", ["write(a.txt)"]);
  rules.add(stage.work, "ask", ["write(b.txt)"]);
  const steps = [[...WRITE, call("c1", "write", { path: "b.txt", content: "two" })], [text("done")]];
  const chat = await stage.chat(steps, { asks: "person", config: { allow: ["*"] } });
  await chat.prompt("go");
  await until(chat, "waiting");
  expect(chat.state.asks.map(({ call }) => call)).toEqual(["c1"]);
  await chat.answer("c1", "allow");
  await until(chat, "idle");
  expect(existsSync(join(stage.work, "a.txt"))).toBe(false);
  expect(existsSync(join(stage.work, "b.txt"))).toBe(true);
});

test("a journal that claims rules for the project grants nothing", async () => {
  await using stage = new Stage();
  const store = await stage.store();
  const session = await store.create({ dialect: "ai-sdk", cwd: stage.work });
  await session.note("allow", ["*"]);
  await session.note("rules", { version: 1, projects: { [stage.work]: { allow: ["*"] } } });
  await store.close();
  const chat = await stage.chat([WRITE, [text("done")]], { asks: "person", id: session.id });
  await chat.prompt("go");
  await until(chat, "waiting");
  expect(chat.state.asks).toHaveLength(1);
});

const BELOW = [call("c0", "write", { path: "a.txt", content: "below" })];
const delegated = (...ids: string[]) => ids.map((id) => call(id, "task", { prompt: `part ${id}` }));

test("a sub-agent asks through its parent: the whole request, with its task; allowed, it runs once", async () => {
  await using stage = new Stage();
  const chat = await stage.chat([delegated("c0"), BELOW, [text("the part")], [text("the whole")]], { asks: "person" });
  const { events } = heard(chat);
  await chat.prompt("go");
  await until(chat, "waiting");
  const [ask] = chat.state.asks;
  expect(ask).toMatchObject({ name: "write", agent: { call: "c0", task: "part c0" } });
  expect(ask!.call).not.toBe("c0");
  expect(ask!.parts).toContainEqual({ kind: "fact", label: "for the task", text: "part c0" });
  expect(existsSync(join(stage.work, "a.txt"))).toBe(false);
  await chat.answer(ask!.call, "allow");
  await until(chat, "idle");
  expect(readFileSync(join(stage.work, "a.txt"), "utf8")).toBe("below");
  expect(chat.state.items.at(-1)).toMatchObject({ kind: "answer", text: "the whole" });
  expect(events.filter(({ type }) => type === "permission.asked")).toHaveLength(1);
  expect(events.findLast(({ type }) => type === "turn.ended")).toMatchObject({ outcome: "completed", denied: 0 });
});

test("a sub-agent is denied, with the reason; its parent goes on, and the denial is counted", async () => {
  await using stage = new Stage();
  const chat = await stage.chat([delegated("c0"), BELOW, [text("the part")], [text("the whole")]], { asks: "person" });
  const { events } = heard(chat);
  await chat.prompt("go");
  await until(chat, "waiting");
  await chat.answer(chat.state.asks[0]!.call, "deny", "not here");
  await until(chat, "idle");
  expect(existsSync(join(stage.work, "a.txt"))).toBe(false);
  expect(JSON.stringify(chat.model.prompts[2])).toContain("it did not run: not here");
  expect(events.findLast(({ type }) => type === "turn.ended")).toMatchObject({ outcome: "completed", denied: 1 });
});

test("two sub-agents ask at once, with the same call id: each answer counts for its own call", async () => {
  await using stage = new Stage();
  const step = (name: string) => [call("same", "write", { path: `${name}.txt`, content: name })];
  const chat = await stage.chat(
    [delegated("t1", "t2"), step("one"), step("two"), [text("part")], [text("part")], [text("the whole")]],
    { asks: "person" },
  );
  await chat.prompt("go");
  while (chat.state.asks.length < 2) await new Promise((resolve) => setImmediate(resolve));
  const [first, second] = chat.state.asks;
  const fileOf = (ask: PermissionAsk): string => join(stage.work, (ask.input as { path: string }).path);
  await chat.answer(second!.call, "deny");
  expect(chat.state.status).toBe("waiting");
  await chat.answer(first!.call, "allow");
  await until(chat, "idle");
  expect(existsSync(fileOf(first!))).toBe(true);
  expect(existsSync(fileOf(second!))).toBe(false);
});

test("where nobody can be asked, a sub-agent's call is denied", async () => {
  await using stage = new Stage();
  const chat = await stage.chat([delegated("c0"), BELOW, [text("the part")], [text("the whole")]]);
  await chat.prompt("go");
  await until(chat, "idle");
  expect(existsSync(join(stage.work, "a.txt"))).toBe(false);
  expect(JSON.stringify(chat.model.prompts[2])).toContain("nobody is available to approve it");
});

test("R7: a chat is closed while a sub-agent waits: the next one asks the same question, and no step is repeated", async () => {
  await using stage = new Stage();
  const chat = await stage.chat([delegated("c0"), BELOW], { asks: "person" });
  await chat.prompt("go");
  await until(chat, "waiting");
  const before = chat.state.asks;
  await chat.close();
  await chat.store.close();
  expect(existsSync(join(stage.work, "a.txt"))).toBe(false);
  const again = await stage.chat([[text("the part")], [text("the whole")]], { asks: "person", id: chat.id });
  await until(again, "waiting");
  expect(again.state.asks).toEqual(before);
  await again.answer(before[0]!.call, "allow");
  await until(again, "idle");
  expect(readFileSync(join(stage.work, "a.txt"), "utf8")).toBe("below");
  expect(again.state.items.at(-1)).toMatchObject({ kind: "answer", text: "the whole" });
});

test("opening a chat runs nothing by itself, although a rule allows by now what a sub-agent waited for", async () => {
  await using stage = new Stage();
  const chat = await stage.chat([delegated("c0"), BELOW], { asks: "person" });
  await chat.prompt("go");
  await until(chat, "waiting");
  await chat.close();
  await chat.store.close();
  const config = { allow: ["write"] };
  const again = await stage.chat([[text("the part")], [text("the whole")]], { asks: "person", id: chat.id, config });
  await again.settled();
  expect(again.state.status).toBe("interrupted");
  expect(existsSync(join(stage.work, "a.txt"))).toBe(false);
  await again.finish();
  await until(again, "idle");
  expect(existsSync(join(stage.work, "a.txt"))).toBe(true);
});

test("a person stops the turn while a sub-agent waits: its call does not run, and the model is told that it was stopped", async () => {
  await using stage = new Stage();
  const chat = await stage.chat([delegated("c0"), BELOW, [text("and now")]], { asks: "person" });
  await chat.prompt("go");
  await until(chat, "waiting");
  await chat.stop();
  expect(chat.state).toMatchObject({ status: "idle", asks: [], account: { state: "stopped" } });
  await chat.prompt("what now?");
  await until(chat, "idle");
  expect(JSON.stringify(chat.model.prompts.at(-1))).toContain("The sub-agent was stopped.");
  expect(existsSync(join(stage.work, "a.txt"))).toBe(false);
});

test("a rule for the session that is given to a sub-agent counts for all of them", async () => {
  await using stage = new Stage();
  mkdirSync(dirname(stage.rules), { recursive: true });
  const chat = await stage.chat(
    [delegated("t1", "t2"), BELOW, BELOW, [text("part")], [text("part")], [text("the whole")]],
    { asks: "person" },
  );
  await chat.prompt("go");
  while (chat.state.asks.length < 2) await new Promise((resolve) => setImmediate(resolve));
  await chat.answer(chat.state.asks[0]!.call, "always");
  await until(chat, "idle");
  expect(chat.state.asks).toEqual([]);
  expect(readFileSync(join(stage.work, "a.txt"), "utf8")).toBe("below");
});

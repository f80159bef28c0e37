import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Chat } from "../../../src/host/host.ts";
import { MODES, nextMode } from "../../../src/tools/permission/mode.ts";
import { call, Stage, text } from "../host/host-stage.ts";

async function until(chat: Chat, status: Chat["state"]["status"]): Promise<void> {
  while (chat.state.status !== status) await chat.settled();
}

test("Shift+Tab goes around", () => {
  expect(MODES.map(nextMode)).toEqual(["accept edits", "plan", "ask"]);
});

test("accept edits: files of the folder are written without asking; commands, guarded files and other folders are asked about", async () => {
  await using stage = new Stage();
  const calls = [
    call("c0", "write", { path: "a.txt", content: "a" }),
    call("c1", "shell", { command: "touch b.txt" }),
    call("c2", "write", { path: ".env", content: "SECRET=1" }),
    call("c3", "write", { path: "../outside.txt", content: "o" }),
  ];
  const chat = await stage.chat([calls, [text("done")]], { asks: "person" });
  chat.setMode("accept edits");
  await chat.prompt("go");
  await until(chat, "waiting");
  expect(chat.state.asks.map((ask) => ask.call)).toEqual(["c1", "c2", "c3"]);
  for (const { call: id } of chat.state.asks) await chat.answer(id, "deny");
  await until(chat, "idle");
  expect(readFileSync(join(stage.work, "a.txt"), "utf8")).toBe("a");
  expect(existsSync(join(stage.work, "b.txt"))).toBe(false);
});

test("plan: nothing that could change something runs, whatever the rules allow, and the model is told why", async () => {
  await using stage = new Stage();
  const calls = [
    call("c0", "write", { path: "a.txt", content: "a" }),
    call("c1", "shell", { command: "touch b.txt" }),
    call("c2", "list", {}),
  ];
  const chat = await stage.chat([calls, [text("the plan")]], { asks: "person", config: { allow: ["*"] } });
  chat.setMode("plan");
  await chat.prompt("go");
  await until(chat, "idle");
  expect(existsSync(join(stage.work, "a.txt"))).toBe(false);
  expect(existsSync(join(stage.work, "b.txt"))).toBe(false);
  const told = JSON.stringify(chat.model.prompts.at(-1));
  expect(told).toContain("The user is in plan mode");
  expect(told.match(/the user has switched to plan mode/g)).toHaveLength(2);
});

test("the mode applies from the next call on, and is in no journal: another process starts with ask", async () => {
  await using stage = new Stage();
  const write = (id: string, path: string) => [call(id, "write", { path, content: "x" })];
  const chat = await stage.chat([write("c0", "a.txt"), [text("one")], write("c1", "b.txt"), [text("two")]], {
    asks: "person",
  });
  chat.setMode("accept edits");
  await chat.prompt("one");
  await until(chat, "idle");
  chat.setMode("ask");
  await chat.prompt("two");
  await until(chat, "waiting");
  chat.setMode("accept edits");
  expect(chat.state.asks, "an open question stays open").toHaveLength(1);
  await chat.answer("c1", "deny");
  await until(chat, "idle");
  expect(existsSync(join(stage.work, "b.txt"))).toBe(false);
  await chat.close();
  const again = await stage.chat([write("c2", "c.txt"), [text("three")]], { asks: "person", id: chat.id });
  expect(again.state.mode).toBe("ask");
  await again.prompt("three");
  await until(again, "waiting");
  await again.answer("c2", "deny");
  await until(again, "idle");
});

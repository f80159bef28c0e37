import { spawn } from "node:child_process";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { validateOpenaiChat } from "@holdfast/testkit";
import { openStore, type Session } from "holdfast";
import { describe, expect, test } from "vitest";
import { treeOf } from "../../../holdfast/test/place.ts";
import { bin, ended, temporaryHome } from "../command.ts";

const KEY = `ghp_${"a1B2".repeat(9)}`;

/** In the middle of a turn: it is being written to for as long as the test has it. */
async function living(
  path: string,
): Promise<AsyncDisposable & { readonly id: string; readonly session: Session<unknown> }> {
  const store = await openStore(path, { durability: "process" });
  const session = await store.create({ dialect: "anthropic", intents: true, title: "A talk" });
  const turn = await session.startTurn({ role: "user", content: `the token is ${KEY}` });
  const call = { type: "tool_use", id: "toolu_1", name: "shell", input: { command: "npm test" } };
  await turn.append({ role: "assistant", content: [{ type: "text", text: "I <b>try</b>." }, call] });
  await turn.tool("toolu_1", () => "12 passed");
  turn.request().draft.push({ text: "All is w" });
  await session.flush();
  return { id: session.id, session, [Symbol.asyncDispose]: () => store.close() };
}

describe("holdfast export", () => {
  test("C16: a live session, in every format, and not a byte of it is disturbed", async () => {
    using home = temporaryHome();
    await using live = await living(home.store);
    const before = treeOf(join(home.store, "sessions"));
    const markdown = await home.run(["export", live.id]);
    expect(markdown).toMatchObject({ code: 0, stderr: "" });
    expect(markdown.stdout).toMatch(/^# A talk\n/);
    expect(markdown.stdout).toContain("12 passed");
    const lines = await home.run(["export", live.id.slice(-8), "--format", "jsonl"]);
    const records = lines.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(records.map(({ seq }) => seq)).toEqual(records.map((_, index) => index + 1));
    expect(records.some(({ kind }) => kind === "draft")).toBe(true);
    const own = await home.run(["export", "latest", "-f", "messages"]);
    expect(JSON.parse(own.stdout)).toEqual(live.session.messages);
    const chat = JSON.parse((await home.run(["export", "latest", "-f", "openai-chat"])).stdout);
    expect(validateOpenaiChat(chat)).toEqual([]);
    expect(chat[1].tool_calls[0].id).toBe("toolu_1");
    expect(treeOf(join(home.store, "sessions"))).toEqual(before);
  });

  test("C24: under umask 000 the file is 0600; it replaces nothing without --force", async () => {
    using home = temporaryHome();
    await using live = await living(home.store);
    const command = `umask 000; exec "$0" "$@"`;
    const args = ["-c", command, process.execPath, bin, "export", live.id, "-o", "talk.html", "--redact"];
    const child = spawn("sh", args, {
      cwd: home.work,
      env: { PATH: process.env["PATH"], HOLDFAST_CONFIG: "", ...home.env },
    });
    child.stdin.end();
    expect(await ended(child)).toMatchObject({ code: 0, stderr: "" });
    const file = join(home.work, "talk.html");
    expect((statSync(file).mode & 0o777).toString(8)).toBe("600");
    const page = readFileSync(file, "utf8");
    expect(page).toMatch(/^<!doctype html>/);
    expect(page).not.toContain(KEY);
    expect(page).not.toContain("<b>try");
    const again = await home.run(["export", live.id, "-o", "talk.html"]);
    expect(again).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("--force") });
    expect(readFileSync(file, "utf8")).toBe(page);
    expect(await home.run(["export", live.id, "-o", "talk.html", "--force"])).toMatchObject({ code: 0 });
    expect(readFileSync(file, "utf8")).toContain(KEY);
  });

  test("mistakes are said in a line, with the right exit code, and nothing is written", async () => {
    using home = temporaryHome();
    await using live = await living(home.store);
    const nobody = await home.run(["export", "01a00000-0000-7000-8000-000000000000", "-o", "a.md"]);
    expect(nobody).toMatchObject({ code: 3, stdout: "" });
    expect(await home.run(["export", live.id, "-f", "pdf"])).toMatchObject({ code: 2, stdout: "" });
    expect(await home.run(["export", live.id, "-o", "a.doc"])).toMatchObject({ code: 2, stdout: "" });
    expect(await home.run(["export", live.id, "-o", "no/such/folder/a.md"])).toMatchObject({ code: 1, stdout: "" });
    expect(existsSync(join(home.work, "a.md"))).toBe(false);
    for (const { stderr } of [nobody]) expect(stderr).not.toContain("    at ");
  });
});

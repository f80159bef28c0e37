import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { expect, test, vi } from "vitest";
import type { ChatState, Host } from "../../../src/host/host.ts";
import { Controller } from "../../../src/screen/controller.ts";
import type { KeyName } from "../../../src/screen/input/keys.ts";
import type { Item } from "../../../src/transcript/item.ts";
import { ScriptedChat, scriptedHost } from "../../screen/scripted-host.ts";

const LONG = Array.from({ length: 300 }, (_, i) => `line ${i}`).join("\n");
const ASKED: Item = { kind: "prompt", id: "m1", at: "2026-11-16T10:00:00.000Z", turn: 1, text: "asked here" };

/** Somebody at a chat in a folder of their own. */
class Writer implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "holdfast-line-"));
  readonly chat: ScriptedChat;
  readonly controller: Controller;
  nowMs = 1_000_000;

  constructor(change: Partial<ChatState> = {}, host: Partial<Host> = {}) {
    this.chat = new ScriptedChat("s1", { cwd: this.folder, ...change });
    const environment = {
      host: { ...scriptedHost(this.chat), ...host },
      colour: false,
      now: () => this.nowMs,
      exportTo: async () => "out.md",
    };
    this.controller = new Controller(environment as never, { columns: 80, rows: 24 });
    this.controller.show(this.chat, false);
  }

  press(...names: KeyName[]): void {
    for (const name of names) this.controller.key({ name });
  }

  type(text: string): void {
    for (const character of text) this.controller.key({ name: "text", text: character });
  }

  paste(text: string): void {
    this.controller.key({ name: "paste", text });
  }

  get live(): string {
    return stripVTControlCharacters(this.controller.renderer.picture.live);
  }

  async sees(...wanted: readonly string[]): Promise<void> {
    await vi.waitFor(() => {
      const { written, live } = this.controller.renderer.picture;
      const all = stripVTControlCharacters(`${written.join("\n")}\n${live}`);
      for (const text of wanted) expect(all).toContain(text);
    }, 60_000);
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

test("a long paste is shown by its size and sent in full", () => {
  using writer = new Writer();
  writer.type("Why? ");
  writer.paste(LONG);
  expect(writer.live).toContain("❯ Why? [300 lines pasted]");
  writer.press("enter");
  expect(writer.chat.told).toEqual([`prompt Why? ${LONG}`]);
});

test("@ lists the files of the folder, and Tab completes one", async () => {
  using writer = new Writer();
  mkdirSync(join(writer.folder, "src"));
  writeFileSync(join(writer.folder, "my notes.md"), "");
  writer.type("see @");
  await writer.sees("  my notes.md", "  src/");
  writer.type("m");
  writer.press("tab");
  expect(writer.live).toContain('❯ see @"my notes.md"');
});

test("a file dropped on the terminal becomes a mention; any other text stays text", () => {
  using writer = new Writer();
  writeFileSync(join(writer.folder, "a b.png"), "");
  writer.paste(`'${join(writer.folder, "a b.png")}'`);
  expect(writer.live).toContain('❯ @"a b.png"');
  writer.press("enter");
  writer.paste("/no/such/file");
  expect(writer.live).toContain("❯ /no/such/file");
});

test("↑ goes on to the prompts of other sessions in this folder, and Ctrl+R searches them all", async () => {
  using writer = new Writer({ items: [ASKED] }, { prompts: async () => ["fix the tests", "write the docs"] });
  writer.press("up");
  expect(writer.live).toContain("❯ asked here");
  await vi.waitFor(() => {
    writer.press("up");
    expect(writer.live).toContain("❯ fix the tests");
  });
  writer.press("searchHistory");
  await writer.sees("Earlier prompts", "asked here", "write the docs", "fix the tests");
  writer.type("docs");
  writer.press("enter");
  expect(writer.live).toContain("❯ write the docs");
});

test("a list of earlier prompts that grows while it is open keeps the chosen one", async () => {
  const { promise, resolve } = Promise.withResolvers<readonly string[]>();
  using writer = new Writer({ items: [ASKED] }, { prompts: () => promise });
  writer.press("searchHistory");
  resolve(["one", "two"]);
  await writer.sees("two");
  writer.press("enter");
  expect(writer.live).toContain("❯ asked here");
});

test("Esc twice clears the line, which ↑ brings back; on an empty line it goes back to a prompt", () => {
  using writer = new Writer({ items: [ASKED] });
  writer.type("half a thought");
  writer.press("escape");
  expect(writer.live).toContain("half a thought");
  writer.press("escape");
  expect(writer.live).not.toContain("half a thought");
  writer.press("up");
  expect(writer.live).toContain("half a thought");
  writer.press("killToStart");
  writer.nowMs += 5_000;
  writer.press("escape");
  writer.nowMs += 5_000;
  writer.press("escape");
  expect(writer.live).not.toContain("Rewind");
  writer.press("escape");
  expect(writer.live).toContain("Rewind to before which prompt?");
});

test("!command runs, is shown, and joins the next prompt", async () => {
  using writer = new Writer();
  writer.type("!echo hello; exit 3");
  writer.press("enter");
  await writer.sees("! echo hello; exit 3", "ended with exit code 3", "❯ [output of echo hello; exit 3]");
  expect(writer.chat.told, "the model is not asked").toEqual([]);
  writer.type("why?");
  writer.press("enter");
  expect(writer.chat.told).toEqual(["prompt I ran `echo hello; exit 3` (exit code 3):\n\n```\nhello\n```\n why?"]);
});

test("Esc stops a !command", async () => {
  using writer = new Writer();
  writer.type("!sleep 600");
  writer.press("enter");
  await writer.sees("running sleep 600");
  writer.press("escape");
  await writer.sees("ended with SIGTERM");
});

test("another program edits the whole prompt, pastes included; if it fails, the prompt stays", async () => {
  using writer = new Writer();
  writer.paste(LONG);
  await writer.controller.editText(async (text) => {
    expect(text).toBe(LONG);
    return "shorter";
  });
  expect(writer.live).toContain("❯ shorter");
  await writer.controller.editText(() => Promise.reject(new Error("The editor ended with exit code 1.")));
  await writer.sees("The editor ended with exit code 1.", "❯ shorter");
});

test("what is offered before the model is real says so", () => {
  using writer = new Writer();
  expect(writer.controller.renderer.picture.written.join("\n")).toContain("offline is a scripted stand-in");
});

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

test("an image dropped on the terminal is sent with the prompt, as it was when it was dropped", () => {
  using writer = new Writer();
  const path = join(writer.folder, "shot.png");
  writeFileSync(path, PNG);
  writer.paste(path);
  writeFileSync(path, "something else");
  expect(writer.live).toContain("❯ [image shot.png]");
  writer.press("enter");
  expect(writer.chat.told, "an image alone asks nothing").toEqual([]);
  writer.type("what is this?");
  writer.press("enter");
  expect(writer.chat.told).toEqual(["prompt  what is this? + shot.png image/png"]);
  writer.press("up");
  expect(writer.live, "the history has it too").toContain("❯ [image shot.png] what is this?");
});

test("a file that is no image, or too large, is mentioned by its path", async () => {
  using writer = new Writer();
  writeFileSync(join(writer.folder, "fake.png"), "not a picture");
  writer.paste(join(writer.folder, "fake.png"));
  expect(writer.live).toContain("❯ @fake.png");
  writeFileSync(join(writer.folder, "huge.png"), Buffer.concat([PNG, Buffer.alloc(4_000_000)]));
  writer.paste(join(writer.folder, "huge.png"));
  await writer.sees("❯ @fake.png @huge.png", "The image is too large for a model (4.0 MB");
});

test("a prompt that could not be recorded stays in the line with its image, and so does one taken out of the queue", async () => {
  const image = { name: "a.png", mediaType: "image/png", data: PNG.toString("base64") };
  using writer = new Writer({ status: "running", queue: [{ id: "q1", text: "look", images: [image] }] });
  writer.press("up");
  await writer.sees("❯ look[image a.png]");
  writer.chat.become({ status: "idle", queue: [] });
  writer.chat.failure = new Error("The disk is full.");
  writer.press("enter");
  await writer.sees("The disk is full.", "❯ look[image a.png]");
  writer.press("enter");
  await vi.waitFor(() => expect(writer.chat.told.at(-1)).toBe("prompt look + a.png image/png"));
});

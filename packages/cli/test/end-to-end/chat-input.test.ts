import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryHome } from "../command.ts";
import { answered, chat } from "../screen/chat.ts";

/** A picture of one pixel. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

describe.concurrent("writing a prompt", () => {
  test("@ lists files and Tab completes; a dropped image is sent with the prompt", async (context) => {
    using home = temporaryHome();
    mkdirSync(join(home.work, "src"));
    writeFileSync(join(home.work, "my notes.md"), "");
    writeFileSync(join(home.work, "shot.png"), Buffer.from(PNG, "base64"));
    await using terminal = await chat(context, home);
    await terminal.type("see @");
    await terminal.until("  my notes.md", "  src/");
    await terminal.type("my");
    await terminal.keys("Tab");
    await terminal.until('❯ see @"my notes.md"');
    await terminal.paste(join(home.work, "shot.png"));
    await terminal.until('❯ see @"my notes.md" [image shot.png]');
    await terminal.keys("Enter");
    await answered(terminal, "[shot.png: image/png, ");
  });

  test("a long paste is shown by its size, can be shown in full, and is sent in full", async (context) => {
    using home = temporaryHome();
    await using terminal = await chat(context, home);
    await terminal.paste(Array.from({ length: 300 }, (_, i) => `line ${i}`).join("\n"));
    await terminal.until("❯ [300 lines pasted]");
    await terminal.keys("C-o");
    await terminal.until("line 299", (screen) => !screen.includes("lines pasted"));
    await terminal.keys("Enter");
    // The line itself shows these words while it is still idle: only an answer follows what was sent.
    await answered(terminal, 'I did not understand "line 0');
    expect((await home.run(["show", "latest"])).stdout).toContain("line 299");
  });

  test("!command runs with the person's rights, and its output joins the next prompt", async (context) => {
    using home = temporaryHome();
    await using terminal = await chat(context, home);
    await terminal.say("!touch made; echo it is made");
    await terminal.untilAll(
      "! touch made; echo it is made",
      "  it is made",
      "❯ [output of touch made; echo it is made]",
    );
    expect(existsSync(join(home.work, "made"))).toBe(true);
    await terminal.say("thanks");
    // As above: the line shows the word itself before it is sent.
    await answered(terminal, "I did not understand");
    expect((await home.run(["show", "latest"])).stdout).toContain("it is made");
  });

  test("Ctrl+R finds what was asked in another session of this folder, and Esc Esc goes back to a prompt", async (context) => {
    using home = temporaryHome();
    await home.run(["run", "think about rivers"]);
    await using terminal = await chat(context, home);
    await terminal.keys("C-r");
    await terminal.until("Earlier prompts", "think about rivers");
    await terminal.keys("Enter");
    await terminal.until("❯ think about rivers");
    await terminal.keys("Enter");
    await answered(terminal, "I thought about rivers");
    await terminal.keys("Escape", "Escape");
    await terminal.until("Rewind to before which prompt?");
  });

  test("Ctrl+G lets the person's own editor write the prompt", async (context) => {
    using home = temporaryHome();
    const editor = join(home.path, "editor");
    writeFileSync(editor, '#!/bin/sh\ncat "$1" > "$HOME/seen"\nprintf "think about lakes" > "$1"\n');
    chmodSync(editor, 0o755);
    await using terminal = await chat(context, home, [], { env: { VISUAL: editor } });
    await terminal.type("think about");
    await terminal.keys("C-g");
    await terminal.until("❯ think about lakes");
    expect(readFileSync(join(home.path, "seen"), "utf8")).toBe("think about");
  });

  test("Shift+Tab: with accept edits a file is written without asking; in plan mode nothing runs", async (context) => {
    using home = temporaryHome();
    await using terminal = await chat(context, home);
    await terminal.keys("BTab");
    await terminal.until(/^idle · accept edits/m);
    await terminal.say("write a.txt: one");
    await answered(terminal, "✓ write a.txt");
    expect(readFileSync(join(home.work, "a.txt"), "utf8")).toBe("one\n");
    await terminal.keys("BTab");
    await terminal.until(/^idle · plan/m);
    await terminal.say("write b.txt: two");
    await answered(terminal, "Denied: write b.txt");
    expect(existsSync(join(home.work, "b.txt"))).toBe(false);
    await terminal.keys("BTab");
    await terminal.until(/^idle · offline/m);
  });
});

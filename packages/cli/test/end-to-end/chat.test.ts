import { existsSync, mkdirSync, readFileSync, realpathSync, rmdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryHome } from "../command.ts";
import { answerable, answered, chat, inTerminal, stopped } from "../screen/chat.ts";

describe.concurrent("chat in a real terminal", () => {
  test("a reply of 10,000 lines: all of it, once, in order", async (context) => {
    using home = temporaryHome();
    await using terminal = await chat(context, home);
    await terminal.say("tell me a story of 10000 lines");
    await terminal.until("(line 9992)", /^idle\b/m);
    const all = await terminal.all();
    const numbers = [...all.matchAll(/\(line (\d+)\)/g)].map(([, number]) => Number(number));
    expect(numbers).toHaveLength(1500);
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    expect(new Set(numbers).size).toBe(1500);
    expect(all).toContain("❯ tell me a story of 10000 lines");
  });

  test("keys are answered while a reply streams as fast as it can", async (context) => {
    using home = temporaryHome();
    await using terminal = await chat(context, home);
    // So long that it cannot end before somebody has looked at it.
    await terminal.say("tell me a story of 200000 lines");
    await terminal.until(/line: \d{3,} /, /^. running /mu);
    await terminal.type("typed meanwhile");
    await terminal.until("❯ typed meanwhile", /^. running /mu);
    await terminal.keys("Escape");
    await terminal.until("❯ typed meanwhile");
    await stopped(terminal);
  });

  for (const [columns, rows] of [
    [80, 24],
    [200, 60],
  ] as const) {
    test(`streams headings, lists and code at ${columns} × ${rows}: each line once, none wider than the screen`, async (context) => {
      using home = temporaryHome();
      await using terminal = await chat(context, home, [], { columns, rows });
      await terminal.say("tell me a story of 40 lines");
      // The status line is drawn last: all of what is above it is there once all of it is.
      const all = await terminal.untilAll("line: 35 });", /^idle · offline\/offline · \d+% of \S+ · ~\/work$/m);
      expect(all).toContain("❯ tell me a story of 40 lines");
      expect(all).toContain("# Chapter 2: ");
      expect(all).toContain("│ const chapter2 = await journal.append({ line: 35 });");
      expect(all).toMatch(/^• .+ \(line 30\)$/m);
      expect(all).toContain("👩‍🚀 Somebody waved.");
      const numbers = [...all.matchAll(/\(line (\d+)\)/g)].map(([, number]) => Number(number));
      expect(numbers).toEqual([10, 11, 12, 30, 31, 32]);
      expect(all.match(/^idle\b/gm)).toHaveLength(1);
    });
  }

  test("a call asks before it runs: allow once, always, deny; what it would do is shown", async (context) => {
    using home = temporaryHome();
    await using terminal = await chat(context, home);
    await terminal.say("1. write a.txt: one 2. write b.txt: two 3. append b.txt: three");
    const ask = await terminal.until(/Allow write\?[\s\S]*y {2}allow once[\s\S]*▸ n {2}deny/);
    expect(ask).toContain("path: a.txt");
    expect(ask).toContain("file: new");
    expect(ask).toContain("│ one↵");
    expect(existsSync(join(home.work, "a.txt"))).toBe(false);
    await terminal.say("y");
    await terminal.untilAll(/✓ write a\.txt[\s\S]*Allow[\s\S]*b\.txt[\s\S]*▸ n/);
    expect(readFileSync(join(home.work, "a.txt"), "utf8")).toBe("one\n");
    // With the arrows too.
    await terminal.keys("Down", "Up", "Enter");
    await terminal.untilAll(/⊘ write b\.txt {2}denied/);
    await terminal.until(/^(idle|\? waiting)\b/m);
    expect(existsSync(join(home.work, "b.txt"))).toBe(false);
  });

  test("what was typed before a question appeared does not answer it; Enter alone is a no", async (context) => {
    using home = temporaryHome();
    await using terminal = await chat(context, home, ["--allow", "shell"]);
    await terminal.say("1. run until test -e go; do sleep 0.05; done 2. write a.txt: one");
    await terminal.until(/shell until test .* running/);
    await terminal.type("y");
    await terminal.until("❯ y");
    writeFileSync(join(home.work, "go"), "");
    await terminal.until(/Allow write\?[\s\S]*clear the input line to choose/);
    await terminal.keys("Enter");
    await terminal.until("queued: y");
    await answerable(terminal);
    await terminal.keys("Enter");
    await terminal.untilAll(/⊘ write a\.txt {2}denied/);
    expect(existsSync(join(home.work, "a.txt"))).toBe(false);
  });

  test("a long request says how much is not shown, and v shows all of it; control characters are visible", async (context) => {
    using home = temporaryHome();
    await using terminal = await chat(context, home);
    await terminal.paste(`run echo ${"x ".repeat(3_000)}\u200b; rm precious`);
    await terminal.keys("Enter");
    const screen = await answerable(terminal);
    expect(screen).toMatch(/… v shows \d+ more characters, on 1 line/);
    expect(screen.replaceAll(/\n */g, "")).toContain("<U+200B>; rm precious");
    expect(screen).toContain('"always" allows: exactly this command');
    await terminal.say("v");
    // A terminal shows a prefix of what was written: all of the request is there once what follows it is.
    const [whole] = (await terminal.untilAll(/Allow shell\? Full request:[\s\S]*?runs in:/)).match(
      /Full request:[\s\S]*?runs in:/,
    )!;
    expect(whole.match(/x/g)).toHaveLength(3_000);
    await terminal.say("no");
    await terminal.untilAll(/⊘ shell/);
  });

  test("the folder of a write is swapped for a link while the question stands: yes does not write through it", async (context) => {
    using home = temporaryHome();
    const [sub, precious] = [join(home.work, "sub"), join(home.work, "..", "precious")];
    for (const folder of [sub, precious]) mkdirSync(folder);
    await using terminal = await chat(context, home);
    await terminal.say("write sub/a.txt: evil");
    expect(await answerable(terminal)).toContain(`real path: ${join(realpathSync(home.work), "sub", "a.txt")}`);
    rmdirSync(sub);
    symlinkSync(precious, sub);
    await terminal.say("yes");
    // The model tries again, and the person is asked again, with where it leads now.
    await terminal.until(/real path: .*\/precious\/a\.txt[\s\S]*▸ n {2}deny/);
    expect(await terminal.all()).toMatch(/✗ write sub\/a\.txt[\s\S]*Not run/);
    expect(existsSync(join(precious, "a.txt"))).toBe(false);
  });

  test("what is always allowed is not asked about again in this session", async (context) => {
    using home = temporaryHome();
    await using terminal = await chat(context, home);
    await terminal.say("write a.txt: one");
    await terminal.until("Allow write?");
    await answerable(terminal);
    await terminal.say("a");
    await answered(terminal, "✓ write a.txt");
    await terminal.say("write a.txt: again");
    await terminal.untilAll((all) => (all.match(/✓ write a\.txt/g) ?? []).length === 2, /^idle\b/m);
    expect(readFileSync(join(home.work, "a.txt"), "utf8")).toBe("again\n");
  });

  test("prompts are queued while it works, shown, taken back, and delivered; Esc keeps what was produced (C11, C12)", async (context) => {
    using home = temporaryHome();
    writeFileSync(join(home.work, "a.txt"), "the text of a\n");
    await using terminal = await chat(context, home, ["--allow", "shell"]);
    await terminal.say("run echo begun; sleep 300");
    await terminal.until(/shell echo begun; sleep 300 {2}running\n {2}│ begun/);
    await terminal.say("read a.txt");
    await terminal.say("taken back 日本");
    await terminal.until(/queued: read a\.txt\n {2}queued: taken back 日本/);
    await terminal.keys("Up");
    await terminal.until((screen) => screen.includes("❯ taken back 日本") && !screen.includes("queued: taken"));
    await terminal.keys("C-u", "Escape");
    await terminal.untilAll(/stopped by user; everything produced so far is saved/);
    await terminal.until(/1 prompt is queued:\n {2}queued: read a\.txt/);
    await terminal.say("s");
    await answered(terminal, "a.txt: 1 line");
    const all = await terminal.all();
    expect(all).toMatch(/shell echo begun; sleep 300[\s\S]*❯ read a\.txt[\s\S]*✓ read a\.txt/);
    expect(all).not.toContain("❯ taken back");
  });

  test("Esc in the middle of an answer: its words stay, marked as cut off (C12)", async (context) => {
    using home = temporaryHome();
    await using terminal = await chat(context, home, [], { env: { HOLDFAST_OFFLINE_DELAY_MS: "5" } });
    await terminal.say("tell me a story of 4000 lines");
    await terminal.untilAll(/line 10\)/);
    await terminal.keys("Escape");
    await stopped(terminal);
    const { stdout } = await home.run(["show", "latest"]);
    expect(stdout).toContain("line 10)");
    const all = await terminal.all();
    expect(all).toMatch(/line 10\)[\s\S]*… cut off here/);
    // What is on the screen is what is recorded: nothing was shown twice.
    expect(all.match(/\(line 10\)/g)).toHaveLength(1);
    await terminal.keys("C-c");
    await terminal.until("Ctrl+C again to quit");
    await terminal.keys("C-c");
    expect(await terminal.ended()).toEqual({ code: 0, signal: null });
    await terminal.until("Everything is saved. To resume: holdfast resume ");
  });

  test("the editor: several lines, a paste, wide characters, history, cursor keys", async (context) => {
    using home = temporaryHome();
    await using terminal = await chat(context, home);
    await terminal.type("eins 日本");
    await terminal.keys("M-Enter");
    await terminal.type("zwei\\");
    await terminal.keys("Enter");
    await terminal.paste("drei 👩‍🚀\nvier\nfünf");
    await terminal.until(/❯ eins 日本\n {2}zwei\n {2}drei 👩‍🚀\n {2}vier\n {2}fünf/);
    await terminal.untilCursorIn(6);
    await terminal.keys("Up", "Up", "Up", "Up", "End");
    await terminal.keys("BSpace");
    await terminal.type("語");
    await terminal.until("❯ eins 日語");
    await terminal.untilCursorIn(2 + "eins ".length + 4);
    await terminal.keys("Enter");
    await answered(terminal, 'I did not understand "eins 日語 zwei drei 👩‍🚀 vier fünf"');
    await terminal.keys("Up");
    await terminal.until((screen) => (screen.match(/❯ eins 日語\n {2}zwei/g) ?? []).length >= 1);
    await terminal.keys("C-c");
    await terminal.type("x".repeat(100));
    await terminal.until(/❯ x{77}\n {2}x{23}\n/);
  });

  test("what is typed before the screen is there is not lost, and Enter behind it sends it", async (context) => {
    using home = temporaryHome();
    await using terminal = await inTerminal(context, home, ["chat"]);
    await terminal.say("think about rivers");
    const screen = await answered(terminal, "I thought about rivers");
    expect(screen.match(/^─+$/gm)).toHaveLength(1);
  });

  test("commands are completed by Tab and explained; an unknown one is not sent to the model", async (context) => {
    using home = temporaryHome();
    await using terminal = await chat(context, home);
    await terminal.type("/re");
    await terminal.until(/\/rewind +go back to before a prompt[\s\S]*\/rename <title> +rename this session/);
    await terminal.type("n");
    await terminal.keys("Tab");
    await terminal.until("❯ /rename");
    await terminal.say("A name of mine");
    await terminal.until(/^idle .* · A name of mine$/m);
    await terminal.say("/nonsense");
    await terminal.until("Unknown command /nonsense. /help lists the commands.");
    await terminal.keys("C-u");
    await terminal.say("/exprot");
    await terminal.until("Unknown command /exprot. Did you mean /export?");
    await terminal.keys("C-u");
    await terminal.say("/help");
    await terminal.untilAll(/\/sessions +switch to another session/);
    await terminal.say("/model nosuch/x");
    await terminal.until('Unknown provider "nosuch"');
    await terminal.say("think about rivers");
    await answered(terminal, "I thought about rivers");
    await terminal.say("/export talk.html");
    await terminal.until("Saved to talk.html.");
    expect(readFileSync(join(home.work, "talk.html"), "utf8")).toContain("think about rivers");
    await terminal.say("/export talk.html");
    await terminal.until("talk.html already exists and was not touched. Give another name.");
    await terminal.keys("C-d");
    expect(await terminal.ended()).toEqual({ code: 0, signal: null });
  });

  test("/rewind brings the prompt back to be edited; /undo, /clear, /compact and /fork work on it", async (context) => {
    using home = temporaryHome();
    writeFileSync(join(home.work, "a.txt"), "one\n");
    await using terminal = await chat(context, home, [], { rows: 40 });
    await terminal.say("read a.txt");
    await answered(terminal, "a.txt: 1 line");
    await terminal.say("think about rivers");
    await answered(terminal, "I thought about rivers");
    await terminal.say("/rewind");
    await terminal.until(/Rewind to before which prompt\?[\s\S]*▸ think about rivers/);
    await terminal.type("read");
    await terminal.until(/filter: read\n▸ read a\.txt/);
    await terminal.keys("Escape");
    await terminal.until(/▸ think about rivers/);
    await terminal.keys("Enter");
    await terminal.until(
      (screen) => /Rewound to before that prompt/.test(screen) && /❯ think about rivers\nidle/.test(screen),
    );
    await terminal.keys("C-u");
    await terminal.say("/undo");
    await terminal.until("Undone: the previous conversation is back.");
    await terminal.say("/fork");
    await terminal.until(/Forked from "read a\.txt", which is unchanged/);
    await terminal.say("/clear");
    await terminal.until("The conversation was cleared.");
    await terminal.say("/undo");
    await terminal.until((screen) => (screen.match(/Undone/g) ?? []).length >= 2);
    await terminal.say("/compact");
    await terminal.until("The conversation was compacted.");
    const { stdout } = await home.run(["ls", "--json"]);
    expect(stdout.trim().split("\n").length).toBeGreaterThanOrEqual(2);
  });

  test("C14: /sessions goes to another session while a turn runs; each records into its own", async (context) => {
    using home = temporaryHome();
    await home.run(["run", "think about rivers"]);
    await using terminal = await chat(context, home, ["--allow", "shell", "--allow", "write"], { rows: 40 });
    await terminal.say("1. run until test -e go; do sleep 0.05; done 2. write done.txt: yes");
    await terminal.until(/shell until test .* running/);
    await terminal.say("/sessions");
    await terminal.until(/running, here [\s\S]*think about rivers/);
    await terminal.type("rivers");
    await terminal.until(/▸ think about rivers/);
    await terminal.keys("Enter");
    await terminal.until(/holdfast think about rivers[\s\S]*^idle/m);
    await terminal.say("think about lakes");
    await answered(terminal, "I thought about lakes");
    writeFileSync(join(home.work, "go"), "");
    await terminal.until(/"1\. run until test .*" is done/);
    expect(readFileSync(join(home.work, "done.txt"), "utf8")).toBe("yes\n");
    const other = (await home.run(["show", "latest"])).stdout;
    expect(other).toContain("write done.txt");
    expect(other).not.toContain("lakes");
    await terminal.say("/sessions");
    await terminal.until(/▸ (?!.*here)1\. run until/);
    await terminal.keys("Enter");
    await terminal.until(/holdfast 1\. run until[\s\S]*✓ write done\.txt/);
    const all = await terminal.all();
    expect(all.indexOf("lakes")).toBeLessThan(all.lastIndexOf("done.txt"));
    await terminal.say("run sleep 300");
    await terminal.until(/shell sleep 300 {2}running/);
    await terminal.say("/quit");
    // The hint names the store, so it may take more than one row.
    await terminal.until(/Everything is saved[^❯]*\nIts turn was interrupted. Finish it there\./);
  });

  test("after a resize, both ways: one status line, one editor, nothing left over", async (context) => {
    using home = temporaryHome();
    await using terminal = await chat(context, home, [], { columns: 200, rows: 60 });
    await terminal.say("think about rivers");
    await answered(terminal, "I thought about rivers");
    await terminal.type("half a prompt");
    for (const [columns, rows] of [
      [80, 24],
      [200, 60],
      [66, 20],
    ] as const) {
      await terminal.resize(columns, rows);
      const mark = `${columns}`;
      await terminal.type(mark);
      // The key can be drawn before the new size is known.
      await terminal.until(
        new RegExp(`❯ half a prompt\\d*${mark}$`, "m"),
        once(/^idle/gm),
        once(/^─+$/gm),
        once(/half a prompt/g),
      );
    }
    await terminal.resize(200, 60);
    await terminal.keys("C-u");
    await terminal.say("/sessions");
    await terminal.until(/▸ here think about rivers .* │/);
    await terminal.resize(80, 24);
    await terminal.until(/▸ here think about rivers/, (shown) => !shown.includes(" │ "), once(/Sessions {2}1/g));
    await terminal.keys("Escape");
    await terminal.until(once(/^idle/gm));
  });

  test("made narrower while an answer streams: no row of it stays behind twice", async (context) => {
    using home = temporaryHome();
    const env = { HOLDFAST_OFFLINE_DELAY_MS: "3" };
    await using terminal = await chat(context, home, [], { columns: 140, rows: 30, env });
    await terminal.say("tell me a story of 4000 lines");
    for (const [columns, chapter] of [
      [60, 1],
      [110, 2],
      [50, 3],
    ] as const) {
      await terminal.untilAll(`Chapter ${chapter}:`);
      await terminal.until(/^❯ .*\n. running/mu);
      await terminal.resizeStopped(columns, 30);
    }
    await terminal.untilAll("Chapter 4:");
    await terminal.keys("Escape");
    const said = (await stopped(terminal)) && (await terminal.all());
    const headings = said.match(/Chapter \d+:/g)!;
    expect(headings).toEqual([...new Set(headings)]);
    const sentences = said.replaceAll(/\s+/g, " ").match(/\(line \d+\)/g)!;
    expect(sentences).toEqual([...new Set(sentences)]);
    expect(said.match(/running \d/g)).toBeNull();
  });

  test("made lower and higher again while an answer streams: no row of it is lost, and none is there twice", async (context) => {
    const said = async (heights: readonly number[]): Promise<string> => {
      using home = temporaryHome();
      const env = { HOLDFAST_OFFLINE_DELAY_MS: "3" };
      await using terminal = await chat(context, home, [], { columns: 100, rows: 40, env });
      await terminal.say("tell me a story of 4000 lines");
      for (const [index, rows] of heights.entries()) {
        await terminal.untilAll(`Chapter ${index + 1}:`);
        await terminal.resize(100, rows);
      }
      await terminal.untilAll("Chapter 6:");
      await terminal.keys("Escape");
      const all = (await stopped(terminal)) && (await terminal.all());
      return all.slice(all.indexOf("Chapter 1:"), all.lastIndexOf("Chapter 6:")).replaceAll(/[│\s]+/g, " ");
    };
    const [undisturbed, ...resized] = [await said([]), await said([20, 40, 20, 40]), await said([12, 40, 12, 50])];
    for (const text of resized) expect(text).toBe(undisturbed);
  });

  test("in a window of 40 × 10, also when it is made narrower: no editor and no status line stays behind in the scrollback", async (context) => {
    using home = temporaryHome();
    const env = { HOLDFAST_OFFLINE_DELAY_MS: "2" };
    await using terminal = await chat(context, home, [], { columns: 60, rows: 10, env });
    await terminal.say("tell me a story of 4000 lines");
    await terminal.untilAll("Chapter 2:");
    await terminal.resizeStopped(40, 10);
    await terminal.untilAll("Chapter 4:");
    await terminal.keys("Escape");
    const all = await stopped(terminal).then(() => terminal.all());
    expect(all).not.toMatch(/running \d|type the next prompt/);
    expect(all.match(/^─+$/gm)).toHaveLength(1);
    expect(all.match(/Chapter 2:/g)).toHaveLength(1);
  });

  test("C25: escape sequences, a title, bidirectional controls in a tool's output change nothing on the screen", async (context) => {
    using home = temporaryHome();
    const evil =
      "\u001b[2J\u001b[H\u001b]0;OWNED\u0007\u001b[31mred\u001b[0m \u202eabc\u202c 日本 👩‍🚀\u0007 \u009b5mend";
    writeFileSync(join(home.work, "evil.txt"), `${evil}\n`);
    await using terminal = await chat(context, home, ["--allow", "shell"]);
    const title = await terminal.fact("pane_title");
    await terminal.say("run cat evil.txt; sleep 0.3");
    await answered(terminal, "✓ shell cat evil.txt; sleep 0.3");
    const all = await terminal.all();
    expect(all).toContain("❯ run cat evil.txt");
    expect(all).toMatch(/│ red abc 日本 👩‍🚀/);
    for (const character of ["\u001b", "\u202e", "\u009b", "\u0007"]) expect(all).not.toContain(character);
    expect(await terminal.fact("pane_title")).toBe(title);
    // Verbatim where it is kept.
    const { stdout } = await home.run(["export", "latest", "--format", "messages"]);
    expect(stdout).toContain("\\u001b[2J");
  });
});

/** Whether the screen shows it, and not twice. */
function once(what: RegExp): (screen: string) => boolean {
  return (screen) => screen.match(what)?.length === 1;
}

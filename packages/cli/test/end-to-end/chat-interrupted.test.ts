import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, type TestContext, test } from "vitest";
import { type Home, temporaryHome } from "../command.ts";
import { answerable, answered, chat, inTerminal } from "../screen/chat.ts";
import type { Terminal } from "../screen/terminal.ts";
import { eventually } from "./run-lines.ts";

describe.concurrent("chat after an unclean death", () => {
  test("C3, C9, R7b: SIGKILL with a tool in flight and a prompt queued: the next chat says what was interrupted, shows it, and finishes it", async (context) => {
    using home = temporaryHome();
    const allow = ["--allow", "shell", "--allow", "write"];
    {
      await using terminal = await chat(context, home, allow);
      await terminal.say("1. write a.txt: one 2. run sleep 300 3. write b.txt: two");
      await terminal.until(/shell sleep 300 {2}running/);
      await terminal.say("think about rivers");
      await terminal.until("queued: think about rivers");
      await terminal.signal("SIGKILL");
      expect(await terminal.ended()).toEqual({ code: null, signal: "SIGKILL" });
    }
    await using terminal = await chat(context, home, ["--continue", ...allow]);
    await terminal.until(
      "The last turn: interrupted: its process died (",
      /you asked: 1\. write a\.txt: one 2\. run sleep 300/,
      /• shell sleep 300 {2}still running as process \d+/,
      "queued: think about rivers",
    );
    await terminal.say("s");
    await terminal.untilAll(/── turn 1, cut off at [\s\S]*"command": "sleep 300"/);
    await terminal.say("k");
    await answered(terminal, "I thought about rivers");
    expect(readFileSync(join(home.work, "b.txt"), "utf8")).toBe("two\n");
    expect(await terminal.all()).toMatch(/✓ write b\.txt[\s\S]*❯ think about rivers/);
  });

  test("C2: SIGKILL while it streams: its words are shown, and it can be left", async (context) => {
    using home = temporaryHome();
    {
      await using terminal = await chat(context, home, [], { env: { HOLDFAST_OFFLINE_DELAY_MS: "5" } });
      await terminal.say("tell me a story of 4000 lines");
      await terminal.untilAll(/line 12\)/);
      await terminal.signal("SIGKILL");
      await terminal.ended();
    }
    await using terminal = await chat(context, home, ["--continue"]);
    await terminal.until("it said: …");
    await terminal.say("s");
    // Of what was seen, all but the last 200 ms is promised: some lines of it.
    await terminal.untilAll(/Streamed so far:[\s\S]*Far out at sea[\s\S]*… cut off here/);
    await terminal.say("l");
    // Left, and still unfinished, until the next prompt; a list says the same.
    await terminal.until(/^! interrupted\b/m, (screen) => !screen.includes("letter or arrows"));
    expect((await home.run(["ls", "--status", "interrupted"])).stdout).toContain("tell me a story");
    await terminal.say("think about rivers");
    await answered(terminal, "I thought about rivers");
  });

  test("plain holdfast, while the command still runs: what it prints is shown, and one answer stops it and goes on", async (context) => {
    using home = temporaryHome();
    {
      await using terminal = await chat(context, home, ["--allow", "shell"]);
      await terminal.say("run echo on the way; exec sleep 300");
      await terminal.until(/│ on the way/);
      await terminal.signal("SIGKILL");
      await terminal.ended();
    }
    await using terminal = await inTerminal(context, home, []);
    await terminal.until(
      /still running as process \d+\n {2}│ on the way/,
      /▸ c {2}continue it: wait for process \d+\n {2}k {2}continue it: stop process \d+ first/,
    );
    await terminal.say("k");
    await terminal.untilAll("The command was still running when its agent died, and the user stopped it.", /^idle\b/m);
    expect(await terminal.all()).not.toContain("finish it:");
  });

  test("plain holdfast says that the last session here was interrupted, before anything else; Enter continues it", async (context) => {
    using home = temporaryHome();
    {
      await using terminal = await chat(context, home, ["--allow", "shell"]);
      await terminal.say("run echo $$ > pid; exec sleep 300");
      await eventually(() => existsSync(join(home.work, "pid")) && readFileSync(join(home.work, "pid")).length > 0);
      await terminal.signal("SIGKILL");
      await terminal.ended();
      process.kill(Number(readFileSync(join(home.work, "pid"), "utf8")), "SIGKILL");
    }
    await using terminal = await inTerminal(context, home, []);
    await terminal.until(
      // It says "just now" for a minute, which may be over before the screen is there.
      /A session here was interrupted (just now|\d+ min ago), in `echo \$\$ > pid; exec sleep 300`\./,
      "you asked: run echo $$ > pid; exec sleep 300",
      /▸ c {2}continue it\n {2}n {2}start a new session/,
      "❯ Enter continues it, n starts a new session",
      /^! interrupted\b/m,
    );
    expect((await home.run(["ls"])).stdout).toMatch(/interrupted .* run echo /);
    await terminal.keys("Enter");
    await terminal.untilAll(/✓ shell echo [\s\S]*^idle\b/m);
    expect(await prompts(home)).toEqual(["run echo $$ > pid; exec sleep 300"]);
  });

  for (const [how, args] of [
    ["--continue", ["chat", "--continue"]],
    ["--resume latest", ["chat", "--resume", "latest"]],
    ["the picker", ["resume"]],
  ] as const) {
    test(`R7: a question that was open at SIGKILL is asked again as it was, by ${how}: y allows it, and it runs once`, async (context) => {
      using home = temporaryHome();
      const before = await killedAtQuestion(context, home, "write a.txt: one");
      await using terminal = await inTerminal(context, home, args);
      if (how === "the picker") {
        await terminal.until(/waiting write a\.txt: one/);
        await terminal.keys("Enter");
      }
      await terminal.untilAll(/^\? waiting\b/m, "This approval was pending when the last process ended.");
      expect(questionOn(await answerable(terminal))).toBe(before);
      await terminal.say("y");
      await answered(terminal, "✓ write a.txt");
      expect(readFileSync(join(home.work, "a.txt"), "utf8")).toBe("one\n");
      expect(await prompts(home)).toEqual(["write a.txt: one"]);
    });
  }

  test("R7: a question asked again is denied with n, and the turn goes on", async (context) => {
    using home = temporaryHome();
    await killedAtQuestion(context, home, "write a.txt: one");
    await using terminal = await chat(context, home, ["--continue"]);
    await answerable(terminal);
    await terminal.say("n");
    await answered(terminal, "⊘ write a.txt");
    expect(existsSync(join(home.work, "a.txt"))).toBe(false);
  });

  test("R7: words that are typed at a question asked again wait behind it, and no key discards the turn", async (context) => {
    using home = temporaryHome();
    await killedAtQuestion(context, home, "write a.txt: one");
    await using terminal = await chat(context, home, ["--continue"]);
    await terminal.say("words");
    await terminal.until("queued: words");
    await terminal.say("/clear");
    await terminal.until("A turn is running: stop it first.");
    await terminal.keys("Escape");
    await terminal.until("The last turn: waiting for approval");
    await terminal.say("think about rivers");
    await terminal.until("queued: think about rivers");
    await terminal.until(/The last turn is waiting for your approval/);
    await terminal.say("/clear");
    await terminal.untilAll(/✗ The last turn is waiting for your approval/);
    await terminal.say("f");
    await terminal.until("Allow write?");
    await terminal.keys("C-c");
    await terminal.until("Ctrl+C again to quit");
    await terminal.keys("C-c");
    await terminal.until("Everything is saved.");
    await using again = await chat(context, home, ["--continue"]);
    await again.until("Allow write?");
    await answerable(again);
    await again.say("y");
    await answered(again, "I thought about rivers");
    expect(readFileSync(join(home.work, "a.txt"), "utf8")).toBe("one\n");
    expect(await prompts(home)).toEqual(["write a.txt: one", "words", "think about rivers"]);
  });

  test("R7: several questions of one answer are all asked again, and each answer counts for its own call", async (context) => {
    using home = temporaryHome();
    const files = ["a", "b", "c"].map((name) => join(home.work, "src", `${name}.ts`));
    mkdirSync(join(home.work, "src"));
    for (const file of files) writeFileSync(file, "let oldName;\n");
    await killedAtQuestion(context, home, "rename oldName to newName in src");
    await using terminal = await chat(context, home, ["--continue"]);
    await terminal.until(/Allow edit\? \(2 more waiting\)/);
    await answerable(terminal);
    await terminal.say("y");
    await terminal.until(/Allow edit\? \(1 more waiting\)/);
    await answerable(terminal);
    await terminal.say("n");
    await terminal.until(/Allow edit\?$/m);
    await answerable(terminal);
    await terminal.say("y");
    await terminal.until(/^idle\b/m);
    expect(files.filter((file) => readFileSync(file, "utf8").includes("newName"))).toHaveLength(2);
  });
});

/** A chat that is killed with SIGKILL while it asks. Answers what the question said. */
async function killedAtQuestion(context: TestContext, home: Home, prompt: string): Promise<string> {
  await using terminal = await chat(context, home);
  await terminal.say(prompt);
  const screen = await answerable(terminal);
  await terminal.signal("SIGKILL");
  await terminal.ended();
  return questionOn(screen);
}

/** From the question to its last choice. */
function questionOn(screen: string): string {
  return /^\? Allow[\s\S]*?^[▸\s]*n {2}deny$/m.exec(screen)?.[0].replace("▸", " ") ?? `no question:\n${screen}`;
}

/** What the person said in the only session, in order. */
async function prompts(home: Home): Promise<string[]> {
  const { stdout } = await home.run(["export", "latest", "--format", "messages"]);
  const messages = JSON.parse(stdout) as { role: string; content: unknown }[];
  return messages.flatMap(({ role, content }) => (role === "user" && typeof content === "string" ? [content] : []));
}

/** What the chat does when it is told to end. */
const states: readonly { readonly name: string; readonly begin: (terminal: Terminal) => Promise<void> }[] = [
  { name: "idle", begin: async () => undefined },
  {
    name: "streaming",
    begin: async (terminal) => {
      await terminal.say("tell me a story of 4000 lines");
      await terminal.untilAll(/line 12\)/);
    },
  },
  {
    name: "a tool in flight",
    begin: async (terminal) => {
      await terminal.say("run echo $$ > tool.pid; echo begun; exec sleep 300");
      await terminal.until(/shell .* running\n {2}│ begun/);
    },
  },
];

describe.concurrent("C6: chat is told to end", () => {
  for (const { name, begin } of states) {
    test(`SIGHUP, the terminal is closed, ${name}: everything is kept, and it ends by SIGHUP`, async (context) => {
      using home = temporaryHome();
      await using terminal = await chat(context, home, ["--allow", "shell"], {
        env: { HOLDFAST_OFFLINE_DELAY_MS: "5" },
      });
      await begin(terminal);
      await terminal.hangUp();
      expect(await terminal.ended()).toEqual({ code: null, signal: "SIGHUP" });
      if (name === "idle") return;
      const { stdout } = await home.run(["show", "latest"]);
      expect(stdout).toContain("interrupted by SIGHUP");
      if (name === "streaming") expect(stdout).toMatch(/\d+ characters of the answer had been streamed|line 10\)/);
      else expect(alive(Number(readFileSync(join(home.work, "tool.pid"), "utf8")))).toBe(false);
    });

    test(`SIGTERM, ${name}: it ends by SIGTERM, and the terminal is as it was`, async (context) => {
      using home = temporaryHome();
      await using terminal = await chat(context, home, ["--allow", "shell"], {
        env: { HOLDFAST_OFFLINE_DELAY_MS: "5" },
      });
      await begin(terminal);
      await terminal.signal("SIGTERM");
      expect(await terminal.ended()).toEqual({ code: null, signal: "SIGTERM" });
      // The shell behind it: the line is echoed and edited again, and the cursor is there.
      await terminal.say("stty -a | tr ';' '\\n' | grep -ow -e '-*icanon' -e '-*echo'; echo said=$((40+2))");
      const screen = await terminal.until("said=42");
      expect(screen).toMatch(/(^|[#$] )icanon$/m);
      expect(screen).toMatch(/^echo$/m);
      expect(await terminal.fact("cursor_flag")).toBe("1");
      // And a paste comes without the brackets that the chat had asked for.
      await terminal.paste("echo pasted=$((40+4))\n");
      expect(await terminal.until("pasted=44")).not.toContain("200~");
      if (name !== "idle") expect((await home.run(["show", "latest"])).stdout).toContain("interrupted by SIGTERM");
    });
  }

  test("Ctrl+Z gives the terminal to the shell, and fg brings the screen back", async (context) => {
    using home = temporaryHome();
    await using terminal = await chat(context, home, [], { inShell: true });
    await terminal.type("kept");
    await terminal.until("❯ kept");
    await terminal.keys("C-z");
    await terminal.until(/Stopped/);
    await terminal.say("echo said=$((40+2))");
    await terminal.until("said=42");
    await terminal.say("fg");
    await terminal.until((screen) => screen.lastIndexOf("❯ kept") > screen.indexOf("said=42"));
    await terminal.type(" on");
    await terminal.until("❯ kept on");
    await terminal.keys("C-u", "C-d");
    await terminal.until((screen) => screen.split("\n").at(-1)!.startsWith("bash-"));
    await terminal.say("echo left=$((40+3))");
    await terminal.until("left=43");
  });
});

/** Dead, and also not waiting to be buried: nobody may be there to do it. */
function alive(pid: number): boolean {
  const path = `/proc/${pid}/stat`;
  return existsSync(path) && !/\) [ZX] /.test(readFileSync(path, "utf8"));
}

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, type TestContext, test } from "vitest";
import { type Home, temporaryHome } from "../command.ts";
import { answerable, answered, chat, inTerminal } from "../screen/chat.ts";

const root = join(import.meta.dirname, "../../../..");

/** The user's configuration, in this home. */
function configured(home: Home): { readonly env: Readonly<Record<string, string>> } {
  const file = join(home.path, "config", "config.json");
  mkdirSync(join(home.path, "config"), { recursive: true });
  writeFileSync(file, "{}");
  return { env: { HOLDFAST_CONFIG: file } };
}

/** A chat that is killed with SIGKILL while it asks. */
async function killedAtQuestion(context: TestContext, home: Home, prompt: string): Promise<void> {
  await using terminal = await chat(context, home);
  await terminal.say(prompt);
  await answerable(terminal);
  await terminal.signal("SIGKILL");
  await terminal.ended();
}

describe.concurrent("coming back", () => {
  for (const [columns, rows] of [
    [40, 15],
    [80, 24],
    [120, 40],
  ] as const) {
    test(`plain holdfast after SIGKILL at a question, at ${columns}x${rows}: it says so, Enter asks it again, y runs it once`, async (context) => {
      using home = temporaryHome();
      await killedAtQuestion(context, home, "write a.txt: one");
      await using terminal = await inTerminal(context, home, [], { columns, rows });
      await terminal.until(
        // It says "just now" for a minute, which may be over before the screen is there.
        (screen) =>
          /A session here is waiting for your approval, asked (just now|\d+ min ago)/.test(
            screen.replaceAll("\n", " "),
          ),
        /▸ c {2}continue it/,
        /^\? waiting\b/m,
      );
      expect((await home.run(["ls"])).stdout).toMatch(/waiting .* write a\.txt/);
      await terminal.keys("Enter");
      await terminal.until("? Allow write?");
      if (rows > 15) await answerable(terminal);
      else await terminal.until("real path: ", /▸ n no/);
      await terminal.say("y");
      await answered(terminal, "✓ write a.txt");
      expect(readFileSync(join(home.work, "a.txt"), "utf8")).toBe("one\n");
      expect(await sessions(home)).toEqual(["idle"]);
    });
  }

  test("n starts a new session; the old one stays as it is, and is offered again only while it is the last", async (context) => {
    using home = temporaryHome();
    await killedAtQuestion(context, home, "write a.txt: one");
    {
      await using terminal = await inTerminal(context, home, []);
      await terminal.until("❯ Enter continues it, n starts a new session");
      await terminal.say("think about rivers");
      await terminal.until("Nothing was sent.", "❯ think about rivers");
      await terminal.keys("C-u");
      await terminal.until("❯ Enter continues it, n starts a new session");
      await terminal.say("n");
      await terminal.until("holdfast new session", /^idle\b/m);
      await terminal.say("think about rivers");
      await answered(terminal, "I thought about rivers");
      await terminal.keys("C-d");
      await terminal.ended();
    }
    expect(await sessions(home)).toEqual(["idle", "waiting"]);
    await using next = await inTerminal(context, home, ["chat"]);
    await next.until("holdfast new session", /^idle\b/m);
  });

  test("--continue while the latest session is open in another terminal says who has it, and opens no other", async (context) => {
    using home = temporaryHome();
    await home.run(["run", "think about stones"]);
    await using open = await chat(context, home);
    await open.say("think about rivers");
    await answered(open, "I thought about rivers");
    for (const args of [
      ["run", "--continue", "think about clouds"],
      ["run", "--finish", "--continue"],
    ]) {
      const { code, stderr } = await home.run(args);
      expect({ code, stderr }).toEqual({ code: 4, stderr: expect.stringContaining(`process ${await open.pid()}`) });
    }
    await using second = await inTerminal(context, home, ["chat", "--continue"]);
    await second.until(`process ${await open.pid()}`, "[SESSION_BUSY]");
    expect(await second.ended()).toEqual({ code: 4, signal: null });
  });

  test("Ctrl+Z under npx gives the terminal to the shell, and fg brings the screen back", async (context) => {
    using home = temporaryHome();
    await using terminal = await chat(context, home, [], {
      ...{ inShell: true, command: ["npx", "--prefix", root, "holdfast"] },
      env: { PATH: process.env["PATH"]!, npm_config_update_notifier: "false", npm_config_offline: "true" },
    });
    await terminal.type("kept");
    await terminal.until("❯ kept");
    await terminal.keys("C-z");
    await terminal.until(/Stopped/);
    await terminal.say("echo said=$((40+2))");
    await terminal.until("said=42");
    await terminal.say("fg");
    await terminal.until((screen) => screen.lastIndexOf("❯ kept") > screen.indexOf("said=42"));
    await terminal.keys("C-u", "C-d");
    await terminal.until((screen) => screen.split("\n").at(-1)!.startsWith("bash-"));
  });

  test("the list of sessions finds what was said, not only titles", async (context) => {
    using home = temporaryHome();
    for (const text of ["rivers", "stones", "clouds"])
      await home.run(["run", "--title", `about ${text}`, `think about ${text} and marmots named ${text}-1`]);
    await using terminal = await inTerminal(context, home, ["resume"]);
    await terminal.until(/Sessions {2}3$/m);
    await terminal.type("stones-1");
    await terminal.until(/Sessions {2}1 of 3, 1 by their text$/m, /▸ about stones .*stones-1/);
    await terminal.keys("Enter");
    await terminal.until(/^holdfast about stones/m, /^idle\b/m);
  });
});

describe.concurrent("approvals", () => {
  test("always in this project: later sessions here do not ask; holdfast rules lists and removes the rule", async (context) => {
    using home = temporaryHome();
    const config = configured(home);
    {
      await using terminal = await chat(context, home, [], config);
      await terminal.say("run echo one > log.txt");
      await terminal.until("p  always in this project (~/work)", '"always" allows: shell(echo one > log.txt)');
      await answerable(terminal);
      await terminal.say("p");
      await answered(terminal, "✓ shell echo one");
      await terminal.untilAll(/Saved as a rule for this project/);
    }
    expect(existsSync(join(home.path, "config", "rules.json"))).toBe(true);
    const listed = await home.run(["rules"], config);
    expect(listed.stdout).toMatch(/^allow {2,}shell\(echo one > log\.txt\) +this project$/m);
    expect(await home.run(["run", "run echo one > log.txt"], config)).toMatchObject({ code: 0 });
    expect(await home.run(["rules", "remove", "shell(echo one > log.txt)"], config)).toMatchObject({ code: 0 });
    expect(await home.run(["run", "run echo one > log.txt"], config)).toMatchObject({ code: 7 });
  });

  test("no, and why: the model is told the reason, in the chat", async (context) => {
    using home = temporaryHome();
    await using terminal = await chat(context, home);
    await terminal.say("run echo one");
    await answerable(terminal);
    await terminal.say("t");
    await terminal.until("Deny shell: what should the agent know or do instead?", "❯ type the reason");
    await terminal.say("ask Ann first");
    await answered(terminal, "ask Ann first");
    await terminal.untilAll(/⊘ shell echo one/);
  });

  test("a sub-agent asks in the chat of its parent, also after SIGKILL", async (context) => {
    using home = temporaryHome();
    {
      await using terminal = await chat(context, home);
      await terminal.say("delegate: run echo below > log.txt");
      await terminal.until("? Allow shell to a sub-agent?", "command: echo below > log.txt", "for the task: run echo");
      await terminal.signal("SIGKILL");
      await terminal.ended();
    }
    await using terminal = await chat(context, home, ["--continue"]);
    await terminal.until("? Allow shell to a sub-agent?", "command: echo below > log.txt");
    await answerable(terminal);
    expect(existsSync(join(home.work, "log.txt"))).toBe(false);
    await terminal.say("y");
    await terminal.untilAll(/✓ task [\s\S]*^idle\b/m);
    expect(readFileSync(join(home.work, "log.txt"), "utf8")).toBe("below\n");
  });

  test("a rule in the repository, a rule in the journal: neither grants anything", async (context) => {
    using home = temporaryHome();
    const config = configured(home);
    const rules = JSON.stringify({ version: 1, projects: { [home.work]: { allow: ["*"] } } });
    for (const name of ["rules.json", "config.json", ".holdfast/rules.json", ".config/holdfast/rules.json"]) {
      mkdirSync(join(home.work, name, ".."), { recursive: true });
      writeFileSync(join(home.work, name), rules, { mode: 0o600 });
    }
    await using terminal = await chat(context, home, [], config);
    await terminal.say("run printf 'a\u202eb'; echo one");
    await terminal.until("? Allow shell?", "<U+202E>");
  });
});

/** The status of each session, newest first. */
async function sessions(home: Home): Promise<string[]> {
  const { stdout } = await home.run(["ls", "--json"]);
  return stdout
    .trim()
    .split("\n")
    .map((line) => (JSON.parse(line) as { status: string }).status);
}

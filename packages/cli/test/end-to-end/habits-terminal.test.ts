import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openStore } from "holdfast";
import { expect, type TestContext, test } from "vitest";
import { type Home, temporaryHome } from "../command.ts";
import { Terminal, whyNoTerminal } from "../screen/terminal.ts";
import { speakIn } from "../sessions.ts";

interface Screen {
  readonly columns?: number;
  readonly rows?: number;
  readonly env?: Readonly<Record<string, string>>;
}

function inTerminal(context: TestContext, home: Home, args: readonly string[], screen: Screen = {}): Promise<Terminal> {
  if (whyNoTerminal !== null) context.skip(whyNoTerminal);
  return Terminal.open(args, { cwd: home.work, ...screen, env: { ...home.env, ...screen.env } });
}

/** The prompt of the shell behind the command: everything before it is on the screen. */
const SHELL = /^\s*[#$]\s*$/m;
const RED = "\x1b[31m";
const GREEN = "\x1b[32m";

test("a prompt as the only argument opens the chat and is sent, also with -c in the same session", async (context) => {
  using home = temporaryHome();
  {
    await using terminal = await inTerminal(context, home, ["think about rivers"]);
    await terminal.untilAll("❯ think about rivers", /Type a prompt|\? for help|\/help|offline/);
    await using store = await openStore(home.store);
    // The turn has ended.
    await expect
      .poll(async () => (await store.list()).sessions, { timeout: 60_000 })
      .toMatchObject([{ status: "idle", turns: 1 }]);
    await terminal.keys("C-d");
    expect(await terminal.ended()).toMatchObject({ code: 0 });
  }
  await using terminal = await inTerminal(context, home, ["-c", "think about the sea"]);
  await terminal.untilAll("❯ think about rivers", "❯ think about the sea");
  await terminal.keys("C-d");
  await terminal.ended();
});

test("a prompt starts a new session, also where the last one was interrupted", async (context) => {
  using home = temporaryHome();
  const [id] = await speakIn(home.store, { prompt: "old", cut: true, cwd: home.work });
  await using terminal = await inTerminal(context, home, ["think about rivers"]);
  await terminal.untilAll("❯ think about rivers");
  await using store = await openStore(home.store);
  await expect
    .poll(async () => (await store.list()).sessions, { timeout: 60_000 })
    .toMatchObject([
      { title: "think about rivers", turns: 1, status: "idle" },
      { id, turns: 1, status: "stopped" },
    ]);
  await terminal.keys("C-d");
  await terminal.ended();
});

test("run at a terminal: Markdown is laid out, and a change is a coloured diff", async (context) => {
  using home = temporaryHome();
  writeFileSync(join(home.work, "notes.md"), "some text\n");
  const rules = ["--allow", "read", "--allow", "edit"];
  await using terminal = await inTerminal(context, home, ["-p", ...rules, 'edit notes.md: replace "some" with "more"']);
  expect(await terminal.ended()).toMatchObject({ code: 0 });
  // The terminal may show it a moment after the command has ended.
  const text = await terminal.until('Replaced "some" by "more" in notes.md.', /session [0-9a-f]{8}$/m);
  expect(text).not.toContain("`");
  const styled = await terminal.styled();
  const rowWith = (text: string): string => styled.split("\n").find((row) => row.includes(text)) ?? "";
  expect(rowWith("- some")).toContain(RED);
  expect(rowWith("+ more")).toContain(GREEN);
});

test("NO_COLOR: the same without colours", async (context) => {
  using home = temporaryHome();
  const [id] = await speakIn(home.store, { prompt: "one", answer: "**bold** and `code`" });
  await using terminal = await inTerminal(context, home, ["show", id!, "--no-pager"], { env: { NO_COLOR: "1" } });
  await terminal.ended();
  await terminal.until("bold and code");
  for (const colour of [RED, GREEN, "\x1b[36m"]) expect(await terminal.styled()).not.toContain(colour);
});

const LONG = Array.from({ length: 60 }, (_, i) => `- item **${i}**`).join("\n");

test("show opens the pager for what is longer than the screen, and q ends it", async (context) => {
  using home = temporaryHome();
  const [id] = await speakIn(home.store, { prompt: "one", answer: LONG });
  await using terminal = await inTerminal(context, home, ["show", id!], { env: { PAGER: "less", LESS: "FRX" } });
  const screen = await terminal.until("session", /^:/m);
  expect(screen).not.toContain("item 59");
  // What Ctrl+C means is for the pager to decide: less goes on.
  await terminal.keys("C-c");
  // Keys that are typed while less handles Ctrl+C may be lost.
  await expect.poll(() => terminal.keys("G").then(() => terminal.screen())).toContain("item 59");
  await terminal.keys("q");
  expect(await terminal.ended()).toMatchObject({ code: 0, signal: null });
});

test.for<[string, string, Record<string, string>, string]>([
  ["a short one", "short", {}, "short"],
  ["--no-pager", LONG, { flag: "--no-pager", PAGER: "false" }, "item 59"],
  ["PAGER=cat", LONG, { PAGER: "cat" }, "item 59"],
  ["a pager that does not exist", LONG, { HOLDFAST_PAGER: "nosuchpager --x" }, "item 59"],
])("without a pager: %s", async ([, answer, { flag, ...env }, end], context) => {
  using home = temporaryHome();
  const [id] = await speakIn(home.store, { prompt: "one", answer });
  await using terminal = await inTerminal(context, home, ["show", id!, ...(flag === undefined ? [] : [flag])], {
    rows: answer === LONG ? 24 : 60,
    env: { PAGER: "less", ...env },
  });
  expect(await terminal.ended()).toMatchObject({ code: 0, signal: null });
  await terminal.untilAll(end);
});

test("a pager that quits early, before a huge transcript has been written, ends the command quietly", async (context) => {
  using home = temporaryHome();
  const [id] = await speakIn(home.store, { prompt: "one", answer: "many words in a row\n\n".repeat(100_000) });
  await using terminal = await inTerminal(context, home, ["show", id!, "--full"], {
    env: { HOLDFAST_PAGER: "head -1" },
  });
  expect(await terminal.ended()).toMatchObject({ code: 0, signal: null });
  expect(await terminal.untilAll(SHELL)).not.toMatch(/EPIPE|holdfast:/);
});

test.for([40, 80, 120])("at %i columns, help, errors and show break between words", async (columns, context) => {
  using home = temporaryHome();
  const words = Array.from({ length: 60 }, (_, i) => `word${i}`);
  const [id] = await speakIn(home.store, { prompt: words.join(" "), answer: words.join(" "), title: words.join(" ") });
  const look = async (...args: string[]): Promise<string[]> => {
    await using terminal = await inTerminal(context, home, args, { columns, rows: 200 });
    await terminal.ended();
    // Without the prompt of the shell behind it.
    const screen = await terminal.until(SHELL);
    return screen.split("\n").filter((row) => !SHELL.test(row));
  };
  const shown = (await look("show", id!, "--no-pager")).flatMap((row) => row.match(/\bword\w*/g) ?? []);
  expect(shown).toEqual([...words, ...words, ...words]);
  const known = new Set((await home.run(["gc", "--help"])).stdout.split(/\s+/));
  const seen = (await look("gc", "--help")).join("\n").split(/\s+/);
  expect(seen.filter((word) => word !== "" && !known.has(word))).toEqual([]);
  const { stderr } = await home.run(["restore", "feedface"]);
  const said = new Set(stderr.split(/\s+/));
  const rows = (await look("restore", "feedface")).join("\n").split(/\s+/);
  // A path may be longer than a row.
  expect(rows.filter((word) => !said.has(word) && !home.store.includes(word))).toEqual([]);
});

test("gc asks: anything but yes removes nothing", async (context) => {
  using home = temporaryHome();
  const [id] = await speakIn(home.store, { prompt: "goodbye" });
  await home.run(["rm", id!]);
  const asked = async (answer: string, end: string): Promise<void> => {
    await using terminal = await inTerminal(context, home, ["gc", "--older-than", "0s"]);
    await terminal.until("goodbye", "Delete this session for good? [y/N]");
    await terminal.say(answer);
    expect(await terminal.ended()).toMatchObject({ code: 0 });
    await terminal.until(end);
  };
  for (const no of ["", "n", "maybe"]) await asked(no, "Nothing was removed.");
  expect(readdirSync(join(home.store, "trash"))).toHaveLength(1);
  await asked("y", "Removed 1 session.");
  expect(readdirSync(join(home.store, "trash"))).toEqual([]);
});

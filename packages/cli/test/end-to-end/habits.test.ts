import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openStore } from "holdfast";
import { describe, expect, test } from "vitest";
import { bin, type Home, temporaryHome } from "../command.ts";
import { speak, speakIn } from "../sessions.ts";

const json = (text: string): Record<string, unknown>[] =>
  text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
const short = (id: string | undefined): string => id!.slice(-8);

/** With a real pipe: Node gives its children sockets. */
function inShell(
  home: Home,
  command: string,
): { readonly code: number | null; readonly out: string; readonly err: string } {
  const { status, stdout, stderr } = spawnSync(
    "sh",
    ["-c", command.replaceAll("holdfast ", `'${process.execPath}' '${bin}' `)],
    {
      encoding: "utf8",
      cwd: home.work,
      env: { ...home.env, PATH: process.env["PATH"], HOLDFAST_CONFIG: "", HOLDFAST_OFFLINE_DELAY_MS: "0" },
    },
  );
  return { code: status, out: stdout, err: stderr };
}

describe("without a command", () => {
  test("-p answers and exits, -c goes on in the same session, -m names the model", async () => {
    using home = temporaryHome();
    expect(await home.run(["-p", "think about rivers"])).toMatchObject({ code: 0 });
    expect(await home.run(["-c", "-p", "think about the sea", "-m", "offline"])).toMatchObject({ code: 0 });
    expect(json((await home.run(["ls", "--json"])).stdout)).toMatchObject([{ turns: 2, title: "think about rivers" }]);
    expect(await home.run(["-m", "nonsense", "-p", "hello there"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("MODEL_UNKNOWN"),
    });
  });

  test("what is piped into -p is part of its prompt; run leaves its input alone, unless told otherwise", async () => {
    using home = temporaryHome();
    inShell(home, "printf 'a\\nb\\n' | holdfast -p 'explain this'");
    inShell(home, "printf 'a\\nb\\n' | holdfast run 'explain that'");
    inShell(home, "printf 'a\\nb\\n' | holdfast run --stdin 'explain it'");
    inShell(home, "holdfast -p 'no input' < /dev/null");
    await using store = await openStore(home.store);
    const prompts: unknown[] = [];
    for (const { id } of (await store.list()).sessions.toReversed())
      prompts.push(((await store.read(id)).messages[0] as { content: unknown }).content);
    expect(prompts).toEqual(["explain this\n\na\nb", "explain that", "explain it\n\na\nb", "no input"]);
    expect(await home.run(["run", "--stdin"])).toMatchObject({ code: 2 });
  });

  test("a typo of a command reaches no model and creates no store", async () => {
    using home = temporaryHome();
    for (const args of [["shwo"], ["verfiy", "--all"], ["count", "words"], ["hello"]])
      expect(await home.run(args)).toMatchObject({
        code: 2,
        stdout: "",
        stderr: expect.stringContaining("Nothing was sent"),
      });
    expect(existsSync(home.store)).toBe(false);
  });

  test("a prompt without a terminal is refused, and the error names -p", async () => {
    using home = temporaryHome();
    expect(await home.run(["explain this code"])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/holdfast -p "prompt"[\s\S]*\[NO_TERMINAL\]/),
    });
    expect(await home.run(["chat", " "])).toMatchObject({ code: 2, stderr: expect.stringContaining("empty") });
    expect(await home.run(["chat", "--resume", "--", "a prompt"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("needs the id of a session"),
    });
  });
});

describe("the trash", () => {
  test("lists what rm moved, restore brings it back, with its sub-agents and its outputs", async () => {
    using home = temporaryHome();
    await using store = await openStore(home.store, { durability: "process" });
    const parent = await speak(store, { prompt: "the \x1b[31mparent" });
    const child = await store.create({ dialect: "ai-sdk", parent: { session: parent } });
    await (await child.startTurn({ role: "user", content: "sub" })).end();
    await child.close();
    const other = await speak(store, { prompt: "another" });
    expect(await home.run(["search", "another"])).toMatchObject({ code: 0 });
    expect((await home.run(["trash"])).stdout).toBe(`The trash of ${home.store} is empty.\n`);
    const removed = await home.run(["rm", parent, other]);
    expect(removed.stdout.split("\n").slice(-2)[0]).toBe(
      `To undo: holdfast restore ${short(parent)} ${short(other)} --store ${home.store}`,
    );
    expect(await home.run(["search", "another"])).toMatchObject({ code: 1, stdout: "" });
    const listed = (await home.run(["trash"])).stdout;
    expect(listed.split("\n").map((line) => line.split(/ {2,}/)[0])).toEqual([
      "session",
      short(other),
      short(parent),
      "",
    ]);
    expect(listed).toContain("the parent");
    expect((await home.run(["trash", "--all"])).stdout).toContain("sub-agent: sub");
    expect(json((await home.run(["trash", "--json"])).stdout).map(({ id }) => id)).toEqual([other, child.id, parent]);

    expect(await home.run(["restore", short(parent)])).toMatchObject({
      code: 0,
      stdout: `${short(parent)} "the parent" is back, with its sub-agent's session. Resume it: holdfast resume ${short(parent)} --store ${home.store}\n`,
    });
    expect([await store.has(parent), await store.has(child.id), await store.has(other)]).toEqual([true, true, false]);
    expect(json((await home.run(["restore", "latest", "--json"])).stdout)).toEqual([
      { id: other, restored: true, agents: [] },
    ]);
    expect(json((await home.run(["ls", "--json"])).stdout)).toHaveLength(2);
    expect(await home.run(["search", "another"])).toMatchObject({ code: 0 });
  });

  test("restore refuses what is not there, what is ambiguous, and never replaces a session", async () => {
    using home = temporaryHome();
    const ids = await speakIn(home.store, { prompt: "one" }, { prompt: "two" });
    expect(await home.run(["restore", "latest"])).toMatchObject({ code: 3 });
    await home.run(["rm", ...ids]);
    const both = await home.run(["restore", ids[0]!.slice(0, 6)]);
    expect(both).toMatchObject({ code: 3, stderr: expect.stringContaining("SESSION_AMBIGUOUS") });
    for (const [i, title] of ["one", "two"].entries())
      expect(both.stderr).toMatch(new RegExp(`  ${short(ids[i])}  ${title} \\(deleted (just now|\\d+ min ago)\\)`));
    for (const none of ["zz", "\x1b[2J", "feedface", "0199aaaa-0000-7000-8000-000000000000", "../../etc"])
      expect(await home.run(["restore", none]), none).toMatchObject({
        code: 3,
        stdout: "",
        stderr: expect.not.stringContaining("\x1b"),
      });
    // One wrong name: nothing moves.
    expect(await home.run(["restore", short(ids[0]), "feedface"])).toMatchObject({ code: 3 });
    expect(readdirSync(join(home.store, "sessions"))).toEqual([]);
    // The same id is in use again, as after a copy from a backup.
    const backup = `${home.store}-backup`;
    await home.run(["restore", ids[0]!]);
    await home.run(["copy", home.store, backup, "--all"]);
    await home.run(["rm", ids[0]!]);
    await home.run(["copy", backup, home.store, "--all"]);
    expect(await home.run(["restore", ids[0]!])).toMatchObject({
      stdout: "",
      stderr: expect.stringContaining("SESSION_EXISTS"),
    });
    expect(await home.run(["show", ids[0]!])).toMatchObject({ code: 0 });
  });

  test("gc says what it would remove, and destroys nothing without --yes, nor what is open", async () => {
    using home = temporaryHome();
    await using store = await openStore(home.store, { durability: "process" });
    const gone = await speak(store, { prompt: "goodbye \x1b]0;x\x07" });
    await using open = await store.create({ dialect: "ai-sdk" });
    await using turn = await open.startTurn({ role: "user", content: "still here" });
    await store.delete(gone);
    const refused = await home.run(["gc", "--older-than", "0s"]);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringMatching(/delete 1 session for good.*--yes/) });
    expect(refused.stdout).toMatch(new RegExp(`${short(gone)} .*goodbye`));
    expect(refused.stdout).not.toContain("\x1b");
    expect(await home.run(["gc", "--older-than", "0s", "--json"])).toMatchObject({ code: 2, stdout: "" });
    const dry = await home.run(["gc", "--older-than", "0s", "--dry-run"]);
    expect(dry.stdout).toMatch(/goodbye[\s\S]*Would remove 1 session\.\n$/);
    expect(json((await home.run(["gc", "--older-than", "0s", "--dry-run", "--json"])).stdout)).toMatchObject([
      { removed: [gone], dryRun: true },
    ]);
    expect((await store.trashed()).map(({ id }) => id)).toEqual([gone]);
    expect((await home.run(["gc", "--yes"])).stdout).toBe("Nothing to remove.\n");
    expect((await home.run(["gc", "--older-than", "0s", "--yes"])).stdout).toBe("Removed 1 session.\n");
    expect(await home.run(["restore", gone])).toMatchObject({ code: 3 });
    await turn.append({ role: "assistant", content: "and going on" });
    await turn.end();
    expect((await home.run(["gc", "--yes", "--dry-run"])).code).toBe(2);
  });
});

describe("fork --at", () => {
  async function threeTurns(home: Home): Promise<string> {
    await using store = await openStore(home.store, { durability: "process" });
    await using session = await store.create({ dialect: "ai-sdk", title: "three turns" });
    for (const text of ["one", "two", "three"]) {
      const turn = await session.startTurn({ role: "user", content: text });
      await turn.append({ role: "assistant", content: `answer ${text}` });
      await turn.end();
    }
    return session.id;
  }

  test("takes the number of a turn that show prints, and the title says so", async () => {
    using home = temporaryHome();
    const id = await threeTurns(home);
    expect((await home.run(["show", id])).stdout).toMatch(/turn 1\n> one[\s\S]*turn 2\n> two[\s\S]*turn 3\n> three/);
    const fork = (await home.run(["fork", id, "--at", "2"])).stdout.trim();
    const shown = (await home.run(["show", fork])).stdout;
    expect(shown).toMatch(/^three turns \(fork at turn 2\)\n/);
    expect(shown).toContain("answer two");
    expect(shown).not.toContain("three\n");
    const [whole] = json((await home.run(["fork", id, "--json"])).stdout);
    expect((await home.run(["show", String(whole!["id"])])).stdout).toMatch(/^three turns \(fork\)\n/);
    expect(
      (await home.run(["show", (await home.run(["fork", fork, "--title", "mine"])).stdout.trim()])).stdout,
    ).toMatch(/^mine\n/);
  });

  test.each(["0", "4", "99", "999999999"])(
    "turn %s is not there: it says which are, and creates nothing",
    async (at) => {
      using home = temporaryHome();
      const id = await threeTurns(home);
      expect(await home.run(["fork", id, "--at", at])).toMatchObject({
        code: 2,
        stdout: "",
        stderr: expect.stringMatching(/no turn \d+\. It has turns 1 to 3;.*Nothing was created.*\[TURN_UNKNOWN\]/s),
      });
      expect(readdirSync(join(home.store, "sessions"))).toEqual([id]);
    },
  );

  test("a message with a number as its id is still that message", async () => {
    using home = temporaryHome();
    await using store = await openStore(home.store, { durability: "process" });
    await using session = await store.create({ dialect: "ai-sdk" });
    const turn = await session.startTurn({ role: "user", content: "one" }, { id: "2" });
    await turn.append({ role: "assistant", content: "answer" });
    await turn.end();
    const fork = (await home.run(["fork", session.id, "--at", "2"])).stdout.trim();
    expect((await store.read(fork)).messages).toEqual([{ role: "user", content: "one" }]);
  });
});

test("show in a pipe: changes as a diff, Markdown as it was written, no pager, nothing wrapped", async () => {
  using home = temporaryHome();
  writeFileSync(join(home.work, "notes.md"), "some text\n");
  const allow = ["--allow", "read", "--allow", "edit", "--allow", "write"];
  await home.run(["-p", ...allow, 'edit notes.md: replace "some" with "more"']);
  const long = `**${"long ".repeat(100)}**`;
  await home.run(["-c", "-p", ...allow, `write b.md: ${long}`]);
  const { stdout } = await home.run(["show", "latest"], { env: { PAGER: "false", HOLDFAST_PAGER: "false" } });
  expect(stdout).toContain("\n  - some\n  + more\n");
  expect(stdout).toContain(`\n  + ${long}`);
  expect(stdout).not.toContain("\x1b");
});

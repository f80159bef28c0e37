import { appendFileSync, existsSync, linkSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openStore } from "holdfast";
import { describe, expect, test } from "vitest";
import { sessionOutputs } from "../../src/store/output-folders.ts";
import { type Home, temporaryHome } from "../command.ts";
import { speak, speakIn } from "../sessions.ts";

const lines = (text: string): string[] => text.trimEnd().split("\n");
const json = (text: string): Record<string, unknown>[] => lines(text).map((line) => JSON.parse(line));
const segment = (home: Home, id: string, name = "000001.jsonl"): string => join(home.store, "sessions", id, name);

describe("ls", () => {
  test("all folders, newest first, with the status of each", async () => {
    using home = temporaryHome();
    await using store = await openStore(home.store, { durability: "process" });
    const idle = await speak(store, { prompt: "first \x1b[31mprompt\x1b[0m", cwd: home.work, app: "other" });
    const cut = await speak(store, { prompt: "second", cut: true });
    const queued = await speak(store, { prompt: "third", queued: ["later"] });
    const running = await store.create({ dialect: "ai-sdk" });
    const turn = await running.startTurn({ role: "user", content: "fourth" });
    const waiting = await store.create({ dialect: "ai-sdk" });
    await (await waiting.startTurn({ role: "user", content: "fifth" })).suspend({ reason: "permission" });
    const empty = await store.create({ dialect: "ai-sdk" });
    const child = await store.create({ dialect: "ai-sdk", parent: { session: idle } });
    await (await child.startTurn({ role: "user", content: "sub" })).end();

    const shown = json((await home.run(["ls", "--json"])).stdout);
    expect(shown.map(({ id, status }) => [id, status])).toEqual([
      [waiting.id, "waiting"],
      [running.id, "running"],
      [queued, "queued"],
      [cut, "stopped"],
      [idle, "idle"],
    ]);
    const text = (await home.run(["ls"])).stdout;
    expect(lines(text)).toHaveLength(6);
    expect(text).toContain("first prompt");
    expect(text).not.toContain("\x1b");

    const ids = async (...args: string[]) => {
      const { stdout } = await home.run(["ls", "--json", ...args]);
      return stdout === "" ? [] : json(stdout).map(({ id }) => id);
    };
    expect(await ids("--here")).toEqual([idle]);
    expect(await ids("--status", "queued")).toEqual([queued]);
    expect(await ids("--status", "idle")).toEqual([idle]);
    expect(await ids("--app", "other")).toEqual([idle]);
    expect(await ids("--since", "0s")).toEqual([]);
    expect(await ids("--limit", "2")).toEqual([waiting.id, running.id]);
    expect(new Set(await ids("--all"))).toEqual(
      new Set([idle, cut, queued, running.id, waiting.id, empty.id, child.id]),
    );
    const everything = (await home.run(["ls", "--all"])).stdout;
    expect(everything).toContain("sub-agent: sub");
    expect(everything).toContain("(no prompt yet)");
    expect((await home.run(["show", child.id])).stdout).toContain(`sub-agent of session ${idle.slice(-8)}\n`);
    expect((await home.run(["ls", "--limit", "2"])).stdout).toContain("There are more");
    expect((await home.run(["ls", "--app", "nobody"])).stdout).toBe(`No such sessions in ${home.store}.\n`);
    const elsewhere = join(home.path, "elsewhere");
    expect((await home.run(["--store", elsewhere, "ls"])).stdout).toBe(
      `No sessions: there is no store in ${elsewhere} yet.\n`,
    );
    await turn.end();
  });

  test("where there is no store, no command makes one but those that begin a session", async () => {
    using home = temporaryHome();
    const file = `sqlite:${home.store}.db`;
    for (const [store, ...args] of [
      [home.store, "verify"],
      [home.store, "show", "latest"],
      [home.store, "run", "--finish"],
      [file, "verify"],
    ] as const)
      expect(await home.run(["--store", store, ...args]), args.join(" ")).toMatchObject({
        code: 3,
        stdout: "",
        stderr: expect.stringContaining(`No store in ${store}`),
      });
    expect(await home.run(["ls", "--json"])).toMatchObject({ code: 0, stdout: "", stderr: "" });
    expect(await home.run(["gc"])).toMatchObject({ code: 0, stdout: "Nothing to remove.\n" });
    expect(await home.run(["--store", file, "search", "x"])).toMatchObject({
      code: 1,
      stdout: "",
      stderr: `Nothing found in ${file}.\n`,
    });
    // A folder of something else does not become a store by being read.
    expect(await home.run(["--store", home.work, "ls"])).toMatchObject({ code: 0, stderr: "" });
    expect(readdirSync(home.path).filter((name) => name.startsWith("store"))).toEqual([]);
    expect(readdirSync(home.work)).toEqual([]);
  });
});

describe("reading", () => {
  test("search finds what was said, in all folders or here; nothing is exit code 1", async () => {
    using home = temporaryHome();
    const [a, b] = await speakIn(
      home.store,
      { prompt: "the flaky test", cwd: home.work },
      { prompt: "flaky again", answer: "a flaky answer" },
    );
    const { stdout } = await home.run(["search", "flaky", "--json"]);
    expect(new Set(json(stdout).map(({ session }) => session))).toEqual(new Set([a, b]));
    expect(
      json((await home.run(["search", "flaky", "--here", "--json"])).stdout).map(({ session }) => session),
    ).toEqual([a]);
    expect((await home.run(["search", "flaky", "te"])).stdout).toContain(a!.slice(-8));
    const some = (await home.run(["search", "flaky", "--limit", "1"])).stdout;
    expect(some).toContain("There are more: --limit <n>.");
    expect(some).not.toContain(a!.slice(-8));
    expect(await home.run(["search", "nowhere"])).toMatchObject({
      code: 1,
      stdout: "",
      stderr: `Nothing found in ${home.store}.\n`,
    });
  });

  test("C25: show is a readable transcript, harmless, shortened, or whole", async () => {
    using home = temporaryHome();
    const [id] = await speakIn(home.store, {
      prompt: "do\x1b]0;x\x07 it",
      answer: "**done**\u202e",
      title: "A title",
      queued: ["more"],
    });
    const { stdout } = await home.run(["show", id!.slice(-8)]);
    expect(stdout).toContain(`A title\nsession ${id!.slice(-8)}\n`);
    expect(stdout).toContain("turn 1\n> do it");
    expect(stdout).toContain("~ let me look");
    expect(stdout).toContain("* shell: ls -la  done\n  line 0\n");
    expect(stdout).toContain("… 18 more lines (--full)");
    expect(stdout).toContain("**done**\n");
    expect(stdout).toContain("Idle, a prompt is queued.");
    const full = (await home.run(["show", id!, "--full"])).stdout;
    expect(full).toContain("  line 29\n");
    expect(full).toContain(`session ${id}\n`);
    const [whole] = json((await home.run(["show", id!, "--json"])).stdout);
    expect(whole).toMatchObject({ id, title: "A title", health: "whole", interruption: null });
    expect((whole!["items"] as { kind: string }[]).map(({ kind }) => kind)).toEqual([
      "prompt",
      "reasoning",
      "call",
      "answer",
    ]);
    expect((whole!["items"] as { text: string }[])[0]!.text).toBe("do\x1b]0;x\x07 it");
  });

  test("P5: show says what was interrupted, and how to go on", async () => {
    using home = temporaryHome();
    const [id] = await speakIn(home.store, { prompt: "work", cut: true });
    const { stdout } = await home.run(["show", "latest"]);
    expect(stdout).toContain("Turn 1: stopped by user.");
    expect(stdout).toContain(`holdfast run --resume ${id!.slice(-8)} --finish`);
  });

  test("C18: tail -f gives out every record of a live session once, in order, from any process", async () => {
    using home = temporaryHome();
    await using store = await openStore(home.store, { durability: "process" });
    const session = await store.create({ dialect: "ai-sdk" });
    const turn = await session.startTurn({ role: "user", content: "hello \x1b[2Jthere" });
    const child = home.start(["tail", "-f", "-n", "100", "--json", session.id]);
    child.stdin.end();
    const seen: Record<string, unknown>[] = [];
    const last = new Promise<void>((resolve) => {
      let rest = "";
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        const pieces = (rest + text).split("\n");
        rest = pieces.pop()!;
        for (const piece of pieces) seen.push(JSON.parse(piece));
        if (seen.some(({ kind }) => kind === "turn.ended")) resolve();
      });
    });
    for (let i = 0; i < 20; i++) await session.note("tick", i);
    await turn.append({ role: "assistant", content: "answer" });
    await turn.end();
    await last;
    child.kill("SIGTERM");
    expect(seen.map(({ seq }) => seq)).toEqual(seen.map((_, i) => i + 1));
    const text = (await home.run(["tail", session.id, "-n", "3"])).stdout;
    expect(lines(text)).toHaveLength(3);
    expect(text).toMatch(/note tick 19\n.* message assistant: answer\n.* turn\.ended 1 completed\n$/);
    expect((await home.run(["tail", session.id, "-n", "100"])).stdout).toContain("message user: hello there\n");
  });

  test("tail shows as many records as it was asked for, also behind one that closed several calls", async () => {
    using home = temporaryHome();
    await using store = await openStore(home.store, { durability: "process" });
    const session = await store.create({ dialect: "ai-sdk" });
    const turn = await session.startTurn({ role: "user", content: "go" });
    const call = (toolCallId: string) => ({ type: "tool-call", toolCallId, toolName: "read", input: {} }) as const;
    await turn.append({ role: "assistant", content: ["a", "b", "c"].map(call) });
    await turn.abort({ by: "user" });
    await session.startTurn({ role: "user", content: "again" });
    const { stdout } = await home.run(["tail", session.id, "-n", "5"]);
    expect(lines(stdout)).toHaveLength(5);
  });
});

describe("changing", () => {
  test("fork prints the id of the copy, and leaves the other alone, which may be in use", async () => {
    using home = temporaryHome();
    await using store = await openStore(home.store, { durability: "process" });
    const id = await speak(store, { prompt: "one" });
    await using _open = await store.resume(id);
    const before = readFileSync(segment(home, id));
    const { code, stdout } = await home.run(["fork", "latest", "--title", "Copy"]);
    expect(code).toBe(0);
    const reading = await store.read(stdout.trim());
    expect(reading.attributes).toMatchObject({ title: "Copy", forkedFrom: { session: id } });
    expect(reading.entries.map((entry) => entry.id)).toEqual((await store.read(id)).entries.map((entry) => entry.id));
    expect(readFileSync(segment(home, id))).toEqual(before);
    // The id of a part, as "show" gives it out: its message is meant.
    const [prompt, called] = (await store.read(id)).entries;
    const part = (await home.run(["fork", id, "--at", `${called!.id}.1`])).stdout.trim();
    expect((await store.read(part)).entries.slice(0, 2).map((entry) => entry.id)).toEqual([prompt!.id, called!.id]);
    const { stderr } = await home.run(["fork", "latest", "--at", "nonsense"]);
    expect(stderr).toMatch(/no message nonsense[\s\S]*\n {2}"holdfast show <id> --json/);
  });

  test("a session without a title is called after its first prompt, and its fork says so, also behind a summary", async () => {
    using home = temporaryHome();
    const [id] = await speakIn(home.store, { prompt: "the first prompt", compacted: true });
    const fork = (await home.run(["fork", id!])).stdout.trim();
    const titles = json((await home.run(["ls", "--json"])).stdout).map(({ title }) => title);
    expect(titles).toEqual(["the first prompt (fork)", "the first prompt"]);
    expect((await home.run(["show", id!])).stdout).toMatch(/^the first prompt\n/);
    expect((await home.run(["show", fork])).stdout).toMatch(/^the first prompt \(fork\)\n/);
  });

  test("rename keeps an interruption as it is", async () => {
    using home = temporaryHome();
    const [id] = await speakIn(home.store, { prompt: "one", cut: true });
    expect(await home.run(["rename", "latest", "Another", "title"])).toMatchObject({ code: 0, stderr: "" });
    expect(json((await home.run(["ls", "--json"])).stdout)[0]).toMatchObject({
      id,
      title: "Another title",
      status: "stopped",
    });
    expect(await home.run(["rename", id!, " "])).toMatchObject({ code: 2 });
  });

  test("retry lets workers try a turn again on which they have given up", async () => {
    using home = temporaryHome();
    const [id] = await speakIn(home.store, { prompt: "one", cut: true });
    const fails = (): never => {
      throw new Error("the model is away");
    };
    const giveUp = async (): Promise<unknown> => {
      await using store = await openStore(home.store);
      return (await store.claimNext({ ended: true, maxTries: 1 }, fails))?.outcome;
    };
    expect(await giveUp()).toBe("gave-up");
    const parked = await home.run(["ls", "--status", "parked", "--json"]);
    expect(json(parked.stdout)).toMatchObject([{ id, attempts: 1 }]);
    expect(await home.run(["retry", id!])).toMatchObject({ code: 0, stdout: "Workers try it again.\n" });
    expect((await home.run(["retry", "latest"])).stdout).toMatch(/^Not parked/);
    expect(json((await home.run(["ls", "--json"])).stdout)[0]).toMatchObject({ id, status: "paused" });
    expect(await giveUp()).toBe("gave-up");
  });

  test("rm moves to the trash, gc removes after the grace time, with the kept outputs of tools", async () => {
    using home = temporaryHome();
    const [a, b] = await speakIn(home.store, { prompt: "one" }, { prompt: "two" });
    for (const id of [a!, b!]) writeFileSync(join(sessionOutputs(home.store, id)!, "c1.log"), "output");
    // A name that is wrong: nothing at all is removed.
    expect(await home.run(["rm", a!, "feedface"])).toMatchObject({ code: 3 });
    expect(readdirSync(join(home.store, "trash"))).toEqual([]);
    expect(await home.run(["rm", a!])).toMatchObject({
      code: 0,
      stdout: `${a!.slice(-8)} is in the trash.\nTo undo: holdfast restore ${a!.slice(-8)} --store ${home.store}\n`,
    });
    expect(await home.run(["gc"])).toMatchObject({ code: 0, stdout: "Nothing to remove.\n" });
    expect(existsSync(join(home.store, "outputs", a!))).toBe(true);
    expect((await home.run(["gc", "--older-than", "0s", "--yes"])).stdout).toBe(
      "Removed 1 session, and 6 bytes of saved tool outputs.\n",
    );
    expect(readdirSync(join(home.store, "trash"))).toEqual([]);
    expect(readdirSync(join(home.store, "outputs"))).toEqual([b]);
    expect(json((await home.run(["ls", "--json"])).stdout).map(({ id }) => id)).toEqual([b]);
  });

  test("rm takes the sessions of sub-agents along, and theirs, or nothing at all", async () => {
    using home = temporaryHome();
    await using store = await openStore(home.store, { durability: "process", app: "my-agent" });
    const parent = await speak(store, { prompt: "one" });
    const child = await store.create({ dialect: "ai-sdk", parent: { session: parent, call: "c1" } });
    const grandchild = await store.create({ dialect: "ai-sdk", parent: { session: child.id } });
    await child.close();
    const busy = await home.run(["rm", parent]);
    expect(busy).toMatchObject({ code: 4, stdout: "" });
    expect(busy.stderr).toContain(`its sub-agent's session ${grandchild.id.slice(-8)} is open in my-agent`);
    expect([await store.has(parent), await store.has(child.id)]).toEqual([true, true]);
    await grandchild.close();
    // Each is named, as a script would that has them from a list: it goes once.
    const removed = await home.run(["rm", "--json", parent, child.id]);
    expect(removed).toMatchObject({ code: 0, stderr: "" });
    expect(json(removed.stdout)).toEqual([{ id: parent, trashed: true, agents: [child.id, grandchild.id] }]);
    expect((await home.run(["ls", "--all", "--json"])).stdout).toBe("");
  });

  test("C16: rename, rm, pack and repair of a session that is in use: busy, by whom, and nothing touched", async () => {
    using home = temporaryHome();
    await using store = await openStore(home.store, { durability: "process", app: "my-agent" });
    const id = await speak(store, { prompt: "one", compacted: true });
    const free = await speak(store, { prompt: "two", compacted: true });
    await using _open = await store.resume(id);
    const before = readFileSync(segment(home, id, "000002.jsonl"));
    for (const args of [
      ["rename", id, "x"],
      ["rm", id],
      ["pack", id],
    ]) {
      const { code, stderr } = await home.run(args);
      expect(code).toBe(4);
      expect(stderr).toContain(`my-agent (process ${process.pid} on `);
      expect(stderr).toContain(`holdfast fork ${id.slice(-8)}`);
    }
    expect(readFileSync(segment(home, id, "000002.jsonl"))).toEqual(before);
    // One that is busy does not keep the others from it.
    expect(await home.run(["pack", "--all", "--json"])).toMatchObject({ code: 0 });
    expect(existsSync(segment(home, free, "000001.jsonl.zst"))).toBe(true);
    expect((await home.run(["rm", id, free])).code).toBe(4);
    expect(await store.has(free)).toBe(false);
    expect(await store.has(id)).toBe(true);
  });
});

describe("verify and repair", () => {
  test("whole, torn and corrupt, and where; repair sets aside what was never acknowledged", async () => {
    using home = temporaryHome();
    const [whole, torn, corrupt] = (await speakIn(
      home.store,
      { prompt: "one" },
      { prompt: "two" },
      { prompt: "three" },
    )) as [string, string, string];
    expect(await home.run(["verify"])).toMatchObject({ code: 0, stdout: "3 sessions: 3 whole.\n" });
    appendFileSync(segment(home, torn), '{"seq":99,"torn');
    const bytes = readFileSync(segment(home, corrupt));
    const at = bytes.indexOf('"turn.started"') + 3;
    bytes[at] = bytes[at]! ^ 1;
    writeFileSync(segment(home, corrupt), bytes);

    const verified = await home.run(["verify", "--all"]);
    expect(verified.code).toBe(1);
    expect(verified.stdout).toContain(`torn       ${torn}`);
    expect(verified.stdout).toContain("15 bytes at the end were never acknowledged");
    expect(verified.stdout).toMatch(
      new RegExp(`corrupt    ${corrupt}[^\\n]*\\n +000001.jsonl, byte \\d+: \\d+ bytes damaged, record 4`),
    );
    expect(verified.stdout).not.toContain(whole);
    expect(verified.stdout).toMatch(/3 sessions: 1 whole, 1 torn, 1 corrupt\.\n$/);
    expect(await home.run(["verify", whole])).toMatchObject({ code: 0 });
    const healths = json((await home.run(["verify", "--json"])).stdout).map(({ id, health }) => [id, health]);
    expect(new Map(healths as [string, string][])).toEqual(
      new Map([
        [whole, "whole"],
        [torn, "torn"],
        [corrupt, "corrupt"],
      ]),
    );

    const shown = await home.run(["show", corrupt]);
    expect(shown).toMatchObject({ code: 0 });
    expect(shown.stdout).toContain("This session is damaged.");
    expect(shown.stdout).toContain("> three");

    const repaired = await home.run(["repair", "--json"]);
    expect(repaired.code).toBe(1);
    const healed = json(repaired.stdout).find(({ id }) => id === torn)!;
    expect(readFileSync(healed["quarantine"] as string, "utf8")).toBe('{"seq":99,"torn');
    expect(await home.run(["verify", torn])).toMatchObject({ code: 0 });
    expect(await home.run(["repair", torn])).toMatchObject({
      code: 0,
      stdout: "1 session: 1 whole.\n",
    });
    // What is corrupt stays as it is, byte by byte.
    expect(readFileSync(segment(home, corrupt))).toEqual(bytes);
  });

  test("P9: a session of which nothing is left is in no list, but is no whole one either", async () => {
    using home = temporaryHome();
    const [lost] = await speakIn(home.store, { prompt: "one" }, { prompt: "two" });
    writeFileSync(segment(home, lost!), "");
    const verified = await home.run(["verify"]);
    expect(verified).toMatchObject({ code: 1 });
    expect(verified.stdout).toMatch(/^corrupt +\S+ {2}0 records.*\n +No record could be read/);
    expect(verified.stdout).toContain("2 sessions: 1 whole, 1 corrupt.\n");
    expect(await home.run(["repair"])).toMatchObject({ code: 1 });
    const shown = await home.run(["show", lost!]);
    expect(shown).toMatchObject({ code: 5, stdout: "" });
    expect(shown.stderr).toContain("holdfast verify");
    const copied = await home.run(["copy", home.store, join(home.path, "copy"), "--all"]);
    expect(copied.code).toBe(1);
    expect(copied.stdout).toContain("1 of 2 sessions copied");
  });
});

describe("copy", () => {
  test("--all from a store that is named wrongly does not look like a copy", async () => {
    using home = temporaryHome();
    const [from, to] = [join(home.path, "slip"), join(home.path, "backup")];
    await speakIn(home.store, { prompt: "one" }, { prompt: "two" });
    expect(await home.run(["copy", from, to, "--all"])).toMatchObject({
      code: 3,
      stdout: "",
      stderr: expect.stringContaining(`No store in ${from}`),
    });
    expect([existsSync(from), existsSync(to)]).toEqual([false, false]);
    const copied = await home.run(["copy", home.store, to, "--all"]);
    expect(copied).toMatchObject({ code: 0, stderr: "" });
    expect(lines(copied.stdout).at(-1)).toBe(`2 of 2 sessions copied to ${to}, and verified.`);
    // No shell takes ~ behind a colon for the home.
    const homely = await home.run(["copy", to, "sqlite:~/copy.db", "--all"]);
    expect(homely).toMatchObject({ code: 0, stderr: "" });
    expect([existsSync(join(home.path, "copy.db")), existsSync(join(home.work, "~"))]).toEqual([true, false]);
  });

  test("--move to the same store by another path, or to memory, is no move: the originals stay", async () => {
    using home = temporaryHome();
    const [id] = await speakIn(home.store, { prompt: "one" });
    const link = join(home.path, "link");
    symlinkSync(home.store, link);
    const before = readFileSync(segment(home, id!));
    for (const [to, words] of [
      [link, "the same store"],
      ["memory:", "exists only while this command runs"],
    ]) {
      const moved = await home.run(["copy", home.store, to!, "--all", "--move"]);
      expect(moved).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(words!) });
    }
    expect(readFileSync(segment(home, id!))).toEqual(before);
    // One file under two names has leases beside each: they tell nothing.
    const [db, same] = [join(home.path, "a.db"), join(home.path, "b.db")];
    expect(await home.run(["copy", home.store, `sqlite:${db}`, "--all"])).toMatchObject({ code: 0 });
    linkSync(db, same);
    const moved = await home.run(["copy", `sqlite:${db}`, `sqlite:${same}`, "--all", "--move"]);
    expect(moved).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("the same store") });
    expect(existsSync(`${same}-lock`)).toBe(false);
  });

  test("an SQLite store that a program has open: refused, with who that is and what to do", async () => {
    using home = temporaryHome();
    const url = `sqlite:${join(home.path, "busy.db")}`;
    {
      await using store = await openStore(url, { app: "an agent" });
      expect((await store.list()).sessions).toEqual([]);
      const listed = await home.run(["ls", "--store", url]);
      expect(listed).toMatchObject({ code: 4, stdout: "" });
      for (const words of ["[STORE_BUSY]", `an agent (process ${process.pid} on`, "End that program first"])
        expect(listed.stderr.replace(/\s+/g, " ")).toContain(words);
    }
    expect(await home.run(["ls", "--store", url])).toMatchObject({ code: 0 });
  });

  test("a session takes those of its sub-agents along", async () => {
    using home = temporaryHome();
    await using store = await openStore(home.store, { durability: "process" });
    const parent = await speak(store, { prompt: "one" });
    await using child = await store.create({ dialect: "ai-sdk", parent: { session: parent, call: "c1" } });
    const other = await speak(store, { prompt: "two" });
    const to = join(home.path, "copy");
    const copied = json((await home.run(["copy", home.store, to, parent, "--json"])).stdout).map(({ id }) => id);
    expect(copied).toEqual([parent, child.id]);
    expect(copied).not.toContain(other);
  });
});

describe("sqlite", () => {
  test("the same commands on a store that is one file", async () => {
    using home = temporaryHome();
    const url = `sqlite:${join(home.path, "db.sqlite")}`;
    const [id] = await speakIn(url, { prompt: "one", compacted: true });
    const run = (...args: string[]) => home.run(["--store", url, ...args]);
    expect(json((await run("ls", "--json")).stdout)[0]).toMatchObject({ id });
    for (const args of [
      ["show", id!],
      ["tail", id!],
      ["search", "one"],
      ["verify"],
      ["repair"],
      ["rename", id!, "x"],
      ["fork", id!],
      ["rm", id!],
      ["gc", "--older-than", "0s", "--yes"],
    ])
      expect(await run(...args), args.join(" ")).toMatchObject({ code: 0, stderr: "" });
    const packed = await run("pack", "--all");
    expect(packed).toMatchObject({ code: 5, stdout: "" });
    expect(lines(packed.stderr)).toEqual([expect.stringContaining("Only a folder store can be packed")]);
  });
});

import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { listRecordings, placeRecording } from "../../../doctor/test/real/recording.ts";
import { temporaryHome } from "../command.ts";
import { Terminal, whyNoTerminal } from "../screen/terminal.ts";

const recording = listRecordings("claude-code").find(({ story }) => story === "work")!;

/** A home with a session of Claude Code as the program wrote it. */
function homeWithSession() {
  const home = temporaryHome();
  const placed = placeRecording(recording, home.path);
  const [path] = Object.keys(recording.modes).filter((name) => name.endsWith(".jsonl"));
  const id = recording.sessions[0]!.id;
  const file = join(placed.home, path!.replace("-tmp-holdfast-lab", home.path.replaceAll(/[^a-zA-Z0-9]/g, "-")));
  return { home, file, id, env: { CLAUDE_CONFIG_DIR: join(placed.home, ".claude") } };
}

describe("doctor", () => {
  test("a healthy session is not reported", async () => {
    const { home, file, env } = homeWithSession();
    using _ = home;
    const before = readFileSync(file);
    const { stdout, code } = await home.run(["doctor"], { env });
    expect([stdout, code]).toEqual(["1 session: 1 healthy, 0 damaged.\n", 0]);
    expect(readFileSync(file)).toEqual(before);
  });

  test("a torn session: what, where, and what that means; no byte is changed", async () => {
    const { home, file, id, env } = homeWithSession();
    using _ = home;
    const whole = readFileSync(file);
    const lastLine = whole.lastIndexOf(10, whole.length - 2) + 1;
    truncateSync(file, lastLine + 20);
    const before = readFileSync(file);
    const { stdout, code } = await home.run(["doctor"], { env });
    expect(code).toBe(1);
    expect(stdout).toContain("torn-record: The process died while it wrote this record");
    expect(stdout).toContain(`byte ${lastLine}`);
    const json = JSON.parse((await home.run(["doctor", file, "--json"], { env: {} })).stdout);
    expect(json.problems).toMatchObject([
      { session: id, agent: "claude-code", kind: "torn-record", offset: lastLine, file },
    ]);
    expect(Object.keys(json.problems[0])).toEqual(expect.arrayContaining(["line", "means", "fix"]));
    expect(readFileSync(file)).toEqual(before);
  });

  test("control characters in a session do not reach the terminal", async () => {
    const { home, file, env } = homeWithSession();
    using _ = home;
    appendFileSync(
      file,
      `${JSON.stringify({ type: "custom-title", sessionId: "x", customTitle: "\x1b]0;owned\x07a" })}\n`,
    );
    const { stdout } = await home.run(["doctor", "--all"], { env });
    expect(stdout).not.toContain("\x1b]");
  });

  test("a FIFO and a folder without sessions end at once", async () => {
    const { home } = homeWithSession();
    using _ = home;
    const fifo = join(home.path, "pipe");
    execFileSync("mkfifo", [fifo]);
    const piped = await home.run(["doctor", fifo]);
    expect([piped.code, piped.stdout]).toEqual([1, expect.stringContaining("it is no regular file")]);
    mkdirSync(join(home.path, "empty"));
    const empty = await home.run(["doctor", join(home.path, "empty")]);
    expect([empty.code, empty.stdout]).toEqual([0, "0 sessions: 0 healthy, 0 damaged.\n"]);
  });

  test("--secrets counts what looks like a credential, and shows none; it is no problem", async () => {
    const { home, file, id, env } = homeWithSession();
    using _ = home;
    const token = `ghp_${"a1B2c3D4e5F6".repeat(3)}`;
    const text = { type: "custom-title", sessionId: id, customTitle: token };
    appendFileSync(file, `${JSON.stringify(text)}\n`);
    const { stdout, code } = await home.run(["doctor", "--secrets"], { env });
    expect([code, stdout]).toEqual([0, expect.stringMatching(/1 text looks like a credential: 1 [\w-]+\./)]);
    expect(stdout).not.toContain(token);
    const { sessions, problems } = JSON.parse((await home.run(["doctor", "--secrets", "--json"], { env })).stdout);
    expect(Object.values(sessions[0].secrets)).toEqual([1]);
    expect(problems).toEqual([]);
  });

  test("a path that is not there, and a file that is no session", async () => {
    const { home } = homeWithSession();
    using _ = home;
    expect((await home.run(["doctor", "nowhere.jsonl"])).code).toBe(3);
    expect((await home.run(["doctor", join(import.meta.dirname, "../../package.json")])).code).toBe(3);
  });
});

describe("doctor --fix", () => {
  /** The session, torn in its last record. */
  function torn() {
    const { file, ...rest } = homeWithSession();
    const whole = readFileSync(file);
    truncateSync(file, whole.lastIndexOf(10, whole.length - 2) + 20);
    return { file, torn: readFileSync(file), ...rest };
  }

  test("repairs, and a second fix changes nothing; --undo brings the damage back", async () => {
    const { home, file, torn: before, env } = torn();
    using _ = home;
    const dry = await home.run(["doctor", "--dry-run"], { env });
    expect(dry.stdout).toContain("removes a fragment");
    expect(readFileSync(file)).toEqual(before);
    const first = await home.run(["doctor", "--fix", "--yes"], { env });
    expect([first.code, first.stdout]).toEqual([0, expect.stringContaining("the session is healthy. Backup")]);
    const after = readFileSync(file);
    expect(after).not.toEqual(before);
    const second = await home.run(["doctor", "--fix", "--yes"], { env });
    expect(second.stdout).toBe("1 session: 1 healthy, 0 damaged.\n");
    expect(readFileSync(file)).toEqual(after);
    expect((await home.run(["doctor", "--undo"], { env })).code).toBe(0);
    expect(readFileSync(file)).toEqual(before);
  });

  test("undoes nothing if the agent went on with the session", async () => {
    const { home, file, env } = torn();
    using _ = home;
    await home.run(["doctor", "--fix", "--yes"], { env });
    appendFileSync(file, '{"type":"mode","sessionId":"x","mode":"normal"}\n');
    const grown = readFileSync(file);
    expect((await home.run(["doctor", "--undo"], { env })).code).toBe(1);
    expect(readFileSync(file)).toEqual(grown);
  });

  test("is refused while a process has the session open, and so is undo", async () => {
    const { home, file, torn: before, env } = torn();
    using _ = home;
    const words = expect.stringMatching(new RegExp(`process ${process.pid} \\(.*\\) has it open`));
    const held = openSync(file, "a");
    try {
      const { stdout, code } = await home.run(["doctor", "--fix", "--yes"], { env });
      expect([code, stdout]).toEqual([1, words]);
    } finally {
      closeSync(held);
    }
    expect(readFileSync(file)).toEqual(before);
    await home.run(["doctor", "--fix", "--yes"], { env });
    const repaired = readFileSync(file);
    const heldAgain = openSync(file, "a");
    try {
      const { stderr, code } = await home.run(["doctor", "--undo"], { env });
      expect([code, stderr]).toEqual([1, words]);
    } finally {
      closeSync(heldAgain);
    }
    expect(readFileSync(file)).toEqual(repaired);
  });

  test("one session of a database that cannot be repaired stops no other, and is not forgotten", async () => {
    using home = temporaryHome();
    const path = join(home.path, "sessions.db");
    {
      using database = new DatabaseSync(path);
      const row = (id: number, session: string): string => `(${id}, '${session}', 'user', '[{"type', ${id})`;
      database.exec(`create table sessions (id text primary key, description text, working_dir text);
        create table messages (id integer primary key, session_id text, role text, content_json text,
          created_timestamp integer);
        insert into sessions values ('a', '', '/work'), ('b', '', '/work');
        insert into messages values ${row(1, "a")}, ${row(2, "b")};
        create trigger t before update on messages when old.id = 1 begin select raise(abort, 'not this one'); end`);
    }
    const { stdout, code } = await home.run(["doctor", "--fix", "--yes", path], {});
    expect(stdout).toContain("not repaired: not this one");
    expect(stdout).toContain("2 sessions: 0 healthy, 1 repaired, 1 damaged.");
    expect(code).toBe(1);
  });

  test("at a terminal it asks: Ctrl+D is a no, Ctrl+C ends the command, y repairs", async (context) => {
    if (whyNoTerminal !== null) context.skip(whyNoTerminal);
    const { home, file, torn: before, env } = torn();
    using _ = home;
    const open = () => Terminal.open(["doctor", "--fix"], { cwd: home.work, env: { ...home.env, ...env } });
    {
      await using terminal = await open();
      await terminal.untilAll("[y/N]");
      await terminal.keys("C-d");
      await terminal.untilAll("not repaired: you said no");
      expect(await terminal.ended()).toMatchObject({ code: 1 });
    }
    {
      await using terminal = await open();
      await terminal.untilAll("[y/N]");
      await terminal.keys("C-c");
      expect(await terminal.ended()).toMatchObject({ signal: "SIGINT" });
    }
    expect(readFileSync(file)).toEqual(before);
    await using terminal = await open();
    await terminal.untilAll("[y/N]");
    await terminal.keys("y", "Enter");
    await terminal.untilAll("the session is healthy");
    expect(await terminal.ended()).toMatchObject({ code: 0 });
  });

  test("says what to type next, and it works when typed; an id names a session too", async () => {
    const { home, file, id, torn: before, env } = torn();
    using _ = home;
    const said = await home.run(["doctor", id.slice(0, 8)], { env });
    expect(said.stdout).toContain(`To repair: holdfast doctor --fix ${id.slice(0, 8)}\n`);
    const { stdout } = await home.run(["doctor", "--fix", "--yes", id.slice(0, 8)], { env });
    const [, backup] = /To undo the last repair: holdfast doctor --undo (\S+)\n/.exec(stdout)!;
    expect((await home.run(["doctor", "--undo", backup!], { env })).code).toBe(0);
    expect(readFileSync(file)).toEqual(before);
    expect((await home.run(["doctor", "--yes"], { env })).code).toBe(2);
  });

  test("promises no repair that it does not have, and says how to save what can be read", async () => {
    const recorded = listRecordings("copilot").find(({ story }) => story === "work")!;
    using home = temporaryHome();
    const placed = placeRecording(recorded, home.path);
    const env = { COPILOT_HOME: join(placed.home, ".copilot") };
    writeFileSync(join(placed.home, ".copilot/session-store.db"), Buffer.alloc(8_192, 7));
    const { problems } = JSON.parse((await home.run(["doctor", "--json"], { env })).stdout);
    expect(problems).toMatchObject([{ kind: "damaged-database", fix: expect.stringContaining("None yet") }]);
    const { stdout } = await home.run(["doctor", "--fix", "--yes"], { env });
    expect(stdout).toContain("not repaired: no repair is known for this yet");
    const [, path] = /holdfast import (\S+)(?: --store \S+)?\n/.exec(stdout)!;
    expect((await home.run(["import", path!], { env })).stdout).toContain("26 of 26 messages added");
  });

  test("a damaged file that cannot be read is repaired in two steps, and undone in two", async () => {
    const { home, file, torn: before, env } = torn();
    using _ = home;
    chmodSync(file, 0o200);
    expect((await home.run(["doctor", "--dry-run"], { env })).stdout).toContain("  mode 600: restores the owner's");
    const { stdout, code } = await home.run(["doctor", "--fix", "--yes"], { env });
    expect([code, stdout.match(/repaired: /g)]).toEqual([0, ["repaired: ", "repaired: "]]);
    expect(stdout).toContain("1 session: 0 healthy, 1 repaired, 0 damaged.");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    await home.run(["doctor", "--undo"], { env });
    expect(readFileSync(file)).toEqual(before);
    await home.run(["doctor", "--undo"], { env });
    expect(statSync(file).mode & 0o777).toBe(0o200);
    expect(await home.run(["doctor", "--undo"], { env })).toMatchObject({ code: 3 });
  });

  test("one session that is in use, and one that is no session, stop no other", async () => {
    const { home, file, env } = torn();
    using _ = home;
    const other = join(dirname(file), "11111111-2222-4333-8444-555555555555.jsonl");
    writeFileSync(other, readFileSync(file));
    mkdirSync(join(dirname(file), "00000000-0000-4000-8000-000000000000.jsonl"));
    const held = openSync(file, "a");
    try {
      const { stdout, code } = await home.run(["doctor", "--fix", "--yes"], { env });
      expect([code, stdout]).toEqual([1, expect.stringContaining("2 sessions: 0 healthy, 1 repaired, 1 damaged.")]);
    } finally {
      closeSync(held);
    }
    const before = readFileSync(other);
    expect((await home.run(["doctor", "--fix", "--yes", other, "nowhere"], { env })).code).toBe(3);
    expect(readFileSync(other)).toEqual(before);
  });

  test("asks nobody without a terminal", async () => {
    const { home, file, torn: before, env } = torn();
    using _ = home;
    expect((await home.run(["doctor", "--fix"], { env })).code).toBe(2);
    expect(readFileSync(file)).toEqual(before);
  });
});

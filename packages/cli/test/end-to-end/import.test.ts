import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { accountOf, openStore } from "holdfast";
import { describe, expect, test } from "vitest";
import { fileOf, linesOf } from "../../../doctor/test/damage/line-damage.ts";
import { listRecordings, placeRecording } from "../../../doctor/test/real/recording.ts";
import { type Home, temporaryHome } from "../command.ts";

function placed(story: string) {
  const home = temporaryHome();
  const recording = listRecordings("claude-code").find((each) => each.story === story)!;
  const { home: other } = placeRecording(recording, home.path);
  const projects = join(other, ".claude/projects");
  const [project] = readdirSync(projects);
  const id = recording.sessions[0]!.id;
  return {
    home,
    id,
    file: join(projects, project!, `${id}.jsonl`),
    env: { CLAUDE_CONFIG_DIR: join(other, ".claude") },
  };
}

const imported = async (home: Home, given: string, env: Record<string, string>) => {
  const { stdout, stderr, code } = await home.run(["import", given, "--json"], { env });
  expect([code, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout);
};

/** Another prompt at the end of a session of Claude Code. */
function grown(lines: readonly Buffer[]): Buffer {
  const last = lines.findLast((line) => line.includes('"type":"assistant"'))!;
  const { uuid, sessionId, cwd } = JSON.parse(String(last)) as Record<string, string>;
  const message = { role: "user", content: "And what do storks eat?" };
  const record = { parentUuid: uuid, isSidechain: false, type: "user", message, uuid: `${uuid!.slice(0, -1)}f` };
  return Buffer.from(`${JSON.stringify({ ...record, timestamp: "2026-11-19T23:00:00Z", cwd, sessionId })}\n`);
}

describe("import", () => {
  test("a session of Claude Code, by its id: its words are there, its files beside it, byte for byte", async () => {
    const { home, id, file, env } = placed("work");
    using _ = home;
    const before = readFileSync(file);
    const done = await imported(home, id.slice(0, 8), env);
    const shown = (await home.run(["show", done.id])).stdout;
    expect(shown).toContain("There is one heron in this folder.");
    expect(shown).toContain("Two worked, and one failed with status 3.");
    expect(readFileSync(file)).toEqual(before);
    expect(readFileSync(join(done.originals, `${id}.jsonl`))).toEqual(before);
  });

  test("a session that grew: only what is new is added, and nothing twice", async () => {
    const { home, file, env } = placed("work");
    using _ = home;
    const lines = linesOf(readFileSync(file));
    // Up to the end of the second turn.
    const end = lines.findIndex((line) => line.includes("There is one heron in this folder.")) + 1;
    writeFileSync(file, fileOf(lines.slice(0, end)));
    const first = await imported(home, file, env);
    writeFileSync(file, fileOf(lines));
    const second = await imported(home, file, env);
    expect(second.id).toBe(first.id);
    expect(first.added).toBe(first.messages);
    expect(second.added).toBe(second.messages - first.messages);
    expect((await imported(home, file, env)).added).toBe(0);
    const other = temporaryHome();
    using __ = other;
    const whole = await imported(other, file, env);
    await using store = await openStore(home.store);
    await using fresh = await openStore(other.store);
    const reading = await store.read(first.id, { dialect: "ai-sdk" });
    expect(reading.messages).toEqual((await fresh.read(whole.id, { dialect: "ai-sdk" })).messages);
    expect(reading.entries).toHaveLength(second.messages);
  });

  test("it belongs to its agent: ours does not offer to finish it", async () => {
    const { home, file, env } = placed("killed");
    using _ = home;
    const done = await imported(home, file, env);
    await using store = await openStore(home.store);
    const reading = await store.read(done.id, { dialect: "ai-sdk" });
    expect(reading.attributes.app).toBe("claude-code");
    expect(accountOf(reading, { app: "holdfast" }).can.finish).toMatchObject({ no: "written-by" });
  });

  test("where credentials are redacted, the agent's files are not kept", async () => {
    const { home, file, env } = placed("talk");
    using _ = home;
    const done = await imported(home, file, { ...env, HOLDFAST_REDACT: "1" });
    expect(done.originals).toBeNull();
    expect(readdirSync(home.store, { recursive: true, encoding: "utf8" }).join()).not.toContain("originals");
  });

  test("an interrupted turn is shown as such, and the session can be resumed", async () => {
    const { home, file, env } = placed("killed");
    using _ = home;
    const done = await imported(home, file, env);
    await using store = await openStore(home.store);
    await using session = await store.resume(done.id, { dialect: "ai-sdk" });
    expect(session.interruption?.calls.length).toBe(1);
    const turn = await session.startTurn({ role: "user", content: "Go on." });
    expect(turn.request().messages.at(-1)).toMatchObject({ role: "user" });
  });

  test("Holdfast's own agent continues it; then the agent's own session cannot take its place", async () => {
    const { home, file, env } = placed("work");
    using _ = home;
    const lines = linesOf(readFileSync(file));
    writeFileSync(file, fileOf(lines.slice(0, -6)));
    const done = await imported(home, file, env);
    const talk = await home.run(["run", "--resume", done.id, "--here", "--model", "offline", "hello"]);
    expect([talk.code, talk.stdout]).toEqual([0, expect.stringContaining("For real work")]);
    // Nothing is new there.
    expect((await imported(home, file, env)).added).toBe(0);
    writeFileSync(file, fileOf([...lines, ...linesOf(grown(lines))]));
    const refused = await home.run(["import", file], { env });
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("SESSION_CONTINUED") });
    expect((await home.run(["show", done.id])).stdout).toContain("For real work");
    const { stdout } = await home.run(["import", file, "--copy", "later", "--json"], { env });
    expect(JSON.parse(stdout).id).not.toBe(done.id);
  });

  test("in another dialect, if that is asked for; a session keeps its own", async () => {
    const { home, file, env } = placed("work");
    using _ = home;
    const { stdout } = await home.run(["import", file, "--dialect", "anthropic", "--json"], { env });
    expect(JSON.parse(stdout)).toMatchObject({ dialect: "anthropic" });
    expect((await imported(home, file, env)).dialect).toBe("anthropic");
    const other = await home.run(["import", file, "--dialect", "gemini"], { env });
    expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining("DIALECT_FIXED") });
    const unknown = await home.run(["import", file, "--dialect", "klingon"], { env });
    expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining("Unknown dialect") });
  });

  test("a sub-agent's conversation is a session of its own, linked to its call", async () => {
    const { home, file, env } = placed("subagent");
    using _ = home;
    const done = await imported(home, file, env);
    expect(done.agents).toHaveLength(1);
    await using store = await openStore(home.store);
    const reading = await store.read(done.agents[0], { dialect: "ai-sdk" });
    expect(reading.attributes.parent).toMatchObject({ session: done.id, call: expect.any(String) });
  });

  test("a session of OpenCode: its words and its rows, and nothing else of its database", async () => {
    const home = temporaryHome();
    using _ = home;
    const recording = listRecordings("opencode").find((each) => each.story === "killed-resumed")!;
    const { home: other } = placeRecording(recording, home.path);
    const share = join(other, ".local/share");
    {
      using database = new DatabaseSync(join(share, "opencode/opencode.db"));
      database.exec("insert into credential values ('c', null, 'key', 'sk-very-secret', null, null, 1, 0, 0)");
    }
    const id = recording.sessions[0]!.id;
    const done = await imported(home, id, { XDG_DATA_HOME: share });
    expect((await home.run(["show", done.id])).stdout).toContain("Egrets eat fish.");
    const rows = linesOf(readFileSync(join(done.originals, "opencode.db.jsonl"))).map((line) => String(line));
    expect(rows.some((row) => row.includes('"table":"part"') && row.includes("one heron"))).toBe(true);
    expect(rows.join()).not.toContain("sk-very-secret");
    expect((await imported(home, join(share, "opencode/opencode.db"), { XDG_DATA_HOME: share })).added).toBe(0);
    await using store = await openStore(home.store);
    await using session = await store.resume(done.id, { dialect: "ai-sdk" });
    const turn = await session.startTurn({ role: "user", content: "Go on." });
    expect(turn.request().messages.at(-1)).toMatchObject({ role: "user" });
  });

  test("what is no session, and what is on no machine", async () => {
    const { home } = placed("talk");
    using _ = home;
    expect((await home.run(["import", "nothing-like-this"])).code).toBe(3);
  });
});

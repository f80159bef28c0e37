import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openStore } from "holdfast";
import { describe, expect, test } from "vitest";
import { listRecordings, placeRecording } from "../../../doctor/test/real/recording.ts";
import { type Home, temporaryHome } from "../command.ts";

/** A session of an agent, in a home where the other agents have none yet. */
function placed(format: string, story: string) {
  const home = temporaryHome();
  const recording = listRecordings(format).findLast((each) => each.story === story)!;
  const { home: user, work, sessions } = placeRecording(recording, home.path);
  return { home, user, work, id: sessions[0]!.id, env: { HOME: user } };
}

async function moved(home: Home, args: readonly string[], options: Parameters<Home["run"]>[1]) {
  const { stdout, stderr, code } = await home.run(["export", ...args, "--json"], options);
  expect([code, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout) as { id: string; files: string[]; resume: string[]; leftOut: string[]; written: boolean };
}

describe("export --to", () => {
  test("a session of another agent, by its id: the file is where the other one looks, and only the user can read it", async () => {
    const { home, user, work, id, env } = placed("codex", "work");
    using _ = home;
    const { stdout, code } = await home.run(["export", id, "--to", "claude-code", "--cwd", work], { env });
    expect(code).toBe(0);
    const folder = join(user, ".claude/projects", work.replaceAll(/[^a-zA-Z0-9]/g, "-"));
    const [name] = readdirSync(folder);
    expect(statSync(join(folder, name!)).mode & 0o777).toBe(0o600);
    expect(stdout).toContain(`wrote ${join(folder, name!)}`);
    expect(stdout).toContain(`claude --resume ${name!.replace(".jsonl", "")}`);
    expect(stdout).toMatch(/^ {2}not carried over: \d+ pieces of reasoning/m);
    expect(readFileSync(join(folder, name!), "utf8")).toContain("There is one heron in this folder.");
    // Nothing was kept of it.
    expect(existsSync(home.store)).toBe(false);
  });

  test("the same session again, unchanged, is refused; when it has grown, it is another one", async () => {
    const { home, work, id, env } = placed("pi", "killed");
    using _ = home;
    const first = await moved(home, [id, "--to", "codex", "--cwd", work], { env });
    const before = readFileSync(first.files[0]!);
    const again = await home.run(["export", id, "--to", "codex", "--cwd", work], { env });
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining("OUTPUT_EXISTS") });
    expect(readFileSync(first.files[0]!)).toEqual(before);
    const imported = JSON.parse((await home.run(["import", id, "--json"], { env })).stdout) as { id: string };
    {
      await using store = await openStore(home.store);
      await using session = await store.resume(imported.id, { dialect: "ai-sdk" });
      await session.startTurn({ role: "user", content: "Go on." });
    }
    const grown = await moved(home, [imported.id, "--to", "codex", "--cwd", work], { env });
    expect(grown.id).not.toBe(first.id);
    expect(readFileSync(grown.files[0]!, "utf8")).toContain("Go on.");
  });

  test("a call that was interrupted has a result that says so", async () => {
    const { home, work, id, env } = placed("claude-code", "killed");
    using _ = home;
    const { files } = await moved(home, [id, "--to", "pi", "--cwd", work], { env });
    const results = readFileSync(files[0]!, "utf8")
      .split("\n")
      .filter((line) => line.includes('"toolResult"'));
    expect(results.at(-1)).toContain("This call may have run: check before repeating it.");
    expect(results.at(-1)).toContain('"isError":true');
  });

  test("--dry-run writes nothing; --out writes a file, or into a folder", async () => {
    const { home, user, work, id, env } = placed("claude-code", "talk");
    using _ = home;
    const options = { env, cwd: work };
    const dry = await moved(home, [id, "--to", "gemini", "--cwd", work, "--dry-run"], options);
    expect([dry.written, existsSync(dry.files.at(-1)!)]).toEqual([false, false]);
    const file = join(home.path, "talk.jsonl");
    expect((await moved(home, [id, "--to", "gemini", "--cwd", work, "--out", file], options)).files).toEqual([file]);
    const again = await home.run(["export", id, "--to", "gemini", "--cwd", work, "--out", file], options);
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining("OUTPUT_EXISTS") });
    mkdirSync(join(home.path, "folder"));
    const copilot = await moved(home, [id, "--to", "copilot", "--out", join(home.path, "folder")], options);
    expect(copilot.files.map((path) => path.slice(home.path.length))).toEqual([
      `/folder/${copilot.id}/workspace.yaml`,
      `/folder/${copilot.id}/events.jsonl`,
    ]);
    expect(existsSync(join(user, ".gemini")) || existsSync(join(user, ".copilot"))).toBe(false);
    const opencode = await moved(home, [id, "--to", "opencode"], options);
    expect(opencode.files).toEqual([join(work, `${opencode.id}.json`)]);
    expect(opencode.resume.join("\n")).toContain(`opencode import ${opencode.files[0]}`);
  });

  test("--redact, and what a session of the store has beside its messages", async () => {
    const { home, work, env } = placed("claude-code", "talk");
    using _ = home;
    const key = `sk-ant-api03-${"a".repeat(80)}`;
    let id = "";
    {
      await using store = await openStore(home.store);
      await using session = await store.create({ dialect: "openai-chat", title: "Keys", cwd: work });
      id = session.id;
      const turn = await session.startTurn([
        { role: "system", content: "Be brief." },
        { role: "user", content: `My key is ${key}` },
      ]);
      await turn.append({ role: "assistant", content: "I will not repeat it." });
      await turn.end();
    }
    const { files, leftOut } = await moved(home, [id, "--to", "pi", "--redact"], { env });
    const text = readFileSync(files[0]!, "utf8");
    expect(text).toContain("I will not repeat it.");
    expect(text).toContain('"name":"Keys"');
    expect(text).not.toContain(key);
    expect(leftOut).toEqual(["1 system message: each agent has its own"]);
  });

  test.each([
    [["--to", "vim"], "Sessions cannot be moved to"],
    [["--to", "pi", "--format", "html"], "--format does not go with --to"],
    [["--to", "pi", "--force"], "--force does not go with --to"],
    [["--cwd", "/"], "--cwd goes with --to"],
  ])("%j is refused", async (args, words) => {
    const { home, id, env } = placed("claude-code", "talk");
    using _ = home;
    const ended = await home.run(["export", id, ...args], { env });
    expect(ended).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(words) });
  });

  test("a folder of several sessions, a file of nobody, and an id that nobody knows", async () => {
    const { home, user, env } = placed("claude-code", "two");
    using _ = home;
    const all = await home.run(["export", join(user, ".claude/projects"), "--to", "pi"], { env });
    expect(all).toMatchObject({ code: 2, stderr: expect.stringContaining("There are 2 sessions") });
    writeFileSync(join(user, "notes.txt"), "nothing\n");
    expect((await home.run(["export", join(user, "notes.txt"), "--to", "pi"], { env })).code).toBe(3);
    expect((await home.run(["export", "deadbeef", "--to", "pi"], { env })).code).toBe(3);
    expect(existsSync(join(user, ".pi"))).toBe(false);
  });
});

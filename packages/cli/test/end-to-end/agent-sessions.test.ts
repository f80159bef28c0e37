import { execFileSync } from "node:child_process";
import { appendFileSync, existsSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { listRecordings, placeRecording } from "../../../doctor/test/real/recording.ts";
import { temporaryHome } from "../command.ts";

const recording = listRecordings("claude-code").find(({ story }) => story === "talk")!;

/** A home with a session of Claude Code as the program wrote it. */
function homeWithSession() {
  const home = temporaryHome();
  const placed = placeRecording(recording, home.path);
  const [path] = Object.keys(recording.modes).filter((name) => name.endsWith(".jsonl"));
  const file = join(placed.home, path!.replace("-tmp-holdfast-lab", home.path.replaceAll(/[^a-zA-Z0-9]/g, "-")));
  const env = { CLAUDE_CONFIG_DIR: join(placed.home, ".claude") };
  return { home, file, work: placed.work, id: recording.sessions[0]!.id, env };
}

describe("ls --agents, search --agents", () => {
  test("lists and finds a session in place, with commands that work when typed; no byte is changed", async () => {
    const { home, file, id, work, env } = homeWithSession();
    using _ = home;
    const before = readFileSync(file);
    const listed = await home.run(["ls", "--agents"], { env });
    expect(listed.stdout).toMatch(/claude-code +unread .*What is a heron/);
    expect(listed.stdout).toContain(`cd ${work} && claude --resume ${id}`);
    const found = await home.run(["search", "--agents", "heron"], { env });
    expect(found.stdout).toContain("What is a heron?");
    const json = JSON.parse((await home.run(["ls", "--agents", "--json"], { env })).stdout);
    expect(json).toMatchObject({ agent: "claude-code", session: id, path: file, cwd: work, state: "healthy" });
    const typed = json.commands.import.split(" ").slice(1);
    expect(found.stdout).toContain(json.commands.import);
    expect((await home.run(typed, { env })).stdout).toContain("4 of 4 messages added");
    expect(readFileSync(file)).toEqual(before);
  });

  test("a damaged one says so, and its command repairs it", async () => {
    const { home, file, env } = homeWithSession();
    using _ = home;
    const before = readFileSync(file);
    appendFileSync(file, '{"type":"user","mess');
    await home.run(["search", "--agents", "heron"], { env });
    const { stdout } = await home.run(["ls", "--agents", "--status", "damaged", "--json"], { env });
    const { commands, kinds } = JSON.parse(stdout);
    expect(kinds).toEqual(["torn-record"]);
    expect((await home.run([...commands.repair.split(" ").slice(1), "--yes"], { env })).code).toBe(0);
    expect(readFileSync(file)).toEqual(before);
    expect((await home.run(["ls", "--agents", "--status", "damaged"], { env })).stdout).toContain("No such sessions");
  });

  test("filters; what no agent is called, and a status of the other kind, are refused", async () => {
    const { home, work, env } = homeWithSession();
    using _ = home;
    const ids = async (...args: string[]): Promise<number> =>
      (await home.run(["ls", "--agents", "--json", ...args], { env })).stdout.split("\n").length - 1;
    expect(await ids("--app", "claude-code")).toBe(1);
    expect(await ids("--app", "codex")).toBe(0);
    expect(await ids("--since", "2999-01-01")).toBe(0);
    for (const [cwd, count] of [
      [realpathSync(work), 1],
      [home.path, 0],
    ] as const) {
      const { stdout } = await home.run(["ls", "--agents", "--here", "--json"], { env, cwd });
      expect(stdout.split("\n").length - 1, cwd).toBe(count);
    }
    expect((await home.run(["ls", "--agents", "--app", "claude"], { env })).code).toBe(2);
    expect((await home.run(["ls", "--agents", "--status", "running"], { env })).code).toBe(2);
    expect((await home.run(["ls", "--status", "damaged"], { env })).code).toBe(2);
    expect((await home.run(["search", "--agents", "nowhereatall"], { env })).code).toBe(1);
  });

  test("control characters and credentials of a session reach no terminal", async () => {
    const { home, file, env } = homeWithSession();
    using _ = home;
    const secret = `ghp_${"a1B2".repeat(9)}`;
    const title = { type: "custom-title", sessionId: "x", customTitle: `\x1b]0;owned\x07egret ${secret}` };
    appendFileSync(file, `${JSON.stringify(title)}\n`);
    for (const args of [["search", "egret"], ["search", "egret", "--json"], ["ls"], ["ls", "--json"]]) {
      const { stdout } = await home.run([args[0]!, "--agents", ...args.slice(1)], { env });
      expect(stdout).toContain("egret");
      expect(stdout).not.toContain("\x1b]");
      expect(stdout).not.toContain(secret);
    }
  });

  test("without sessions there is nothing to list, and no agent's folder is made", async () => {
    using home = temporaryHome();
    const { stdout, code } = await home.run(["ls", "--agents"]);
    expect([stdout, code]).toEqual(["No sessions of agents here.\n", 0]);
    expect(existsSync(join(home.path, ".claude"))).toBe(false);
    expect(
      execFileSync("find", [home.path, "-name", "agent-sessions.sqlite", "-perm", "600"], { encoding: "utf8" }).trim(),
    ).not.toBe("");
  });
});

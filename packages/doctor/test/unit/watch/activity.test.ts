import { spawn } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Activity, AGENTS } from "../../../src/index.ts";
import type { ProcessTable, SeenSession } from "../../../src/watch/activity.ts";
import { type AgentProcess, listProcesses, writersOf } from "../../../src/watch/processes.ts";

const claude = AGENTS.find(({ name }) => name === "claude-code")!;
const LIMITS = { ms: 1_000, cpuMs: 100 };

const seen = (path: string, grownAt: number | null): SeenSession => ({
  found: { agent: claude, session: { agent: "claude-code", id: "s", path, parts: [] } },
  grownAt,
});
const working = (cpuMs: number, more: Partial<AgentProcess> = {}): AgentProcess => ({
  ...{ agent: "claude-code", pid: 7, folder: "/home/you/work", started: 1, cpuMs, ageMs: 60_000 },
  ...more,
});

/** What is said when the processes and sessions are these, one look after another. */
function looks(...steps: readonly (readonly [now: number, processes: AgentProcess[], sessions: SeenSession[]])[]) {
  let processes: readonly AgentProcess[] = [];
  const table: ProcessTable = { list: () => processes, writers: () => new Map() };
  const activity = new Activity(table, LIMITS);
  return steps.map(([now, all, sessions]) => {
    processes = all;
    return [...activity.look(AGENTS, sessions, now)].map(({ words }) => words);
  });
}

describe("an agent that works and writes nothing", () => {
  const own = "/home/you/.claude/projects/-home-you-work/s.jsonl";
  test("is said once, with its process and folder", () => {
    const said = looks(
      [0, [working(0)], [seen(own, null)]],
      [2_000, [working(900)], []],
      [4_000, [working(1_800)], []],
    );
    expect(said.map((words) => words.length)).toEqual([0, 1, 0]);
    expect(said[1]![0]).toContain("Claude Code (process 7 in /home/you/work)");
  });

  test("is not said of one that waits, or that writes", () => {
    expect(looks([0, [working(0)], []], [2_000, [working(50)], []])).toEqual([[], []]);
    expect(looks([0, [working(0)], []], [2_000, [working(900)], [seen(own, 1_500)]])).toEqual([[], []]);
  });

  test("what is written for another folder does not count", () => {
    const other = seen("/home/you/.claude/projects/-home-you-other/t.jsonl", 1_500);
    const said = looks([0, [working(0)], [seen(own, null), other]], [2_000, [working(900)], [seen(own, null), other]]);
    expect(said[1]).toHaveLength(1);
  });

  test("another process with the same number is another one", () => {
    const next = working(900, { started: 2 });
    expect(looks([0, [working(0)], []], [2_000, [next], []])).toEqual([[], []]);
  });
});

test("two processes with one file open to write are said once, until there is one", () => {
  const session = seen("/x/s.jsonl", 1);
  let pids = [1];
  const activity = new Activity({ list: () => [], writers: () => new Map([["/x/s.jsonl", pids]]) }, LIMITS);
  const kinds = [[1], [1, 2], [1, 2, 3], [2], [2, 4]].map((now) => {
    pids = now;
    return [...activity.writers([session])].map(({ kind }) => kind);
  });
  expect(kinds).toEqual([[], ["second-writer"], [], [], ["second-writer"]]);
});

describe.runIf(process.platform === "linux")("the processes of this machine", () => {
  let root = "";
  beforeAll(() => {
    root = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-processes-")));
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  test("an agent is found by its program, with its folder; who has a file open to write, and not to read", async () => {
    const program = join(root, "bin/claude.mjs");
    mkdirSync(join(root, "bin"));
    const file = join(root, "s.jsonl");
    writeFileSync(file, "");
    writeFileSync(
      program,
      `import { openSync } from "node:fs"; openSync(${JSON.stringify(file)}, "a"); console.log("ready"); process.stdin.resume();`,
    );
    const child = spawn(process.execPath, [program], { cwd: root, stdio: ["pipe", "pipe", "inherit"] });
    const reading = openSync(file, "r");
    try {
      await new Promise((resolve) => child.stdout.once("data", resolve));
      const own = listProcesses(AGENTS).find(({ pid }) => pid === child.pid);
      expect(own).toMatchObject({ agent: "claude-code", folder: root });
      expect(own!.cpuMs).toBeGreaterThan(0);
      expect(own!.ageMs).toBeLessThan(600_000);
      expect(writersOf(new Set([file])).get(file)).toEqual([child.pid]);
    } finally {
      closeSync(reading);
      const end = new Promise((resolve) => child.once("close", resolve));
      child.stdin.end();
      child.kill();
      await end;
    }
  });
});

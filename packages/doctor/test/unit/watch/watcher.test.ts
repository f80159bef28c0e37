import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Activity, AGENTS, type Alarm, Door, type Keeper, keptCopyOf, PACE, SessionWatch } from "../../../src/index.ts";
import type { AgentProcess } from "../../../src/watch/processes.ts";
import { listRecordings, placeRecording } from "../../real/recording.ts";

/** The same as in use, in a shorter time. */
const QUICK = { ...PACE, sweep: 200, poll: 200, quiet: 150, gone: 150 };

let root = "";
let stage: Stage;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "holdfast-watch-"));
  stage = new Stage();
});
afterEach(async () => {
  await stage.stop();
  rmSync(root, { recursive: true, force: true });
});

/** A home with agents, and a keeper that notes what it is given. */
class Stage {
  readonly door = new Door();
  readonly alarms: Alarm[] = [];
  readonly troubles: string[] = [];
  readonly brought: string[] = [];
  processes: readonly AgentProcess[] = [];
  readonly home = join(root, "home");
  /** Thrown at each attempt to keep something. */
  failure: (Error & { readonly code?: string }) | null = null;
  watch: SessionWatch | null = null;

  constructor() {
    this.door.keptFolderOf = (agent, session) => join(root, "kept", agent, session);
  }

  async start(keepsFiles = true): Promise<void> {
    const keeper: Keeper = {
      keepsFiles,
      folderOf: (agent, session) => {
        if (this.failure) throw this.failure;
        const folder = join(root, "kept", agent, session);
        mkdirSync(folder, { recursive: true });
        return folder;
      },
      bring: async ({ session }) => {
        this.brought.push(session.id);
      },
    };
    this.watch = new SessionWatch(
      AGENTS,
      { environment: {}, home: this.home },
      this.door,
      keeper,
      {
        alarm: (alarm) => this.alarms.push(alarm),
        trouble: (key, words) => this.troubles.push(`${key}: ${words}`),
        recovered: () => undefined,
        troubleOf: (error) => ({
          key: error === this.failure ? "store" : null,
          words: error instanceof Error ? error.message : "",
        }),
      },
      { pace: QUICK, activity: new Activity({ list: () => this.processes, writers: () => new Map() }) },
    );
    await this.watch.start();
  }

  async stop(): Promise<void> {
    await this.watch?.stop();
    this.watch = null;
    this.door[Symbol.dispose]();
  }

  get kinds(): string[] {
    return this.alarms.map(({ kind }) => kind);
  }

  /** What was kept of the session at a path. */
  kept(path: string, agent = "claude-code"): string | null {
    const id = basename(path, ".jsonl");
    const copy = keptCopyOf({ agent, id, path, parts: [] }, this.door)?.session;
    return copy ? readFileSync(copy.path, "utf8") : null;
  }
}

const record = (uuid: string, parent: string | null, content = "words"): string =>
  `${JSON.stringify({ type: "user", uuid, parentUuid: parent, sessionId: "s", message: { role: "user", content } })}\n`;

/** A place for a session of Claude Code. */
function place(id = "one", project = "-work"): string {
  const folder = join(stage.home, ".claude/projects", project);
  mkdirSync(folder, { recursive: true });
  return join(folder, `${id}.jsonl`);
}

/** As a whole: nobody sees half of it. */
function replace(path: string, content: string): void {
  writeFileSync(join(root, "new"), content);
  renameSync(join(root, "new"), path);
}

const until = (isSo: () => boolean): Promise<void> => expect.poll(isSo, { interval: 10 }).toBe(true);

describe("the watch", () => {
  test("keeps what is there, and each line that comes, in old and new sessions, folders and homes", async () => {
    const early = place("early");
    writeFileSync(early, record("a", null));
    await stage.start();
    expect(stage.kept(early)).toBe(record("a", null));
    appendFileSync(early, record("b", "a"));
    await until(() => stage.kept(early) === readFileSync(early, "utf8"));
    const late = place("late", "-other");
    for (const n of ["1", "2", "3"]) {
      appendFileSync(late, record(n, null));
      await until(() => stage.kept(late) === readFileSync(late, "utf8"));
    }
    // Not there when the watch began.
    const pi = join(stage.home, ".pi/agent/sessions/--work--/2026-01-01T00-00-00-000Z_x.jsonl");
    mkdirSync(join(pi, ".."), { recursive: true });
    writeFileSync(pi, `${JSON.stringify({ type: "session", version: 3, id: "x", cwd: "/work" })}\n`);
    await until(() => stage.brought.includes("x"));
    expect([stage.alarms, stage.troubles]).toEqual([[], []]);
  });

  test("the sessions of every agent, as the programs wrote them, are kept without a word", async () => {
    const ids = [];
    for (const format of ["claude-code", "codex", "copilot", "gemini", "pi", "opencode", "dsh"]) {
      const recording = listRecordings(format)[0]!;
      placeRecording(recording, root);
      ids.push(...recording.sessions.map(({ id }) => id));
    }
    await stage.start();
    expect(new Set(stage.brought)).toEqual(new Set(ids));
    expect([stage.alarms, stage.troubles]).toEqual([[], []]);
  });

  test("alarms: shrunk, rewritten, unreadable, deleted; each is said once, and what was there stays", async () => {
    const path = place();
    const [one, two] = [record("a", null) + record("b", "a"), record("c", null) + record("d", "c")];
    writeFileSync(path, one);
    await stage.start();
    truncateSync(path, record("a", null).length);
    await until(() => stage.kinds.includes("shrunk"));
    replace(path, two);
    await until(() => stage.kinds.includes("rewritten"));
    appendFileSync(path, '{"type":"user","uuid":"e","par');
    await until(() => stage.kinds.includes("unreadable"));
    appendFileSync(path, "\n");
    await until(() => stage.kept(path) === readFileSync(path, "utf8"));
    rmSync(path);
    await until(() => stage.kinds.includes("deleted"));
    expect(stage.kinds).toEqual(["shrunk", "rewritten", "unreadable", "deleted"]);
    const kept = keptCopyOf({ agent: "claude-code", id: "one", path, parts: [] }, stage.door)!;
    const epochs = kept.epochs.map((each) => readFileSync(each, "utf8"));
    expect(epochs).toEqual([record("a", null), one]);
    expect(stage.kept(path)).toContain(two);
    for (const { words } of stage.alarms) expect(words).not.toContain('"words"');
  });

  test("a file that is rewritten as its agent starts there was rewritten by loading it", async () => {
    const path = place("one", "-home-you-work");
    writeFileSync(path, record("a", null));
    await stage.start();
    const process = { agent: "claude-code", pid: 7, started: 1, cpuMs: 0, ageMs: 100 };
    stage.processes = [{ ...process, folder: "/home/you/elsewhere" }];
    replace(path, record("b", null));
    await until(() => stage.kinds.includes("rewritten"));
    stage.processes = [{ ...process, folder: "/home/you/work" }];
    replace(path, record("c", null));
    await until(() => stage.kinds.includes("load-rewrites"));
    expect(stage.alarms.at(-1)!.words).toContain("process 7");
  });

  test("after a restart nothing is said again, and a deletion in between is", async () => {
    const [stays, goes] = [place("stays"), place("goes")];
    for (const path of [stays, goes]) writeFileSync(path, record("a", null));
    await stage.start();
    await stage.stop();
    rmSync(goes);
    const [agent] = AGENTS.filter(({ name }) => name === "claude-code");
    for (const expected of [["deleted"], []]) {
      stage = new Stage();
      await stage.start();
      expect(stage.brought).toEqual([]);
      for (const id of ["stays", "goes"]) stage.watch!.missed(agent!, id);
      expect(stage.kinds).toEqual(expected);
      await stage.stop();
    }
  });

  test("a session that is moved is not deleted", async () => {
    const path = place();
    writeFileSync(path, record("a", null));
    await stage.start();
    const moved = place("one", "-elsewhere");
    renameSync(path, moved);
    await until(() => stage.watch!.sessions.some(({ session }) => session.path === moved));
    await new Promise((resolve) => setTimeout(resolve, 4 * QUICK.gone));
    expect(stage.alarms).toEqual([]);
  });

  test("what cannot be kept is said once, and stops no other session", async () => {
    execFileSync("mkfifo", [place("fifo")]);
    symlinkSync("/etc/passwd", place("link"));
    const closed = place("closed");
    writeFileSync(closed, record("a", null));
    if (process.getuid?.() !== 0) chmodSync(closed, 0);
    writeFileSync(place("empty"), "");
    const good = place("good");
    writeFileSync(good, record("a", null));
    await stage.start();
    appendFileSync(good, record("b", "a"));
    await until(() => stage.kept(good) === readFileSync(good, "utf8"));
    expect(stage.troubles.filter((words) => !words.includes("closed"))).toEqual([]);
  });

  test("a large file holds up no other, nor the end of the watch; the next one goes on with it", async () => {
    const [large, small] = [place("large"), place("small")];
    writeFileSync(large, record("a", null));
    truncateSync(large, 160 * 2 ** 20);
    writeFileSync(small, record("a", null));
    const started = stage.start();
    await until(() => stage.kept(small) !== null);
    await stage.stop();
    await started;
    expect(stage.brought).toEqual(["small"]);
    stage = new Stage();
    await stage.start();
    const copy = keptCopyOf({ agent: "claude-code", id: "large", path: large, parts: [] }, stage.door)!;
    expect(statSync(copy.session!.path).size).toBe(statSync(large).size);
    expect([stage.kinds, copy.epochs]).toEqual([[], []]);
    expect(stage.troubles).toEqual([expect.stringContaining("more than 128 MB")]);
  });

  test("a store that cannot be written is tried again, until it can", async () => {
    const path = place();
    writeFileSync(path, record("a", null));
    stage.failure = Object.assign(new Error("no space left on device"), { code: "ENOSPC" });
    await stage.start();
    expect(stage.kept(path)).toBeNull();
    expect(stage.troubles[0]).toMatch(/^store: .*no space left/);
    stage.failure = null;
    await until(() => stage.kept(path) === readFileSync(path, "utf8"));
    await until(() => stage.brought.length === 1);
  });

  test("where no files are kept, a file that shrinks is still seen", async () => {
    const path = place();
    writeFileSync(path, record("a", null) + record("b", "a"));
    await stage.start(false);
    truncateSync(path, 10);
    await until(() => stage.kinds.includes("shrunk"));
    expect(stage.kept(path)).toBeNull();
  });
});

import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { linesOf } from "../../../doctor/test/damage/line-damage.ts";
import { listRecordings, placeRecording } from "../../../doctor/test/real/recording.ts";
import { type Ended, ended, type Home, temporaryHome } from "../command.ts";

const recording = listRecordings("claude-code").find(({ story }) => story === "work")!;

/** A home in which Claude Code is about to write a session: its lines, and where they go. */
function stage() {
  const home = temporaryHome();
  const placed = placeRecording(recording, home.path);
  const projects = join(placed.home, ".claude/projects");
  const [project] = readdirSync(projects);
  const id = recording.sessions[0]!.id;
  const file = join(projects, project!, `${id}.jsonl`);
  const lines = linesOf(readFileSync(file)).map((line) => `${line}\n`);
  rmSync(file);
  const env = { HOME: placed.home, CLAUDE_CONFIG_DIR: join(placed.home, ".claude") };
  return { home, file, id, lines, env };
}

/** The command, running until the end of the scope. */
class Watch {
  stderr = "";
  readonly ended: Promise<Ended>;
  readonly #child: ReturnType<Home["start"]>;

  constructor(home: Home, env: Readonly<Record<string, string>>, args: readonly string[] = []) {
    this.#child = home.start(["watch", ...args], { env });
    this.#child.stderr.on("data", (text) => {
      this.stderr += text;
    });
    this.ended = ended(this.#child);
  }

  static async start(home: Home, env: Readonly<Record<string, string>>): Promise<Watch> {
    const watch = new Watch(home, env);
    await watch.says("Following them");
    return watch;
  }

  get pid(): number {
    return this.#child.pid!;
  }

  async says(words: string): Promise<void> {
    await expect.poll(() => this.stderr, { interval: 20 }).toContain(words);
  }

  end(signal: NodeJS.Signals): Promise<Ended> {
    this.#child.kill(signal);
    return this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("SIGKILL");
  }
}

/** A desktop whose notifications are lines in a file. */
function desktopOf({ path }: Home, env: Readonly<Record<string, string>>): Record<string, string> {
  const bin = join(path, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "notify-send"), `#!/bin/sh\nprintf '%s\\n' "$@" >> ${path}/notified\n`);
  chmodSync(join(bin, "notify-send"), 0o700);
  return { ...env, PATH: `${bin}:${process.env["PATH"]}`, DISPLAY: ":9" };
}

/** The session as Holdfast shows it; null if it is not there. */
async function shown(home: Home): Promise<string | null> {
  const { stdout, code } = await home.run(["show", "latest"]);
  return code === 0 ? stdout : null;
}

/** The files that were kept, by their names. */
function keptFiles(home: Home): Record<string, string> {
  return Object.fromEntries(
    readdirSync(home.store, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.parentPath.includes("originals") && entry.name.includes(".jsonl"))
      .map((entry) => [entry.name, readFileSync(join(entry.parentPath, entry.name), "utf8")]),
  );
}

describe("watch", () => {
  test("keeps a session as it is written, line by line: files, conversation, search, and whose it is", async () => {
    const { home, file, id, lines, env } = stage();
    using _ = home;
    await using watch = await Watch.start(home, env);
    expect(watch.stderr.split("\n").slice(0, 2).join("\n")).toMatch(
      /Keeps the sessions of Claude Code.* in file:.*\n.*kept too/,
    );
    mkdirSync(dirname(file), { recursive: true });
    for (const [n, line] of lines.entries()) {
      appendFileSync(file, line);
      if (n % 10 === 0) await expect.poll(() => keptFiles(home)[`${id}.jsonl`]).toBe(lines.slice(0, n + 1).join(""));
    }
    await expect.poll(() => shown(home)).toContain("Two worked, and one failed with status 3.");
    const [row] = JSON.parse((await home.run(["ls", "--json"])).stdout.split("\n").join("")).sessions ?? [];
    expect(row ?? JSON.parse((await home.run(["ls", "--json"])).stdout.split("\n")[0]!)).toMatchObject({
      app: "claude-code",
    });
    expect((await home.run(["search", "heron"])).stdout).toContain("heron");
    // The same as an import at the end: nothing is missing, and nothing is there twice.
    await watch.end("SIGTERM");
    const { stdout } = await home.run(["import", file, "--json"], { env });
    expect(JSON.parse(stdout)).toMatchObject({ added: 0 });
    expect(watch.stderr).not.toContain("alarm");
  });

  test("ends by SIGTERM and Ctrl+C with all that was written kept; a second watch is refused by name", async () => {
    const { home, file, id, lines, env } = stage();
    using _ = home;
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      await using watch = await Watch.start(home, env);
      const second = await home.run(["watch"], { env });
      expect([second.code, second.stderr]).toEqual([
        4,
        expect.stringContaining(`holdfast watch runs already (process ${watch.pid})`),
      ]);
      mkdirSync(dirname(file), { recursive: true });
      appendFileSync(file, lines[0]!);
      await expect.poll(() => keptFiles(home)[`${id}.jsonl`]).toBe(readFileSync(file, "utf8"));
      const { code, stderr } = await watch.end(signal);
      expect([code, stderr]).toEqual([0, expect.stringContaining("Stopped.")]);
    }
  });

  test("what the agent cuts off or deletes stays, with an alarm, until the user says otherwise", async () => {
    const { home, file, id, lines, env } = stage();
    using _ = home;
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, lines.join(""));
    await using watch = await Watch.start(home, desktopOf(home, env));
    truncateSync(file, lines[0]!.length);
    await watch.says("alarm shrunk: Claude Code session");
    await expect.poll(() => Object.keys(keptFiles(home)).toSorted()).toEqual([`${id}.jsonl`, `${id}.jsonl.epoch-1`]);
    expect(keptFiles(home)[`${id}.jsonl.epoch-1`]).toBe(lines.join(""));
    rmSync(file);
    await watch.says("alarm deleted: Claude Code session");
    await watch.end("SIGTERM");
    const notified = readFileSync(join(home.path, "notified"), "utf8");
    expect(notified).toContain("lost content");
    expect(notified).not.toContain("heron");
    expect(await shown(home)).not.toBeNull();
    const { stdout } = await home.run(["watch", "--forget-deleted"], { env });
    expect(stdout).toMatch(/is in the trash \(claude-code /);
    expect(await shown(home)).toBeNull();
    expect((await home.run(["watch", "--forget-deleted"], { env })).stdout).toContain("No agent has deleted");
  });

  test("of many alarms at once a desktop shows a few", async () => {
    const { home, file, id, lines, env } = stage();
    using _ = home;
    const folder = dirname(file);
    mkdirSync(folder, { recursive: true });
    for (let n = 0; n < 8; n++) writeFileSync(join(folder, `${id.slice(0, -1)}${n}.jsonl`), lines.join(""));
    await using watch = await Watch.start(home, desktopOf(home, env));
    rmSync(folder, { recursive: true });
    await expect.poll(() => watch.stderr.match(/alarm deleted/g)?.length).toBe(8);
    const shownCount = (): number =>
      readFileSync(join(home.path, "notified"), "utf8").match(/^(?:Claude Code session|There is more)/gm)?.length ?? 0;
    await expect.poll(() => existsSync(join(home.path, "notified")) && shownCount()).toBe(5);
    await watch.end("SIGTERM");
    expect(shownCount()).toBe(5);
  });

  test("--once keeps what is there, and says what was deleted since", async () => {
    const { home, file, lines, env } = stage();
    using _ = home;
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, lines.join(""));
    const first = await home.run(["watch", "--once"], { env });
    expect([first.code, first.stderr]).toEqual([0, expect.stringContaining("1 session kept.")]);
    rmSync(file);
    for (const expected of [/alarm deleted/, /^(?!.*alarm deleted)/s])
      expect((await home.run(["watch", "--once"], { env })).stderr).toMatch(expected);
  });

  test("sessions of OpenCode are kept by their rows, as they change", async () => {
    const home = temporaryHome();
    using _ = home;
    const recorded = listRecordings("opencode")[0]!;
    const placed = placeRecording(recorded, home.path);
    const env = { HOME: placed.home };
    const path = join(placed.home, ".local/share/opencode/opencode.db");
    await using watch = await Watch.start(home, env);
    const rows = (): string => keptFiles(home)["opencode.db.jsonl"] ?? "";
    const before = rows();
    expect(before).toContain('"table":"part"');
    {
      using database = new DatabaseSync(path);
      database.exec("update session set title = 'Another title'");
    }
    await expect.poll(rows).toContain("Another title");
    expect(rows().startsWith(before)).toBe(true);
    expect(watch.stderr).not.toContain("alarm");
  });

  test("where credentials are redacted, files are not kept, and the first lines say so", async () => {
    const { home, file, lines, env } = stage();
    using _ = home;
    mkdirSync(dirname(file), { recursive: true });
    const key = `sk-ant-api03-${"a1B2".repeat(20)}`;
    writeFileSync(file, lines.join("").replace("What is a heron?", `What is ${key}?`));
    const { stderr } = await home.run(["watch", "--once"], { env: { ...env, HOLDFAST_REDACT: "1" } });
    expect(stderr).toContain("Credentials are redacted, so files are not copied");
    expect(await shown(home)).not.toContain(key);
    for (const entry of readdirSync(home.store, { recursive: true, withFileTypes: true }))
      if (entry.isFile()) expect(readFileSync(join(entry.parentPath, entry.name), "utf8")).not.toContain(key);
  });

  test("the unit has absolute paths and the store; flags that exclude each other are refused", async () => {
    using home = temporaryHome();
    const { stdout } = await home.run(["watch", "--unit"]);
    expect(stdout).toMatch(new RegExp(`^ExecStart=/\\S+ /\\S+ watch --store ${home.store}$`, "m"));
    expect((await home.run(["watch", "--unit", "--once"])).code).toBe(2);
    expect((await home.run(["watch", "--store", "memory:"])).code).toBe(2);
  });
});

describe("the doctor and what was kept", () => {
  /** A session that was kept, and then harmed as its agent might. */
  async function harmed(harm: (file: string, lines: readonly string[]) => void) {
    const staged = stage();
    const { home, file, lines, env } = staged;
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, lines.join(""), { mode: 0o600 });
    expect((await home.run(["watch", "--once"], { env })).code).toBe(0);
    harm(file, lines);
    await home.run(["watch", "--once"], { env });
    return staged;
  }

  const HARMS: Readonly<Record<string, (file: string, lines: readonly string[]) => void>> = {
    "cut off after a whole record": (file, lines) => writeFileSync(file, lines.slice(0, 20).join("")),
    "cut off in a record": (file, lines) => truncateSync(file, lines.slice(0, 20).join("").length + 30),
    emptied: (file) => writeFileSync(file, ""),
    "overwritten with zero bytes": (file) => writeFileSync(file, Buffer.alloc(4096)),
    deleted: (file) => rmSync(file),
  };
  for (const [name, harm] of Object.entries(HARMS))
    test(`a session that was ${name} comes back, byte for byte; a second fix and an undo`, async () => {
      const { home, file, id, lines, env } = await harmed(harm);
      using _ = home;
      const said = await home.run(["doctor", id], { env });
      expect([said.code, said.stdout]).toEqual([1, expect.stringContaining("damaged")]);
      const fixed = await home.run(["doctor", "--fix", "--yes", id], { env });
      expect([fixed.code, fixed.stdout]).toEqual([0, expect.stringContaining("the session is healthy")]);
      expect(readFileSync(file, "utf8")).toBe(lines.join(""));
      expect((await home.run(["doctor", "--fix", "--yes", id], { env })).stdout).toContain("1 healthy");
      expect((await home.run(["doctor", "--undo"], { env })).code).toBe(0);
      expect(existsSync(file) && readFileSync(file, "utf8") === lines.join("")).toBe(false);
    });

  test("what the agent wrote after it lost something is not overwritten", async () => {
    const { home, file, id, lines, env } = await harmed((path, all) => writeFileSync(path, all.slice(0, 20).join("")));
    using _ = home;
    appendFileSync(file, lines.at(-1)!.replace(/"uuid":"[^"]*"/, '"uuid":"2d0f6f3c-0000-4000-8000-000000000000"'));
    const before = readFileSync(file);
    await home.run(["doctor", "--fix", "--yes", id], { env });
    expect(readFileSync(file).subarray(0, before.length)).toEqual(before);
  });
});

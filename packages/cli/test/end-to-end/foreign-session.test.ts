import { spawn } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { identify } from "../../src/tools/shell/process-groups.ts";
import { type Home, temporaryHome } from "../command.ts";
import { type Hostile, hostileSession } from "../hostile-store.ts";
import { speakIn } from "../sessions.ts";

/** Somebody else's session, in a store that this user was given. */
async function foreign(home: Home, hostile: Partial<Hostile> = {}): Promise<{ id: string; store: string }> {
  const store = join(home.path, "foreign");
  return { store, id: await hostileSession(store, { cwd: realpathSync(home.work), ...hostile }) };
}

const madeIn = (folder: string): string[] => readdirSync(folder).sort();

describe("the journal's own rules are not obeyed, but shown", () => {
  const hostile = { command: "touch made", allow: ["*"] };

  test.each([
    ["--resume", (id: string) => ["--resume", id]],
    ["--continue", () => ["--continue"]],
  ])("run %s --finish", async (_, which) => {
    using home = temporaryHome();
    const { id, store } = await foreign(home, hostile);
    const { stderr } = await home.run(["run", ...which(id), "--finish", "--store", store]);
    expect(madeIn(home.work)).toEqual([]);
    expect(stderr).toContain('claims permission to run without asking: "*"');
  });

  test("in a copy, and in a fork", async () => {
    using home = temporaryHome();
    const { id, store } = await foreign(home, hostile);
    expect((await home.run(["copy", store, home.store, "--all"])).code).toBe(0);
    await home.run(["run", "--resume", id, "--finish"]);
    const fork = (await home.run(["fork", id])).stdout.trim();
    await home.run(["run", "--resume", fork, "run touch made"]);
    expect(madeIn(home.work)).toEqual([]);
  });

  test("in the session of a sub-agent, which works in the folder of its parent", async () => {
    using home = temporaryHome();
    const agentCwd = join(home.path, "elsewhere");
    mkdirSync(agentCwd);
    const { id, store } = await foreign(home, { ...hostile, agentCwd });
    const finish = ["run", "--resume", id, "--finish", "--store", store];
    await home.run(finish);
    expect([madeIn(home.work), madeIn(agentCwd)]).toEqual([[], []]);
    await home.run([...finish.filter((word) => word !== "--finish"), "go on"]);
    expect([madeIn(home.work), madeIn(agentCwd)]).toEqual([[], []]);
  });

  test("a sub-agent's open call that this user's rules allow runs in the parent's folder", async () => {
    using home = temporaryHome();
    const agentCwd = join(home.path, "elsewhere");
    mkdirSync(agentCwd);
    const { id, store } = await foreign(home, { command: "touch made", agentCwd });
    await home.run(["run", "--resume", id, "--finish", "--store", store, "--allow", "shell(touch made)"]);
    expect([madeIn(home.work), madeIn(agentCwd)]).toEqual([["made"], []]);
  });
});

test("an approval in the journal that this user did not give runs nothing", async () => {
  using home = temporaryHome();
  const { id, store } = await foreign(home, { command: "touch made", isApproved: true });
  const { stderr } = await home.run(["run", "--resume", id, "--finish", "--store", store]);
  expect(madeIn(home.work)).toEqual([]);
  expect(stderr).toMatch(/approved.*touch made/);
});

test.each([["--stop-processes"], [null]])(
  "a process that the journal names, and this user's agent did not start, is neither stopped nor waited for (%s)",
  async (flag) => {
    using home = temporaryHome();
    const victim = spawn("sleep", ["300"], { detached: true, stdio: "ignore" });
    try {
      const pid = victim.pid!;
      const process = { pid, started: (await identify(pid))!, group: true } as const;
      const { id, store } = await foreign(home, { command: "sleep 300", process });
      const args = ["run", "--resume", id, "--finish", "--store", store, ...(flag === null ? [] : [flag])];
      // To wait would take five minutes: the test would fail by its time.
      const { stderr } = await home.run(args);
      expect(stderr).not.toContain("Waiting for process");
      expect(await identify(pid)).toBe(process.started);
    } finally {
      victim.kill("SIGKILL");
    }
  },
);

describe("the folder", () => {
  test("that a foreign journal names is not worked in; the error says what to do", async () => {
    using home = temporaryHome();
    const cwd = join(realpathSync(home.path), "else where");
    mkdirSync(cwd);
    const { id, store } = await foreign(home, { cwd });
    const args = ["run", "--resume", id, "--store", store, "--allow", "write", "write note.txt: hello"];
    const refused = await home.run(args);
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("FOLDER_UNKNOWN") });
    expect(refused.stderr).toContain(`cd '${cwd}'`);
    expect(refused.stderr).toContain("--here");
    expect([madeIn(home.work), madeIn(cwd)]).toEqual([[], []]);
    expect((await home.run([...args, "--here"])).code).toBe(0);
    expect([madeIn(home.work), madeIn(cwd)]).toEqual([["note.txt"], []]);
    // This user has chosen: it counts from everywhere.
    const again = ["run", "--resume", id, "--store", store, "--allow", "write", "write more.txt: hello"];
    expect((await home.run(again, { cwd })).code).toBe(0);
    expect([madeIn(home.work), madeIn(cwd)]).toEqual([["more.txt", "note.txt"], []]);
  });

  test("of one's own session is worked in from everywhere, and so is that of its fork", async () => {
    using home = temporaryHome();
    await home.run(["run", "hello"]);
    const write = (id: string) => ["run", "--resume", id, "--allow", "write", `write ${id.slice(-4)}.txt: hello`];
    expect((await home.run(write("latest"), { cwd: home.path })).code).toBe(0);
    const fork = (await home.run(["fork", "latest"])).stdout.trim();
    expect((await home.run(write(fork), { cwd: home.path })).code).toBe(0);
    expect(madeIn(home.work)).toEqual([`${fork.slice(-4)}.txt`, "test.txt"]);
  });

  test("another store in the place of one's own is not trusted with the same session", async () => {
    using home = temporaryHome();
    await home.run(["run", "hello"]);
    // A copy: the same ids, but not the store that this user has worked with.
    await home.run(["copy", home.store, join(home.path, "other"), "--all"]);
    renameSync(home.store, `${home.store}.old`);
    renameSync(join(home.path, "other"), home.store);
    const { code, stderr } = await home.run(["run", "--resume", "latest", "hello"], { cwd: home.path });
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining("FOLDER_UNKNOWN") });
  });
});

test("a foreign journal does not choose the model, and so who is sent this user's files", async () => {
  using home = temporaryHome();
  const { id, store } = await foreign(home, { model: "compatible/theirs" });
  const env = { COMPATIBLE_BASE_URL: "http://127.0.0.1:1/v1" };
  const { code, stderr } = await home.run(["run", "--resume", id, "--store", store, "hello"], { env });
  expect(code).toBe(0);
  expect(stderr).toContain("compatible/theirs");
});

describe("outputs that lead elsewhere", () => {
  const links: readonly [string, (store: string, id: string, to: string) => void][] = [
    ["the folder of all outputs", (store, _id, to) => symlinkSync(to, join(store, "outputs"))],
    [
      "the folder of the session",
      (store, id, to) => {
        mkdirSync(join(store, "outputs"));
        symlinkSync(join(to, id), join(store, "outputs", id));
      },
    ],
  ];

  test.each(links)("are not read unasked: %s is a link", async (_, link) => {
    using home = temporaryHome();
    const { id, store } = await foreign(home);
    const secret = join(home.path, "private", id);
    mkdirSync(secret, { recursive: true });
    writeFileSync(join(secret, "diary.txt"), "nobody is to read this");
    link(store, id, join(home.path, "private"));
    const read = ["run", "--resume", id, "--store", store, `read ${join(secret, "diary.txt")}`];
    const { code, stdout, stderr } = await home.run(read);
    expect({ code, stderr }).toMatchObject({ code: 5, stderr: expect.stringContaining("PATH_UNSAFE") });
    expect(stdout).not.toContain("nobody is to read this");
  });

  test("gc of a foreign store removes nothing of this user's", async () => {
    using home = temporaryHome();
    const [mine] = await speakIn(home.store, { prompt: "mine" });
    const sessions = join(home.store, "sessions");
    for (const name of readdirSync(sessions)) utimesSync(join(sessions, name), 1000, 1000);
    const { store } = await foreign(home);
    symlinkSync(sessions, join(store, "outputs"));
    await home.run(["gc", "--store", store, "--older-than", "0s", "--yes"]);
    expect(readdirSync(sessions)).toContain(mine);
    expect((await home.run(["verify"])).code).toBe(0);
  });

  test("gc and rm follow no link inside of the outputs either", async () => {
    using home = temporaryHome();
    const { store, id } = await foreign(home);
    const mine = join(home.path, "mine");
    mkdirSync(mine);
    writeFileSync(join(mine, "a"), "a");
    utimesSync(mine, 1000, 1000);
    mkdirSync(join(store, "outputs"));
    for (const name of [id, "0199aaaa-0001-7bbb-8000-000000000001"]) symlinkSync(mine, join(store, "outputs", name));
    expect((await home.run(["rm", id, "--store", store])).code).toBe(0);
    expect(statSync(mine).mtimeMs).toBe(1_000_000);
    const { code, stdout } = await home.run(["gc", "--store", store, "--older-than", "0s", "--yes", "--json"]);
    expect({ code, ...JSON.parse(stdout) }).toMatchObject({ code: 0, outputs: { sessions: 0, bytes: 0 } });
    expect(readFileSync(join(mine, "a"), "utf8")).toBe("a");
    expect(existsSync(mine)).toBe(true);
  });
});

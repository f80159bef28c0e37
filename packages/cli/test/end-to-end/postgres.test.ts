import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type JournalRecord, openStore } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Server, startServer } from "../../../postgres/test/server/server.ts";
import { type Ended, type Home, temporaryHome } from "../command.ts";
import { answered, chat } from "../screen/chat.ts";
import { speak } from "../sessions.ts";
import { eventually, startRun } from "./run-lines.ts";

const SLOW = { HOLDFAST_OFFLINE_DELAY_MS: "20" };

let server: Server;
let databases = 0;

beforeAll(async () => {
  server = await startServer(["fsync=off"]);
});
afterAll(() => server.stop());

/** A home whose store is a database of its own. The password is in the environment, where people keep it. */
async function databaseHome(): Promise<Home & { readonly address: string }> {
  const name = `home_${process.pid}_${++databases}`;
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
  const home = temporaryHome();
  const url = new URL(server.url);
  url.pathname = `/${name}`;
  const address = url.href;
  url.password = "";
  const env = { ...home.env, HOLDFAST_STORE: url.href, PGPASSWORD: "secret" };
  return {
    ...home,
    address,
    env,
    run: (args, options = {}) => home.run(args, { ...options, env: { ...env, ...options.env } }),
    start: (args, options = {}) => home.start(args, { ...options, env: { ...env, ...options.env } }),
    [Symbol.dispose]: () => home[Symbol.dispose](),
  };
}

const lines = (text: string): string[] => text.trimEnd().split("\n");
const json = (text: string): Record<string, unknown>[] =>
  text === "" ? [] : lines(text).map((line) => JSON.parse(line));

function succeeded({ code, stdout, stderr }: Ended): string {
  expect(code, stderr).toBe(0);
  return stdout;
}

describe("the command on a database", () => {
  test("three agents at work on three sessions, a fourth process lists, searches and follows; one is killed, and another finishes its turn", async () => {
    using home = await databaseHome();
    // The tables are made once; and all three at once would be as good.
    const runs = [
      startRun(home, ["tell me a story of 30 lines"], SLOW),
      startRun(home, ["tell me a story of 30 lines"], SLOW),
      startRun(
        home,
        ["--allow", "shell", "1. run echo first >> done.txt 2. run sleep 300 3. run echo third >> done.txt"],
        SLOW,
      ),
    ];
    const ids = await Promise.all(runs.map(async (run) => (await run.until("session")).session));
    const [killed, victim] = [runs[2]!, ids[2]!];
    await killed.until("tool.ended");
    await killed.until("tool.started");

    await eventually(async () => json(succeeded(await home.run(["ls", "--json"]))).length === 3);
    const listed = json(succeeded(await home.run(["ls", "--json"])));
    expect(listed.find(({ id }) => id === victim)).toMatchObject({ status: "running" });
    const follower = home.start(["tail", victim, "--follow", "--json"]);
    const followed: JournalRecord[] = [];
    createInterface({ input: follower.stdout }).on("line", (line) => followed.push(JSON.parse(line) as JournalRecord));
    const hits = json(succeeded(await home.run(["search", "echo first", "--json"])));
    expect(hits.map(({ session }) => session)).toContain(victim);
    await eventually(() => followed.some(({ kind }) => kind === "tool.started"));

    killed.child.kill("SIGKILL");
    await killed.ended;
    // Free within a second or so of its death: the connection that it held has ended with it.
    await eventually(async () => {
      const rows = json(succeeded(await home.run(["ls", "--json", "--status", "interrupted"])));
      return rows.some(({ id }) => id === victim);
    });
    const finished = await home.run([
      "run",
      "--resume",
      victim,
      "--finish",
      "--stop-processes",
      "--allow",
      "shell",
      "--json",
    ]);
    expect(json(succeeded(finished)).at(-1)).toMatchObject({ type: "turn.ended", outcome: "completed" });
    expect(lines(readFileSync(join(home.work, "done.txt"), "utf8"))).toEqual(["first", "third"]);
    await eventually(() => followed.some(({ kind }) => kind === "closed"));
    follower.kill();
    for (const run of runs.slice(0, 2)) expect((await run.ended).code).toBe(0);
    const whole = json(succeeded(await home.run(["verify", "--json"])));
    expect(whole.map(({ health }) => health)).toEqual(["whole", "whole", "whole"]);
    const history = await home.run(["export", victim, "--format", "jsonl"]);
    const seqs = json(succeeded(history)).map(({ seq }) => seq);
    expect(seqs).toEqual(seqs.map((_, index) => index + 1));
    const seen = followed.map(({ seq }) => seq);
    expect(seen).toEqual(seen.map((_, index) => seen[0]! + index));
  });

  test("C6: SIGTERM while the answer streams is recorded in the database before the process ends", async () => {
    using home = await databaseHome();
    const run = startRun(home, ["tell me a story of 4000 lines"], SLOW);
    const { session } = await run.until("session");
    for (let n = 0; n < 15; n++) await run.until("text");
    run.child.kill("SIGTERM");
    expect(await run.ended).toMatchObject({ code: null, signal: "SIGTERM" });
    await using store = await openStore(home.address);
    const { interruption } = await store.read(session);
    expect(interruption?.how).toEqual({ kind: "signal", signal: "SIGTERM" });
    expect(interruption?.draft?.text).not.toBe("");
  });

  test("chat: killed while it streams; the next one says so, shows what had been said, and goes on", async (context) => {
    using home = await databaseHome();
    {
      await using terminal = await chat(context, home, [], { env: { HOLDFAST_OFFLINE_DELAY_MS: "5" } });
      await terminal.say("tell me a story of 4000 lines");
      await terminal.untilAll(/line 12\)/);
      await terminal.signal("SIGKILL");
      await terminal.ended();
    }
    await using terminal = await chat(context, home, ["--continue"]);
    await terminal.until("it said: …");
    await terminal.say("l");
    await terminal.until("❯ type a prompt, or /help", /^! interrupted\b/m);
    await terminal.say("think about rivers");
    await answered(terminal, "I thought about rivers");
  });

  test("every command; and no password is shown by any", async () => {
    using home = await databaseHome();
    // Here the password stands in the address, as it does in many deployments.
    const env = { HOLDFAST_STORE: home.address, PGPASSWORD: undefined };
    const said: string[] = [];
    const run = async (...args: string[]): Promise<Ended> => {
      const ended = await home.run(args, { env: env as never });
      said.push(ended.stdout, ended.stderr);
      return ended;
    };
    succeeded(await run("run", "say hello"));
    const id = String(json(succeeded(await run("ls", "--json")))[0]!["id"]);
    expect(succeeded(await run("show", id))).toContain("hello");
    expect(succeeded(await run("search", "hello"))).toContain("hello");
    expect(json(succeeded(await run("tail", id, "--json"))).length).toBeGreaterThan(3);
    for (const format of ["jsonl", "markdown", "html", "messages"])
      expect(succeeded(await run("export", id, "--format", format)).length).toBeGreaterThan(100);
    succeeded(await run("rename", id, "a new name"));
    expect(succeeded(await run("ls"))).toContain("a new name");
    succeeded(await run("fork", id));
    expect(json(succeeded(await run("ls", "--json")))).toHaveLength(2);
    expect(succeeded(await run("run", "--resume", id, "say it again"))).not.toBe("");
    succeeded(await run("verify"));
    succeeded(await run("repair", id));
    succeeded(await run("config"));
    succeeded(await run("config", "--json"));
    expect((await run("pack", id)).code).not.toBe(0);
    succeeded(await run("rm", id));
    succeeded(await run("gc", "--older-than", "0s", "--yes"));
    expect((await run("show", id)).code).toBe(3);
    const wrong = home.address.replace(":secret@", ":secret-but-wrong@");
    expect((await run("ls", "--store", wrong)).code).toBe(5);
    expect((await run("ls", "--store", wrong.replace("postgres:", "postgress:"))).code).not.toBe(0);
    expect(said.join("\n")).not.toContain("secret");
  });

  test("copy: killed in the middle and started again, from a folder to the database and back, byte for byte", async () => {
    using home = await databaseHome();
    const ids: string[] = [];
    {
      await using store = await openStore(home.store, { durability: "process" });
      for (let n = 0; n < 60; n++) ids.push(await speak(store, { prompt: `prompt ${n} ${"x".repeat(20_000)}` }));
    }
    for (let kills = 1; kills <= 3; kills++) {
      const child = home.start(["copy", home.store, home.address, "--all", "--json"]);
      let count = 0;
      await new Promise<void>((resolve) => {
        child.once("close", () => resolve());
        createInterface({ input: child.stdout }).on("line", () => {
          if (++count === kills * 2) child.kill("SIGKILL");
        });
      });
      const rows = json(succeeded(await home.run(["verify", "--json"])));
      expect(rows.length).toBeLessThan(ids.length);
      expect(rows.every(({ health }) => health === "whole")).toBe(true);
    }
    const copied = json(succeeded(await home.run(["copy", home.store, home.address, "--all", "--json"])));
    expect(copied.map(({ outcome }) => outcome)).toContain("there");
    expect(new Set(copied.map(({ id }) => id))).toEqual(new Set(ids));
    // The same database by another name is no other store: what would be taken for the copies is the originals.
    const alias = home.address.replace("127.0.0.1", "localhost");
    const itself = await home.run(["copy", home.address, alias, ids[0]!, "--move"]);
    expect(itself).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining("the same store") });
    const back = join(home.path, "back");
    const moved = await home.run(["copy", home.address, back, "--all", "--move"]);
    expect(succeeded(moved)).toContain("60 of 60 sessions copied");
    expect(moved.stdout + moved.stderr).not.toContain("secret");
    expect(json(succeeded(await home.run(["ls", "--json"])))).toEqual([]);
    for (const id of ids) expect(filesOf(back, id)).toEqual(filesOf(home.store, id));
    await using store = await openFolderStore(back);
    expect((await store.list()).sessions).toHaveLength(60);
  });
});

function filesOf(store: string, id: string): [name: string, text: string][] {
  const folder = join(store, "sessions", id);
  return readdirSync(folder)
    .sort()
    .map((name) => [name, readFileSync(join(folder, name), "latin1")]);
}

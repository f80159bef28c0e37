import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { describe, expect, test } from "vitest";
import { nestedText, putSession, turnBodies } from "../../../holdfast/test/raw-session.ts";
import { settings } from "../../src/config.ts";
import { type Ended, temporaryHome } from "../command.ts";
import { speakIn } from "../sessions.ts";

const NOBODY = 65534;
const lines = (text: string): string[] => text.trimEnd().split("\n");

/** Words for a person: what happened, its code, no stack. */
function expectKind({ stderr }: Ended, code: string): void {
  expect(stderr).toMatch(/^holdfast: [A-Z"/]/);
  expect(stderr).toContain(`[${code}]`);
  expect(stderr).not.toMatch(/\n\s+at /);
}

describe("failure in the user's face, kindly", () => {
  test("a store that this user may not read, and a folder in which none can be made", async () => {
    using home = temporaryHome();
    await speakIn(home.store, { prompt: "one" });
    chmodSync(home.path, 0o755);
    for (const [store, ...args] of [
      [home.store, "ls"],
      [join(home.path, "new"), "run", "hello"],
    ] as const) {
      const ran = await home.run(args, {
        uid: NOBODY,
        env: { HOLDFAST_STORE: store, NODE_COMPILE_CACHE: undefined },
      });
      expect(ran).toMatchObject({ code: 5, stdout: "" });
      expectKind(ran, "STORE_FORBIDDEN");
      expect(ran.stderr).toContain(store);
      expect(ran.stderr).toContain("holdfast config");
    }
  });

  test("reading creates no store, however its address is spelled", async () => {
    using home = temporaryHome();
    const place = join(home.path, "none");
    for (const store of [`file:${place}`, `FILE://${place}`, `file://localhost${place}`, `SQLite:${place}`, place]) {
      for (const args of [["ls"], ["search", "x"], ["show", "latest"], ["verify"], ["run", "--continue", "go on"]]) {
        const ran = await home.run(["--store", store, ...args]);
        expect(readdirSync(home.path), `${store} ${args[0]}: ${ran.stderr}`).not.toContain("none");
        expect(ran.stdout + ran.stderr, `${store} ${args[0]}`).toContain(place);
      }
    }
  });

  test("a session that this user may not read is in nobody's way but its own", async () => {
    using home = temporaryHome();
    const [id, other] = await speakIn(home.store, { prompt: "one" }, { prompt: "two" });
    execFileSync("chown", ["-R", String(NOBODY), home.store]);
    // As "sudo holdfast run" leaves it.
    chownSync(join(home.store, "sessions", other!), 0, 0);
    chmodSync(home.path, 0o777);
    const nobody = { uid: NOBODY, env: { NODE_COMPILE_CACHE: undefined } };
    const listed = await home.run(["ls"], nobody);
    expect(listed).toMatchObject({ code: 5, stdout: expect.stringMatching(/ idle .* one/) });
    expect(listed.stdout).toMatch(/ unreadable /);
    expect(listed.stderr).toContain("Could not read 1 session in this store; the others are not affected");
    expectKind(listed, "STORE_FORBIDDEN");
    expect(listed.stderr).toContain(other!);
    const rows = lines((await home.run(["ls", "--json"], nobody)).stdout).map((line) => JSON.parse(line));
    expect(rows).toMatchObject([
      { id: other, status: "unreadable", title: "two", unreadable: { code: "STORE_FORBIDDEN" } },
      { id, status: "idle" },
    ]);
    expect(lines((await home.run(["ls", "--status", "unreadable", "--json"], nobody)).stdout)).toHaveLength(1);
    expect((await home.run(["ls", "--status", "idle", "--json"], nobody)).stdout).not.toContain(other!);
    const searched = await home.run(["search", "one"], nobody);
    expect(searched).toMatchObject({ code: 5, stdout: expect.stringContaining(id!.slice(-8)) });
    expectKind(searched, "STORE_FORBIDDEN");
    const verified = await home.run(["verify"], nobody);
    expect(verified).toMatchObject({ code: 1, stdout: expect.stringContaining("2 sessions: 1 whole, 1 unreadable.") });
    for (const command of ["show", "export", "rename"])
      expectKind(await home.run([command, other!, ...(command === "rename" ? ["x"] : [])], nobody), "STORE_FORBIDDEN");
    expect((await home.run(["show", "latest", "--json"], nobody)).stdout).toContain(id!);
    for (const args of [
      ["show", id!],
      ["show", id!, "--json"],
      ["export", id!],
      ["fork", id!],
    ])
      expect(await home.run(args, nobody), args.join(" ")).toMatchObject({ code: 0, stderr: "" });
    const copied = await home.run(["copy", home.store, join(home.path, "copy"), "--all"], nobody);
    expect(copied).toMatchObject({ code: 5, stderr: expect.stringContaining(other!) });
    expect(copied.stdout).toContain("2 of 3 sessions copied");
  });

  test("--continue passes over a session that this user may not read, and says so", async () => {
    using home = temporaryHome();
    const spoken = { cwd: home.work, app: "holdfast" };
    const [id, other] = await speakIn(home.store, { ...spoken, prompt: "one" }, { ...spoken, prompt: "two" });
    execFileSync("chown", ["-R", String(NOBODY), home.path]);
    chownSync(join(home.store, "sessions", other!), 0, 0);
    chmodSync(home.path, 0o777);
    const nobody = { uid: NOBODY, env: { NODE_COMPILE_CACHE: undefined } };
    const ran = await home.run(["run", "--json", "--continue", "hello"], nobody);
    expect(ran.code, ran.stderr).toBe(0);
    expect(ran.stdout).toContain(`"session":"${id}"`);
    expect(ran.stdout).toContain(`Session ${other} was skipped: Could not`);
  });

  test("sessions that no writer of ours would write, one of each kind: every command goes on, in bounded memory", async () => {
    using home = temporaryHome();
    const [good] = await speakIn(home.store, { prompt: "a good one" });
    const deep = nestedText(1_000_000);
    const texts = Array.from({ length: 200_000 }, (_, i) => ({ type: "text", text: `t${i}` }));
    const ids = [
      putSession(home.store, turnBodies({ prompt: `{"role":"user","content":${deep}}` })),
      putSession(home.store, turnBodies({ end: `,"summary":${deep}` })),
      putSession(home.store, turnBodies({ end: ',"summary":"none"' })),
      putSession(home.store, turnBodies({ session: ',"labels":[5],"title":{"a":1},"cwd":7' })),
      putSession(home.store, turnBodies({ prompt: JSON.stringify({ role: "user", content: texts }) })),
      putSession(
        home.store,
        turnBodies({ prompt: JSON.stringify({ role: "user", content: "hay ".repeat(15_000_000) }) }),
      ),
      putSession(home.store, turnBodies(), "no time"),
    ];
    const bounded = { env: { NODE_OPTIONS: "--max-old-space-size=512" } };
    const listed = await home.run(["ls"], bounded);
    expect(listed, listed.stderr).toMatchObject({ code: 0, stderr: "" });
    expect(lines(listed.stdout)).toHaveLength(ids.length + 2);
    const searched = await home.run(["search", "good"], bounded);
    expect(searched, searched.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining(good!.slice(-8)) });
    expect(searched.stderr).toContain("Only the first eight million characters of a message are searched");
    for (const id of ids) {
      for (const args of [
        ["show", id],
        ["show", id, "--json"],
        ["export", id, "--format", "jsonl"],
        ["tail", id],
      ]) {
        const ran = await home.run(args, bounded);
        expect(ran.code, `${args.join(" ")}: ${ran.stderr.slice(0, 500)}`).toBe(0);
      }
    }
    const verified = await home.run(["verify"], bounded);
    expect(verified.stdout).toContain("8 sessions: 6 whole, 2 corrupt.");
    expect((await home.run(["export", ids[5]!, "-o", "out.html"], bounded)).code).toBe(0);
  }, 300_000);

  test("a user who is a number and has no home, as in a container: the agent works where a store is named", async () => {
    using home = temporaryHome();
    chmodSync(home.path, 0o777);
    writeFileSync(join(home.work, "a.txt"), "alpha beta");
    const nobody = { uid: 54321, env: { HOME: undefined, NODE_COMPILE_CACHE: undefined } };
    expect(await home.run(["run", "--quiet", "read a.txt"], nobody)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("alpha beta"),
      stderr: "",
    });
    const unset = { ...nobody, env: { ...nobody.env, HOLDFAST_STORE: undefined } };
    const config = await home.run(["config", "--json"], unset);
    expect(config.code, config.stderr).toBe(0);
    expect(JSON.parse(config.stdout).settings.store.value).toBeNull();
    const listed = await home.run(["ls"], unset);
    expect(listed).toMatchObject({ code: 2, stdout: "" });
    expectKind(listed, "STORE_URL_INVALID");
  });

  test("a store of which the disk is full: reading still works", async () => {
    using home = temporaryHome();
    const [id] = await speakIn(home.store, { prompt: "one" });
    // A limit of the shell's on the size of files stands for a disk that takes no more; Node ignores its signal, and
    // the write fails.
    const limited = join(home.path, "limited.sh");
    writeFileSync(limited, '#!/bin/sh\nulimit -f 0\nexec "$@"\n', { mode: 0o755 });
    const { spawnSync } = await import("node:child_process");
    const { bin } = await import("../command.ts");
    const run = (...args: string[]) =>
      spawnSync(limited, [process.execPath, bin, ...args], {
        encoding: "utf8",
        env: { PATH: process.env["PATH"], HOLDFAST_CONFIG: "", ...home.env },
      });
    const renamed = run("rename", id!, "x");
    expect(renamed).toMatchObject({ status: 5, stdout: "" });
    expect(renamed.stderr).toMatch(/^holdfast: .*\[STORE_(?:FULL|IO)\]/);
    expect(renamed.stderr).not.toMatch(/\n\s+at /);
    expect(run("show", id!)).toMatchObject({ status: 0 });
  });

  test.skipIf(!existsSync("/dev/full"))(
    "output that cannot be written is said in one line, and is no success",
    async () => {
      using home = temporaryHome();
      await speakIn(home.store, { prompt: "one" });
      const { spawnSync } = await import("node:child_process");
      const { bin } = await import("../command.ts");
      for (const args of [["ls"], ["export", "latest"]]) {
        const full = openSync("/dev/full", "w");
        const { status, stderr } = spawnSync(process.execPath, [bin, ...args], {
          encoding: "utf8",
          env: { PATH: process.env["PATH"], HOLDFAST_CONFIG: "", ...home.env },
          stdio: ["ignore", full, "pipe"],
        });
        closeSync(full);
        expect(status, args.join(" ")).toBe(1);
        expect(lines(stderr)).toHaveLength(1);
        expect(stderr).toMatch(/^holdfast: The output could not be written: ENOSPC.*\[OUTPUT_LOST\]\n$/);
      }
    },
  );

  test("C21: a session of a newer format is listed, refused in words, and not written to", async () => {
    using home = temporaryHome();
    const [id, other] = await speakIn(home.store, { prompt: "one" }, { prompt: "two" });
    const path = join(home.store, "sessions", id!, "000001.jsonl");
    const [header, ...rest] = readFileSync(path, "utf8").split("\n");
    const body = header!.replace('"format":"1.1"', '"format":"2.0"').replace(/,"crc":"[0-9a-f]{8}"}$/, "");
    const newer = [`${body},"crc":"${crc32(body).toString(16).padStart(8, "0")}"}`, ...rest].join("\n");
    writeFileSync(path, newer);
    for (const args of [
      ["show", id!],
      ["rename", id!, "x"],
      ["tail", id!],
      ["fork", id!],
    ]) {
      const ran = await home.run(args);
      expect(ran, args.join(" ")).toMatchObject({ code: 5, stdout: "" });
      expectKind(ran, "FORMAT_NEWER");
      expect(ran.stderr).toContain("npm install -g @holdfast/cli@latest");
    }
    expect((await home.run(["ls"])).stdout).toContain("two");
    const verified = await home.run(["verify"]);
    expect(verified).toMatchObject({ code: 1 });
    expect(verified.stdout).toContain(`unreadable ${id}`);
    expect(await home.run(["show", other!])).toMatchObject({ code: 0 });
    expect(readFileSync(path, "utf8")).toBe(newer);
  });

  test("an id that is missing, too short, ambiguous, or a path", async () => {
    using home = temporaryHome();
    const ids = await speakIn(home.store, { prompt: "one" }, { prompt: "two" });
    for (const given of ["feedface", "ab", "../../etc/passwd", "01890000-0000-7000-8000-000000000000"]) {
      const ran = await home.run(["show", given]);
      expect(ran).toMatchObject({ code: 3, stdout: "" });
      expectKind(ran, "SESSION_NOT_FOUND");
    }
    const ambiguous = await home.run(["show", ids[0]!.slice(0, 5)]);
    expect(ambiguous.code).toBe(3);
    expectKind(ambiguous, "SESSION_AMBIGUOUS");
    for (const id of ids) expect(ambiguous.stderr).toContain(`  ${id.slice(-8)}  `);
  });

  test("no password of an address is shown by config, nor by what is said of a wrong flag", async () => {
    using home = temporaryHome();
    const secret = {
      HOLDFAST_STORE: "postgres://me:S3CRET@db/x?sslpassword=S3CRET",
      HOLDFAST_BASE_URL: "https://me:S3CRET@h/v1",
    };
    for (const args of [["config"], ["config", "--json"], ["run", "hello", "--base-ulr=http://me:S3CRET@h/v1"]]) {
      const { stdout, stderr } = await home.run(args, { env: secret });
      expect(stdout + stderr).not.toContain("S3CRET");
      expect(stdout + stderr).toContain("…@h/v1");
    }
  });

  test("a wrong configuration is said with its path, and config shows where each value comes from", async () => {
    using home = temporaryHome();
    const path = join(home.path, ".config/holdfast/config.json");
    mkdirSync(join(path, ".."), { recursive: true });
    writeFileSync(path, '{"modell":"x"}');
    const env = { HOLDFAST_CONFIG: undefined };
    const ran = await home.run(["ls"], { env });
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expectKind(ran, "CONFIG_INVALID");
    expect(ran.stderr).toContain(path);
    writeFileSync(path, '{"model":"anthropic/claude"}');
    const shown = JSON.parse(
      (await home.run(["config", "--json"], { env: { ...env, HOLDFAST_ALLOW: "read" } })).stdout,
    );
    expect(shown.file).toBe(path);
    expect(shown.settings).toMatchObject({
      model: { value: "anthropic/claude", from: [path] },
      store: { value: home.store, from: ["HOLDFAST_STORE"] },
      allow: { value: ["read"], from: ["HOLDFAST_ALLOW"] },
    });
    const elsewhere = await home.run(["config", "--json"], { env: { ...env, HOLDFAST_STORE: undefined } });
    expect(JSON.parse(elsewhere.stdout).settings.store).toMatchObject({
      value: join(
        home.path,
        process.platform === "darwin" ? "Library/Application Support/Holdfast" : ".local/share/holdfast",
      ),
      from: ["default"],
    });
    const text = (await home.run(["config"], { env })).stdout;
    for (const { key, env: name } of settings) expect(text).toMatch(new RegExp(`^${key} .*${name ?? ""}`, "m"));
  });
});

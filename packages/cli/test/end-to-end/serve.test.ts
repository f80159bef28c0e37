import { spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import type { HoldfastClient } from "@holdfast/server/client";
import { Machine } from "@holdfast/testkit/internal/machine";
import { describe, expect, test } from "vitest";
import { ended, temporaryHome } from "../command.ts";
import { answered, inTerminal } from "../screen/chat.ts";
import { serve } from "../serve.ts";
import { eventually } from "./run-lines.ts";

async function statusOf(client: HoldfastClient, id: string): Promise<string> {
  return (await client.call("getSession", { params: { id } })).status;
}

const SLOW = { HOLDFAST_OFFLINE_DELAY_MS: "5" };

describe.concurrent("holdfast serve", () => {
  test("C13: SIGTERM ends it in time, and the next start continues the running turn; a second one aborts it", async () => {
    using home = temporaryHome();
    let id: string;
    {
      await using server = await serve(home, ["--grace", "0"], SLOW);
      expect(server.output()).not.toContain(
        readFileSync(join(home.path, "state/holdfast/server/token"), "utf8").trim(),
      );
      ({ id } = await server.client.call("createSession", { body: { cwd: home.work } }));
      await server.client.call("startTurn", { params: { id }, body: { text: "tell me a story of 400 lines" } });
      await eventually(async () => (await statusOf(server.client, id)) === "running");
      const exit = ended(server.child);
      server.child.kill("SIGTERM");
      expect(await exit).toMatchObject({ code: 0, signal: null });
      expect(server.output()).toContain("The next start continues the running turn. Waiting up to 0 s");
      expect(readdirSync(join(home.path, "state/holdfast/server/running"))).toEqual([]);
    }
    {
      await using server = await serve(home);
      expect(server.output()).not.toContain("interrupted");
      await eventually(async () => (await statusOf(server.client, id)) === "idle");
      const { items } = await server.client.call("getTranscript", { params: { id } });
      expect(items.map(({ kind }) => kind)).toEqual(["prompt", "reasoning", "answer"]);
    }
    {
      await using server = await serve(home, ["--grace", "600", "--allow", "shell"]);
      const text = "run touch begun; sleep 1000";
      await server.client.call("startTurn", { params: { id }, body: { text } });
      await eventually(async () => existsSync(join(home.work, "begun")));
      const exit = ended(server.child);
      server.child.kill("SIGTERM");
      await eventually(async () => server.output().includes("stopping"));
      server.child.kill("SIGTERM");
      expect(await exit).toMatchObject({ code: 0, signal: null });
    }
    await using server = await serve(home);
    expect(server.output()).toContain("1 session has an interrupted turn: holdfast ls --status interrupted");
    expect(await server.client.call("getSession", { params: { id } })).toMatchObject({
      status: "interrupted",
      interruption: { how: { kind: "aborted", by: "server" } },
    });
  });

  test("the token is private, the same at each start, and a file that others can read is refused", async () => {
    using home = temporaryHome();
    const path = join(home.path, "state/holdfast/server/token");
    const { stdout: first } = await home.run(["serve", "--show-token"]);
    expect(first.trim()).toMatch(/^[\w-]{43}$/);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect((await home.run(["serve", "--show-token"])).stdout).toBe(first);
    chmodSync(path, 0o644);
    const { code, stderr } = await home.run(["serve", "--show-token"]);
    expect(code).toBe(5);
    expect(stderr).toContain("can be read by other users");
  });

  test("no command sends the token to another program on the server's port, nor to one that a stale file names", async () => {
    using home = temporaryHome();
    const { stdout } = await home.run(["serve", "--show-token"]);
    let heard = "";
    const impostor = createServer((socket) =>
      socket
        .on("error", () => socket.destroy())
        .on("data", (bytes) => {
          heard += bytes.toString("latin1");
          socket.end("HTTP/1.1 204 No Content\r\nHoldfast-Proof: x\r\n\r\n");
        }),
    ).listen(0, "127.0.0.1");
    await once(impostor, "listening");
    const { port } = impostor.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}`;
    const unproven = { code: 3, stderr: expect.stringContaining("[SERVER_UNPROVEN]") };
    const named = ["share --list --server", "acp --server"].map((words) => [...words.split(" "), url]);
    for (const args of named) expect(await home.run(args), args.join(" ")).toMatchObject(unproven);
    // A file of a server that is gone; its number belongs to another process by now.
    const running = join(home.path, "state/holdfast/server/running");
    mkdirSync(running, { mode: 0o700 });
    const stale = JSON.stringify({ pid: process.pid, url, store: null });
    writeFileSync(join(running, `${process.pid}.json`), stale, { mode: 0o600 });
    expect(await home.run(["share", "latest"])).toMatchObject(unproven);
    expect(heard).toContain("GET /auth/proof?");
    expect(heard).not.toContain(stdout.trim());
    impostor.close();
  });

  test("share: a read-only link is made, listed and revoked; without a server, it says how to start one", async () => {
    using home = temporaryHome();
    const none = await home.run(["share", "latest"]);
    expect(none).toMatchObject({ code: 3, stderr: expect.stringContaining('Start one with "holdfast serve"') });
    await using server = await serve(home);
    const { id } = await server.client.call("createSession", {
      body: { cwd: home.work, title: "a story", keep: true },
    });
    const made = await home.run(["share", id.slice(0, 8), "--expires", "7d"]);
    expect(made).toMatchObject({ code: 0, stderr: expect.stringContaining("Only this machine can open it") });
    const [, url, token, to] = /^(http:\/\/\S+)\/#token=([\w-]{43})&to=(\S+)\n$/.exec(made.stdout)!;
    expect(url).toBe(server.url);
    expect(decodeURIComponent(to!)).toBe(`/${id}`);
    const read = () =>
      fetch(`${url}/sessions/${id}`, { headers: { authorization: `Bearer ${token}`, connection: "close" } });
    expect((await read()).status).toBe(200);
    const listed = await home.run(["share", "--list", "--json"]);
    const kept = JSON.parse(listed.stdout) as { id: string; session: string; expiresAt: string };
    expect(kept).toMatchObject({ session: id, expiresAt: expect.any(String) });
    expect(Date.parse(kept.expiresAt) - Date.now()).toBeGreaterThan(6 * 24 * 3_600_000);
    expect(listed.stdout).not.toContain(token);
    expect((await home.run(["share", "--list"])).stdout).toMatch(new RegExp(`${kept.id} .*a story`));
    const redacted = await home.run(["share", id, "--redact", "--json"]);
    const second = JSON.parse(redacted.stdout) as { id: string; redact: boolean };
    expect(second).toMatchObject({ redact: true });
    expect((await home.run(["share", "--list"])).stdout).toMatch(new RegExp(`${second.id} .* redacted +a story`));
    expect((await home.run(["share", "--revoke", second.id])).code).toBe(0);
    for (const args of [
      ["share", "--revoke", "nothing"],
      ["share", id, "--revoke", "ffffffffffff0"],
    ])
      expect(await home.run(args)).toMatchObject({ code: 3, stderr: expect.stringContaining("[SHARE_UNKNOWN]") });
    expect((await home.run(["share", "--revoke", kept.id.slice(0, 6)])).stdout).toContain("Revoked");
    expect((await read()).status).toBe(401);
    expect((await home.run(["share", "--list"])).stdout).toBe("No read-only links.\n");
    for (const args of [["share"], ["share", "latest", "--expires", "0s"], ["share", "--list", "--expires", "1d"]])
      expect((await home.run(args)).code, args.join(" ")).toBe(2);
  });

  test("a server that listens on all addresses is found here; a link to a session without a title shows its prompt", async () => {
    using home = temporaryHome();
    for (const address of ["0.0.0.0", "::"]) {
      await using server = await serve(home, ["--address", address, "--log"]);
      await eventually(() => server.output().includes("Other machines"));
      await home.run(["run", "tell me a joke"]);
      const made = await home.run(["share", "latest"]);
      expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^http:\/\/(?:127\.0\.0\.1|\[::1\]):/) });
      expect((await home.run(["share", "--list"])).stdout).toContain("tell me a joke");
    }
  });

  test("a full disk, then a read-only one, then a second server on the same store by another name", async (context) => {
    if (process.getuid?.() !== 0) context.skip("not run: only root can mount a disk");
    await using machine = new Machine();
    const disk = await machine.tmpfs("full", 1 << 20);
    using home = temporaryHome();
    const env = { HOLDFAST_STORE: join(disk, "store"), ...SLOW };
    const cwd = home.work;
    let id: string;
    {
      await using server = await serve(home, [], env);
      ({ id } = await server.client.call("createSession", { body: { cwd } }));
      await server.client.call("startTurn", { params: { id }, body: { text: "think about rivers" } });
      await eventually(async () => (await statusOf(server.client, id)) === "idle");
      spawnSync("dd", ["if=/dev/zero", `of=${disk}/ballast`, "bs=1k"]);
      const create = () => server.client.call("createSession", { body: { cwd } });
      await expect(create()).rejects.toMatchObject({ code: "STORE_FULL", status: 507 });
      expect((await server.client.call("listSessions")).sessions).toHaveLength(1);
      rmSync(join(disk, "ballast"));
      await create();
      const exit = ended(server.child);
      // The second one while it ends.
      server.child.kill("SIGTERM");
      server.child.kill("SIGHUP");
      expect(await exit).toMatchObject({ code: 0, signal: null });
    }
    spawnSync("mount", ["-o", "remount,ro", disk]);
    {
      await using server = await serve(home, [], env);
      expect((await server.client.call("getTranscript", { params: { id } })).count).toBeGreaterThan(1);
      const turn = server.client.call("startTurn", { params: { id }, body: { text: "hello" } });
      await expect(turn).rejects.toMatchObject({ code: "STORE_FORBIDDEN", status: 503 });
    }
    spawnSync("mount", ["-o", "remount,rw", disk]);
    const link = join(home.path, "link");
    symlinkSync(join(disk, "store"), link);
    await using one = await serve(home, [], env);
    await using two = await serve(home, [], { ...env, HOLDFAST_STORE: link });
    await one.client.call("openSession", { params: { id }, body: {} });
    expect(await two.client.call("getSession", { params: { id } })).toMatchObject({ id, here: false });
    const turn = two.client.call("startTurn", { params: { id }, body: { text: "hello" } });
    await expect(turn).rejects.toMatchObject({ code: "SESSION_BUSY", status: 409 });
    // A link that one of them makes is known to the other, and revoked for both.
    const { id: share, token } = await one.client.call("createShare", { params: { id }, body: {} });
    const read = async (): Promise<number> =>
      (await fetch(`${two.url}/sessions/${id}`, { headers: { authorization: `Bearer ${token}`, connection: "close" } }))
        .status;
    expect(await read()).toBe(200);
    await two.client.call("removeShare", { params: { id, share } });
    expect(await read()).toBe(401);
  });

  test("a port in use is refused", async () => {
    using home = temporaryHome();
    await using server = await serve(home);
    const { port } = new URL(server.url);
    const second = await home.run(["serve", "--port", port]);
    expect(second).toMatchObject({ code: 1, stderr: expect.stringContaining("[ADDRESS_UNUSABLE]") });
  });

  test("after a kill, a session that was started with finish-after-restart is finished by the next start", async () => {
    using home = temporaryHome();
    let id: string;
    const text = "write notes.txt: hello";
    {
      // The model says nothing for longer than the test runs: the turn cannot end before the kill.
      await using server = await serve(home, ["--allow", "write"], { HOLDFAST_OFFLINE_DELAY_MS: "600000" });
      ({ id } = await server.client.call("createSession", { body: { cwd: home.work, finishAfterRestart: true } }));
      await server.client.call("startTurn", { params: { id }, body: { text } });
      await eventually(async () => (await statusOf(server.client, id)) === "running");
    }
    await using server = await serve(home, ["--allow", "write"]);
    await eventually(async () => (await statusOf(server.client, id)) === "idle");
    expect(readFileSync(join(home.work, "notes.txt"), "utf8")).toBe("hello\n");
  });

  test("C13: a terminal attaches, sees everything, leaves, and the turn goes on", async (context) => {
    using home = temporaryHome();
    await using server = await serve(home, ["--allow", "shell"], SLOW);
    const { id } = await server.client.call("createSession", { body: { cwd: home.work, title: "a story" } });
    // Held in its middle until the terminal has left, so that it cannot end before.
    const text = "1. run until test -e go; do sleep 0.05; done 2. tell me a story of 40 lines";
    await server.client.call("startTurn", { params: { id }, body: { text } });
    {
      await using terminal = await inTerminal(context, home, ["attach", "latest"]);
      await terminal.untilAll("❯ 1. run until test", "The plan:", /shell until test .* running/);
      // The terminal is gone, as after a dropped SSH connection.
      await terminal.signal("SIGKILL");
      await terminal.ended();
    }
    expect(await statusOf(server.client, id)).toBe("running");
    writeFileSync(join(home.work, "go"), "");
    await eventually(async () => (await statusOf(server.client, id)) === "idle");
    await using terminal = await inTerminal(context, home, ["attach", id.slice(-8)]);
    await terminal.untilAll("The plan:", "✓ shell until test", "All steps are through", /Chapter 1/, /^idle\b/m);
    await terminal.say("think about rivers");
    await answered(terminal, "I thought about rivers");
    await terminal.say("/quit");
    expect(await terminal.ended()).toMatchObject({ code: 0 });
    expect(await statusOf(server.client, id)).toBe("idle");
  });

  test("C13: chat --server starts a session there; a local chat that finds it in use offers to attach", async (context) => {
    using home = temporaryHome();
    await using server = await serve(home);
    await using first = await inTerminal(context, home, ["chat", "--server", server.url, "--finish-after-restart"]);
    await first.until(/^idle\b/m);
    await first.say("think about rivers");
    await answered(first, "I thought about rivers");
    const { sessions } = await server.client.call("listSessions");
    expect(await server.client.call("getSession", { params: { id: sessions[0]!.id } })).toMatchObject({
      cwd: home.work,
      finishAfterRestart: true,
    });
    await using second = await inTerminal(context, home, ["chat", "--continue"]);
    await second.until(/A server has session \w+ open[\s\S]*Attach to it\? \[Y\/n\]/);
    await second.say("y");
    await second.untilAll("I thought about rivers", /^idle\b/m);
    await second.say("think about hills");
    await answered(second, "I thought about hills");
    // The other client sees it too.
    await answered(first, "I thought about hills");
  });
});

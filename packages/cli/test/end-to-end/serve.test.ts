import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { chmodSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { HoldfastClient } from "@holdfast/server/client";
import { describe, expect, test } from "vitest";
import { ended, type Home, temporaryHome } from "../command.ts";
import { answered, inTerminal } from "../screen/chat.ts";
import { eventually } from "./run-lines.ts";

interface Served extends AsyncDisposable {
  readonly child: ChildProcessWithoutNullStreams;
  readonly url: string;
  readonly client: HoldfastClient;
  readonly output: () => string;
}

/** `holdfast serve`, ready for clients. */
async function serve(home: Home, args: readonly string[] = [], env: Record<string, string> = {}): Promise<Served> {
  const child = home.start(["serve", "--port", "0", ...args], { env });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on("data", () => {
      const found = /http:\/\/[\d.]+:\d+/.exec(output);
      if (found) resolve(found[0]);
    });
    child.once("exit", () => reject(new Error(output)));
  });
  const token = readFileSync(join(home.path, "state/holdfast/server/token"), "utf8").trim();
  const client = new HoldfastClient({ url, token });
  return {
    ...{ child, url, client, output: () => output },
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await exited;
    },
  };
}

async function statusOf(client: HoldfastClient, id: string): Promise<string> {
  return (await client.call("getSession", { params: { id } })).status;
}

const SLOW = { HOLDFAST_OFFLINE_DELAY_MS: "5" };

describe.concurrent("holdfast serve", () => {
  test("C13: SIGTERM ends it in time: a running turn is recorded as aborted by the server; the next start shows it", async () => {
    using home = temporaryHome();
    let id: string;
    {
      await using server = await serve(home, ["--grace", "0"], SLOW);
      expect(server.output()).not.toContain(
        readFileSync(join(home.path, "state/holdfast/server/token"), "utf8").trim(),
      );
      ({ id } = await server.client.call("createSession", { body: { cwd: home.work } }));
      await server.client.call("startTurn", { params: { id }, body: { text: "tell me a story of 4000 lines" } });
      await eventually(async () => (await statusOf(server.client, id)) === "running");
      const exit = ended(server.child);
      server.child.kill("SIGTERM");
      expect(await exit).toMatchObject({ code: 0, signal: null });
      expect(server.output()).toContain("Waiting up to 0 s for 1 turn");
      expect(readdirSync(join(home.path, "state/holdfast/server/running"))).toEqual([]);
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
      await using server = await serve(home, ["--allow", "write"], { HOLDFAST_OFFLINE_DELAY_MS: "30" });
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
    await using server = await serve(home, [], SLOW);
    const { id } = await server.client.call("createSession", { body: { cwd: home.work, title: "a story" } });
    await server.client.call("startTurn", { params: { id }, body: { text: "tell me a story of 60 lines" } });
    {
      await using terminal = await inTerminal(context, home, ["attach", "latest"]);
      await terminal.untilAll("tell me a story of 60 lines", /line \d+\)/);
      // The terminal is gone, as after a dropped SSH connection.
      await terminal.signal("SIGKILL");
      await terminal.ended();
    }
    expect(await statusOf(server.client, id)).toBe("running");
    await eventually(async () => (await statusOf(server.client, id)) === "idle");
    await using terminal = await inTerminal(context, home, ["attach", id.slice(-8)]);
    await terminal.untilAll(/Chapter 2/, /^idle\b/m);
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

import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openStore } from "holdfast";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Home, temporaryHome } from "../../../cli/test/command.ts";
import { type Server, startServer as startDatabase } from "../../../postgres/test/server/server.ts";
import { HoldfastClient } from "../../src/client/index.ts";
import { Agent } from "../recorder-agent.ts";

/** Three `holdfast serve` on one database: a client may reach any of them, and any of them may die. */

let database: Server;
beforeAll(async () => {
  database = await startDatabase(["fsync=off"]);
});
afterAll(() => database.stop());

class Fleet implements AsyncDisposable {
  readonly home: Home = temporaryHome();
  readonly #children: ChildProcessWithoutNullStreams[] = [];
  #ports: readonly number[] = [];

  async start(): Promise<void> {
    this.#ports = await Promise.all([freePort(), freePort(), freePort()]);
    const env = { HOLDFAST_STORE: database.url, HOLDFAST_OFFLINE_DELAY_MS: "40" };
    for (const port of this.#ports) {
      const peers = this.urls.filter((url) => !url.endsWith(`:${port}`)).flatMap((url) => ["--peer", url]);
      const child = this.home.start(["serve", "--port", String(port), "--allow", "shell(sleep *)", ...peers], { env });
      child.stdout.resume();
      child.stderr.resume();
      this.#children.push(child);
      while (!(await fetch(`http://127.0.0.1:${port}/openapi.json`).catch(() => null))?.ok) {
        if (child.exitCode !== null) throw new Error(`a server ended with ${child.exitCode}`);
        await sleep(20);
      }
    }
  }

  get urls(): readonly string[] {
    return this.#ports.map((port) => `http://127.0.0.1:${port}`);
  }

  get token(): string {
    return readFileSync(join(this.home.path, "state/holdfast/server/token"), "utf8").trim();
  }

  client(at: number): HoldfastClient {
    return new HoldfastClient({ url: this.urls[at]!, token: this.token });
  }

  async kill(at: number): Promise<void> {
    const child = this.#children[at]!;
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#children.map((_, at) => this.kill(at)));
    this.home[Symbol.dispose]();
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

/** Does something, then follows the session at this server to the next record of this kind. */
async function recorded(
  client: HoldfastClient,
  id: string,
  kind: string,
  work: () => Promise<unknown>,
): Promise<Record<string, unknown>> {
  const { cursor } = await client.call("getSession", { params: { id } });
  await work();
  for await (const { name, data } of client.events(id, { after: cursor! })) {
    const record = name === "record" ? (JSON.parse(data) as Record<string, unknown>) : {};
    if (record["kind"] === kind) return record;
    if (record["kind"] === "turn.ended") break;
  }
  throw new Error(`the turn ended without ${kind}`);
}

/** Repeats what is refused with 409 until it is accepted. Returns how often it was refused. */
async function insist(work: () => Promise<unknown>): Promise<number> {
  for (let refused = 0; ; refused++) {
    try {
      await work();
      return refused;
    } catch (error) {
      if ((error as { status?: number }).status !== 409) throw error;
      await sleep(50);
    }
  }
}

test("a client may reach any server; one is killed in mid-turn, and another finishes the turn", async () => {
  await using fleet = new Fleet();
  await fleet.start();
  const [first, second, third] = [fleet.client(0), fleet.client(1), fleet.client(2)];
  const { id } = await first.call("createSession", { body: { cwd: fleet.home.work } });
  const params = { id };

  // The wrong server shows what the right one knows, streamed text included. It is asked for once the stream is there.
  let streamed = "";
  let isAsked = false;
  for await (const { name, data } of second.events(id)) {
    if (!isAsked) await first.call("startTurn", { params, body: { text: "hello there" } });
    isAsked = true;
    if (name === "text") streamed += (JSON.parse(data) as { text: string }).text;
    if (name === "record" && data.includes('"turn.ended"')) break;
  }
  expect(streamed).not.toBe("");
  expect(await second.call("getSession", { params })).toMatchObject({ id, here: true, state: { status: "idle" } });

  // It does what it is asked for, too: the turn is running elsewhere.
  await recorded(third, id, "tool.started", () =>
    second.call("startTurn", { params, body: { text: "1. run sleep 300 2. run sleep 1" } }),
  );
  expect(await third.call("startTurn", { params, body: { text: "and again" } })).toEqual({ outcome: "queued" });
  const { queue } = await second.call("getQueue", { params });
  expect(queue).toMatchObject([{ text: "and again" }]);
  await second.call("withdrawPrompt", { params: { id, item: queue[0]!.id } });
  const stopped = await recorded(second, id, "turn.ended", () => third.call("stopTurn", { params }));
  expect(stopped).toMatchObject({ outcome: "aborted" });

  await recorded(second, id, "tool.started", () =>
    third.call("startTurn", { params, body: { text: "1. run sleep 300 2. run sleep 1" } }),
  );
  await fleet.kill(0);
  const ended = await recorded(third, id, "turn.ended", async () => {
    // Its lease ends with its connection. What it left running is stopped first.
    const refused = await insist(() => second.call("finishTurn", { params, body: { processes: "stop" } }));
    console.log(`resumed on another server after ${refused} refusals`);
  });
  expect(ended).toMatchObject({ outcome: "completed" });
  expect((await third.call("getSession", { params })).interruption).toBe(null);
  await using store = await openStore(database.url);
  const records = await Array.fromAsync(store.history(id));
  expect(records.map(({ seq }) => seq)).toEqual(records.map((_, index) => index + 1));
  expect(records.filter(({ kind }) => kind === "turn.resumed").length).toBe(1);
});

test("the same new key at several servers in the same instant: one session, and one recorder of it", async () => {
  await using fleet = new Fleet();
  await fleet.start();
  await using store = await openStore(database.url);
  for (let round = 0; round < 8; round++) {
    const key = `round ${round} of ${fleet.urls[0]}`;
    const body = { key, dialect: "anthropic" as const, title: key };
    const answers = await Promise.allSettled(
      [0, 1, 2, 0, 1, 2].map((at) => fleet.client(at).call("createRecording", { body })),
    );
    const made = answers.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const refused = answers.flatMap((one) => (one.status === "rejected" ? [one.reason.code as string] : []));
    // While one of them is creating it, another may be told to try again.
    expect(refused.filter((code) => code !== "SESSION_BUSY")).toEqual([]);
    expect(new Set(made.map(({ session }) => session)).size).toBe(1);
    const { sessions } = await store.list({ labels: { "holdfast.key": key }, empty: true });
    expect(sessions.map(({ id }) => id)).toEqual([made[0]!.session]);
    // Whichever server is asked next, it is that session.
    for (const at of [0, 1, 2])
      expect((await fleet.client(at).call("createRecording", { body })).session).toBe(made[0]!.session);
    const other = { ...body, title: "another" };
    await expect(fleet.client(round % 3).call("createRecording", { body: other })).rejects.toMatchObject({
      code: "KEY_TAKEN",
    });
  }
});

test("a recorder may reach any server, and goes on at another one when its own is killed", async () => {
  await using fleet = new Fleet();
  await fleet.start();
  const at = (server: number) => ({ url: fleet.urls[server]!, token: fleet.token });
  const agent = await Agent.create(at(0), { app: "elsewhere" });
  const via = (server: number): Agent =>
    new Agent(at(server), { session: agent.session, recorder: agent.recorder } as never);
  await agent.makes({ type: "turn.start", prompt: { role: "user", content: "go" } }, "start");
  const call = { type: "tool_use", id: "c1", name: "look", input: {} };
  const made = await via(1).makes({ type: "messages", messages: { role: "assistant", content: [call] } }, "call");
  await via(2).makes({ type: "tool.started", call: "c1" }, "started");
  expect((await via(1).state(agent.recorder)).body).toMatchObject({ next: "continue", recorder: agent.recorder });
  expect((await via(2).request()).body.messages).toHaveLength(3);
  expect((await via(1).take()).body.code).toBe("RECORDER_BUSY");

  await fleet.kill(0);
  // Nobody has to be the recorder to repeat what is recorded.
  expect(await via(1).makes({ type: "messages", messages: { role: "assistant", content: [call] } }, "call")).toEqual(
    made,
  );
  expect(await via(2).refused({ type: "tool.ended", call: "c1", value: 1 }, "ended")).toBe("RECORDER_UNKNOWN");
  let taken = await via(1).take();
  while (taken.body.code === "SESSION_BUSY") {
    await sleep(50);
    taken = await via(1).take();
  }
  expect(taken.body).toMatchObject({ next: "resume", interruption: { how: { kind: "killed" } } });
  agent.recorder = taken.body.recorder;
  // The agent is alive, and knows how its tool ended.
  await via(2).makes({ type: "turn.resume", outcomes: { c1: { value: 1 } } }, "resume");
  await via(1).makes({ type: "messages", messages: { role: "assistant", content: "done" }, end: true }, "end");
  expect((await via(2).state()).body).toMatchObject({ next: "start" });
});

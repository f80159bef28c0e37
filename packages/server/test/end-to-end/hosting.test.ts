import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openStore } from "holdfast";
import { expect, test } from "vitest";
import { ServerError } from "../../src/client/index.ts";
import { finishInterrupted, TRIES_MAX } from "../../src/hosting/finish-interrupted.ts";
import { PATIENT, ServerStage } from "../server-stage.ts";

/** A session whose turn waits for permission to write a file. */
async function waiting(stage: ServerStage): Promise<{ readonly id: string; readonly call: string }> {
  const id = await stage.session();
  await stage.client.call("startTurn", { params: { id }, body: { text: "write notes.md: one" } });
  return { id, call: await questionOf(stage, id) };
}

async function questionOf(stage: ServerStage, id: string): Promise<string> {
  let call = "";
  await expect
    .poll(async () => {
      const { asks } = await stage.client.call("getPermissions", { params: { id } });
      call = asks[0]?.call ?? "";
      return call;
    }, PATIENT)
    .not.toBe("");
  return call;
}

test("of two answers at once the first counts, and the second is told so", async () => {
  await using stage = await ServerStage.start();
  const { id, call } = await waiting(stage);
  const answers = (["deny", "allow"] as const).map((answer) =>
    stage.client.call("answerPermission", { params: { id }, body: { call, answer } }).then(
      () => answer,
      (error: ServerError) => error,
    ),
  );
  const [one, other] = await Promise.all(answers);
  const [given, refused] = one instanceof ServerError ? [other, one] : [one, other as ServerError];
  expect(refused).toMatchObject({ code: "ALREADY_ANSWERED", facts: { allowed: given === "allow", by: "user" } });
});

test("a turn waits for an answer without clients, and over a restart", async () => {
  await using stage = await ServerStage.start();
  const { id } = await waiting(stage);
  await stage.stop();
  await stage.start();
  expect(await stage.client.call("getSession", { params: { id } })).toMatchObject({ status: "waiting", here: false });
  const call = await questionOf(stage, id);
  await stage.client.call("answerPermission", { params: { id }, body: { call, answer: "allow" } });
  const chat = await stage.host.open(id);
  while (chat.state.status !== "idle") await chat.settled();
  expect(readFileSync(join(stage.work, "notes.md"), "utf8")).toContain("one");
});

/** The store as a killed process leaves it: a copy of what is on disk while a turn is open. */
async function killed(stage: ServerStage, resumes: number): Promise<string> {
  const store = await openStore(stage.folder, { app: "holdfast", recordsToolStarts: true });
  const session = await store.create({ dialect: "ai-sdk", app: "holdfast", cwd: stage.work });
  const { id } = session;
  await session.startTurn({ role: "user", content: "hello" });
  for (let n = 0; n < resumes; n++) {
    await session.turn!.suspend({ reason: "test" });
    await session.resumeTurn();
  }
  const copy = `${stage.folder}-copy`;
  cpSync(stage.folder, copy, { recursive: true });
  await store.close();
  rmSync(stage.folder, { recursive: true });
  cpSync(copy, stage.folder, { recursive: true });
  rmSync(copy, { recursive: true });
  return id;
}

test("after a kill, a turn is finished only if the session was started so, and three times at most", async () => {
  await using stage = new ServerStage();
  const ids = [await killed(stage, 0), await killed(stage, 0), await killed(stage, TRIES_MAX)];
  await stage.start();
  const [asked, , poisoned] = ids;
  for (const id of ids) {
    expect(await stage.client.call("getSession", { params: { id } })).toMatchObject({
      status: "interrupted",
      interruption: { how: { kind: "killed" } },
    });
    // As if this user had worked with it here.
    stage.host.trustOf(id).workIn(stage.work);
  }
  for (const id of [asked!, poisoned!]) stage.host.trustOf(id).setFinishes(true);
  expect(await finishInterrupted(stage.server.hosting)).toEqual([asked]);
  const chat = await stage.host.open(asked!);
  while (chat.state.status !== "idle") await chat.settled();
  expect(chat.state.items.at(-1)).toMatchObject({ kind: "answer" });
});

test("a session that nobody uses is closed, so that another process can open it", async () => {
  await using stage = await ServerStage.start({ limits: { idleMs: 100 } });
  // As it was made: it may be closed by the time that this is known.
  const made = await stage.client.call("createSession", { body: { cwd: stage.work, title: "kept" } });
  expect(made).toMatchObject({ here: true });
  const { id } = made;
  await expect.poll(() => stage.server.hosting.feed(id), PATIENT).toBe(null);
  await using other = await openStore(stage.folder);
  await expect.poll(() => other.resume(id).then((session) => session.close()), PATIENT).toBe(undefined);
  expect(await stage.client.call("getSession", { params: { id } })).toMatchObject({ title: "kept", here: false });
});

test("a stop during a turn is an explicit request; a client that leaves stops nothing", async () => {
  await using stage = await ServerStage.start({ config: { offlineDelayMs: 1 } });
  const id = await stage.session();
  const ending = new AbortController();
  const events = Array.fromAsync(stage.client.events(id, { signal: ending.signal }));
  await stage.client.call("startTurn", { params: { id }, body: { text: "hello" } });
  ending.abort();
  await events;
  const chat = await stage.host.open(id);
  await chat.settled();
  expect(chat.state).toMatchObject({ status: "idle", interruption: null });
  expect(chat.state.items.at(-1)).toMatchObject({ kind: "answer" });
});

test("a process that is killed leaves no word, and its session is interrupted all the same", async () => {
  await using stage = await ServerStage.start();
  const program = `
    import { openStore } from "holdfast";
    const store = await openStore(process.argv[1]);
    const session = await store.create({ dialect: "ai-sdk", title: "elsewhere" });
    await session.startTurn({ role: "user", content: "hello" });
    console.log(session.id);
    setInterval(() => {}, 1000);`;
  const flags = ["--conditions=holdfast-source", "--input-type=module", "-e", program, stage.folder];
  const agent = spawn(process.execPath, flags, { stdio: ["ignore", "pipe", "inherit"] });
  const [output] = (await once(agent.stdout, "data")) as [Buffer];
  const id = output.toString().trim();
  // Followed, so that the server has it in memory.
  const stop = new AbortController();
  const followed = stage.fetch(`/sessions/${id}/events?after=end`, { signal: stop.signal });
  await followed;
  const session = () => stage.client.call("getSession", { params: { id } });
  const turns = async () =>
    (await stage.client.call("getTimeline", { params: { id } })).entries.filter(({ kind }) => kind !== "model");
  expect(await session()).toMatchObject({ status: "running", holder: { pid: agent.pid } });
  expect(await turns()).toMatchObject([{ kind: "mark" }, { kind: "turn", outcome: "running" }]);
  agent.kill("SIGKILL");
  await once(agent, "exit");
  await expect.poll(session, PATIENT).toMatchObject({ status: "interrupted", holder: null });
  expect(await turns()).toMatchObject([{ kind: "mark" }, { outcome: "interrupted" }, { kind: "mark", mark: "died" }]);
  stop.abort();
});

import { cpSync, rmSync } from "node:fs";
import type { ModelMessage } from "ai";
import { openStore, type Store } from "holdfast";
import { expect, test } from "vitest";
import { LocalHost } from "../../../../src/host/local/local-host.ts";
import { offerWords } from "../../../../src/screen/panels/offer.ts";
import { APP } from "../../../../src/store/app.ts";
import { config, Stage } from "../host-stage.ts";

type Left = "completed" | "killed" | "waiting" | "queued" | "stopped";

/** A session in this folder, left in this way. */
async function session(store: Store, cwd: string, left: Left, more: object = {}): Promise<string> {
  const made = await store.create<ModelMessage>({ dialect: "ai-sdk", app: APP, cwd, ...more });
  if (left === "queued") await made.enqueue({ role: "user", content: "do this next" });
  else {
    const turn = await made.startTurn({ role: "user", content: `a ${left} turn` });
    const call = { type: "tool-call" as const, toolCallId: "c", toolName: "shell", input: { command: "npm test" } };
    if (left === "completed") await turn.append({ role: "assistant", content: "done" }, { end: true });
    else await turn.append({ role: "assistant", content: [call] });
    if (left === "killed") await turn.toolStarted("c");
    if (left === "waiting") await turn.suspend({ reason: "permission", calls: ["c"] });
    if (left === "stopped") await turn.abort({ by: "user" });
  }
  await made.close();
  return made.id;
}

async function inStore<T>(stage: Stage, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await stage.store();
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

test.each([
  ["killed", "interrupted", "A session here was interrupted just now, in `npm test`."],
  ["waiting", "waiting", "A session here is waiting for your approval, asked just now, in `npm test`."],
  ["queued", "queued", "A session here has a queued prompt, last written just now."],
  ["stopped", "stopped", "A session here was stopped just now, in `npm test`."],
] as const)(
  "the last session of a folder was %s: it is offered as %s, and nothing is opened",
  async (left, status, words) => {
    await using stage = new Stage();
    const id = await inStore(stage, async (store) => {
      await session(store, stage.work, "completed");
      return session(store, stage.work, left);
    });
    const host = await stage.host("person");
    const found = await host.unfinished(stage.work);
    expect(found).toMatchObject({ id, account: { state: status === "queued" ? "idle" : status } });
    expect(offerWords(found!, Date.now())).toBe(words);
    // The same word as in a list.
    const [listed] = (await host.list({ cwd: stage.work })).sessions;
    expect(listed!.status === "idle" && listed!.queued > 0 ? "queued" : listed!.status).toBe(status);
    expect((await host.sessions.read(id)).holder).toBeNull();
  },
);

test("nothing is offered: the last session completed, is a sub-agent's, of another folder or of another program", async () => {
  await using stage = new Stage();
  const host = await stage.host("person");
  expect(await host.unfinished(stage.work)).toBeNull();
  await session(host.sessions, stage.folder, "killed");
  await session(host.sessions, stage.work, "killed", { app: "other" });
  const parent = await session(host.sessions, stage.work, "completed");
  await session(host.sessions, stage.work, "killed", { parent: { session: parent, call: "c" } });
  expect(await host.unfinished(stage.work)).toBeNull();
});

test("an unfinished session is offered although a newer one exists, if somebody has that one open", async () => {
  await using stage = new Stage();
  const other = await stage.store();
  const left = await session(other, stage.work, "killed");
  const newer = await session(other, stage.work, "completed");
  const host = await stage.host("person");
  expect(await host.unfinished(stage.work)).toBeNull();
  const open = await other.resume(newer);
  expect(await host.unfinished(stage.work)).toMatchObject({ id: left });
  await open.close();
  // One that is open itself is somebody's work.
  const same = await other.resume(left);
  expect(await host.unfinished(stage.work)).toBeNull();
  await same.close();
  await other.close();
});

test("--continue does not open an older session in silence: it says who has the latest one", async () => {
  await using stage = new Stage();
  const other = await stage.store();
  const older = await session(other, stage.work, "killed");
  const latest = await session(other, stage.work, "completed");
  const open = await other.resume(latest);
  const host = await stage.host("person");
  await expect(host.latest(stage.work)).rejects.toMatchObject({
    code: "SESSION_BUSY",
    facts: { session: latest, holder: { pid: process.pid } },
  });
  expect((await other.read(older)).holder).toBeNull();
  await open.close();
  await other.close();
  // Nobody has it open any more: an unfinished one comes first.
  expect((await host.latest(stage.work))!.id).toBe(older);
});

test("a session of a killed process that is open again is interrupted, not running: in lists as on the screen", async () => {
  await using stage = new Stage();
  const dying = await stage.store();
  const left = await dying.create<ModelMessage>({ dialect: "ai-sdk", app: APP, cwd: stage.work });
  await left.startTurn({ role: "user", content: "go" });
  // As SIGKILL leaves it: a copy of its files, taken in mid-turn.
  const copy = `${stage.folder}-copy`;
  cpSync(stage.folder, copy, { recursive: true });
  const host = new LocalHost(await openStore(copy, { app: APP, recordsToolStarts: true }), config, "person");
  const chat = await host.open(left.id, { here: true });
  expect(chat.state).toMatchObject({ status: "interrupted", account: { state: "interrupted" } });
  expect((await host.list()).sessions.map(({ status }) => status)).toEqual(["interrupted"]);
  await host.close();
  await dying.close();
  rmSync(copy, { recursive: true });
});

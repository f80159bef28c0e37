import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { RemoteHost } from "../../src/client/index.ts";
import type { Chat, ChatEvent, Host, PermissionAsk } from "../../src/contract/host.ts";
import { ServerStage } from "../server-stage.ts";

/** One host, as a screen or an editor has it. Each client may be another object. */
interface HostStage extends AsyncDisposable {
  /** A folder to work in. */
  readonly work: string;
  client(): Promise<Host>;
  /** The process that runs the agents ends in mid-turn, and starts again. Clients have to be made again too. */
  restart(): Promise<void>;
}

const config = { offlineDelayMs: 1 };

/** The agents run in this process, and all its screens share one host. */
async function local(): Promise<HostStage> {
  const stage = await ServerStage.start({ config });
  return {
    work: stage.work,
    client: async () => stage.host,
    restart: () => restarted(stage),
    [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose](),
  };
}

/** The agents run in a server, and each screen has a connection of its own. */
async function remote(): Promise<HostStage> {
  const stage = await ServerStage.start({ config });
  const hosts: Host[] = [];
  const leave = async (): Promise<void> => {
    for (const host of hosts.splice(0)) await host.close();
  };
  return {
    work: stage.work,
    client: async () => {
      const host = await RemoteHost.connect(stage.client);
      hosts.push(host);
      return host;
    },
    restart: async () => {
      await leave();
      await restarted(stage);
    },
    [Symbol.asyncDispose]: async () => {
      await leave();
      await stage[Symbol.asyncDispose]();
    },
  };
}

async function restarted(stage: ServerStage): Promise<void> {
  await stage.stop(0, AbortSignal.abort());
  await stage.start({ config });
}

const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    ({ code }) => code,
  );

/** The outcomes of the turns that end from now on. */
function outcomes(chat: Chat): string[] {
  const ended: string[] = [];
  chat.subscribe((event) => event.type === "turn.ended" && ended.push(event.outcome));
  return ended;
}

function until(chat: Chat, type: ChatEvent["type"]): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const unsubscribe = chat.subscribe((event) => {
    if (event.type !== type) return;
    unsubscribe();
    resolve();
  });
  return promise;
}

const STORY = "tell me a story of 2000 lines";
const write = (name: string): string => `write ${name}: one`;

describe.each([
  ["local", local],
  ["remote", remote],
] as const)("%s host", (_name, start) => {
  async function begin(): Promise<{ stage: HostStage; host: Host; chat: Chat } & AsyncDisposable> {
    const stage = await start();
    const host = await stage.client();
    const chat = await host.create({ cwd: stage.work });
    return { stage, host, chat, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() };
  }

  test("settled waits for the end of a turn that was started", async () => {
    await using it = await begin();
    const { chat } = it;
    const ended = outcomes(chat);
    for (let turns = 1; turns <= 5; turns++) {
      expect(await chat.prompt("hello")).toBe("started");
      await chat.settled();
      expect(chat.state).toMatchObject({ status: "idle", isBusy: false });
      expect(chat.state.items).toHaveLength(2 * turns);
      expect(ended).toHaveLength(turns);
    }
  });

  test("settled waits until a person is asked, and after the answer until the turn has ended", async () => {
    await using it = await begin();
    const { chat, stage } = it;
    const ended = outcomes(chat);
    for (const name of ["a", "b", "c", "d", "e"]) {
      await chat.prompt(write(name));
      await chat.settled();
      expect(chat.state).toMatchObject({ status: "waiting", isBusy: true, asks: [{ name: "write" }] });
      await chat.answer(chat.state.asks[0]!.call, "allow");
      expect(chat.state.asks).toEqual([]);
      await chat.settled();
      expect(ended.splice(0)).toEqual(["completed"]);
      expect(chat.state).toMatchObject({ status: "idle", isBusy: false });
      expect(existsSync(join(stage.work, name))).toBe(true);
    }
  });

  test("a denied call does not run, and its turn goes on", async () => {
    await using it = await begin();
    const { chat, stage } = it;
    await chat.prompt(write("a"));
    await chat.settled();
    await chat.answer(chat.state.asks[0]!.call, "deny", "not now");
    await chat.settled();
    expect(chat.state.status).toBe("idle");
    expect(chat.state.items.find(({ kind }) => kind === "call")).toMatchObject({ state: "denied" });
    expect(existsSync(join(stage.work, "a"))).toBe(false);
  });

  test("the first answer counts; a second one, and one to no question, are refused", async () => {
    await using it = await begin();
    const { chat } = it;
    await chat.prompt(write("a"));
    await chat.settled();
    const [ask] = chat.state.asks;
    await chat.answer(ask!.call, "deny");
    expect(await codeOf(chat.answer(ask!.call, "allow"))).toBe("ALREADY_ANSWERED");
    await chat.settled();
    expect(await codeOf(chat.answer(ask!.call, "allow"))).toBe("ALREADY_ANSWERED");
    expect(await codeOf(chat.answer("nothing", "allow"))).toBe("CALL_UNKNOWN");
  });

  test("a question outlives a restart, and its answer finishes the turn", async () => {
    await using it = await begin();
    const { stage, chat } = it;
    await chat.prompt(write("a"));
    await chat.settled();
    await stage.restart();
    const again = await (await stage.client()).open(chat.id);
    await again.settled();
    expect(again.state).toMatchObject({ isBusy: true, asks: [{ name: "write" }] });
    expect(await again.prompt("hello")).toBe("queued");
    expect(again.state.queue).toMatchObject([{ text: "hello" }]);
    await again.answer(again.state.asks[0]!.call, "allow");
    await again.settled();
    expect(again.state).toMatchObject({ status: "idle", queue: [] });
    expect(again.state.items.filter(({ kind }) => kind === "prompt")).toHaveLength(2);
    expect(existsSync(join(stage.work, "a"))).toBe(true);
  });

  test("stop resolves when the turn has ended; without one it does nothing", async () => {
    await using it = await begin();
    const { chat } = it;
    const ended = outcomes(chat);
    await chat.stop();
    const streamed = until(chat, "text");
    await chat.prompt(STORY);
    await streamed;
    expect(chat.state).toMatchObject({ status: "running", isBusy: true });
    await chat.stop();
    expect(chat.state).toMatchObject({ status: "idle", isBusy: false, live: null });
    expect(ended).toEqual(["aborted"]);
  });

  test("a prompt during a turn is queued, and settled waits for its turn too", async () => {
    await using it = await begin();
    const { chat, stage } = it;
    await chat.prompt(write("a"));
    await chat.settled();
    expect(await chat.prompt("hello")).toBe("queued");
    expect(await chat.prompt("and again")).toBe("queued");
    expect(chat.state.queue.map(({ text }) => text)).toEqual(["hello", "and again"]);
    const ended = outcomes(chat);
    await chat.answer(chat.state.asks[0]!.call, "allow");
    await chat.settled();
    expect(ended).toEqual(["completed", "completed", "completed"]);
    expect(chat.state).toMatchObject({ status: "idle", queue: [] });
    expect(existsSync(join(stage.work, "a"))).toBe(true);
  });

  test("a prompt behind the turn of another client: settled waits for its own turn", async () => {
    await using it = await begin();
    const { stage, chat } = it;
    const other = await (await stage.client()).open(chat.id);
    for (let round = 0; round < 5; round++) {
      expect(await other.prompt("tell me a story of 3 lines")).toBe("started");
      const ended = outcomes(chat);
      const outcome = await chat.prompt("hello");
      await chat.settled();
      expect(ended).toHaveLength(outcome === "queued" ? 2 : 1);
      expect(chat.state.items.at(-2)).toMatchObject({ kind: "prompt", text: "hello" });
      expect(chat.state).toMatchObject({ status: "idle", queue: [] });
      await other.settled();
    }
  });

  test("a stop leaves queued prompts; they can be withdrawn and started", async () => {
    await using it = await begin();
    const { chat } = it;
    await chat.prompt(STORY);
    await chat.prompt("first");
    await chat.prompt("second");
    await chat.stop();
    const [first] = chat.state.queue;
    await chat.withdraw(first!.id);
    expect(chat.state.queue.map(({ text }) => text)).toEqual(["second"]);
    expect(await codeOf(chat.withdraw(first!.id))).toBe("QUEUE_UNKNOWN");
    await chat.resumeQueue();
    await chat.settled();
    expect(chat.state).toMatchObject({ status: "idle", queue: [] });
    expect(chat.state.items.at(-2)).toMatchObject({ kind: "prompt", text: "second" });
    await chat.resumeQueue();
  });

  test("an interrupted turn is finished, and settled waits for its end", async () => {
    await using it = await begin();
    const { stage, chat } = it;
    expect(await codeOf(chat.finish())).toBe("NOTHING_TO_RESUME");
    await chat.prompt(STORY);
    expect(await codeOf(chat.finish())).toBe("TURN_OPEN");
    await stage.restart();
    const again = await (await stage.client()).open(chat.id);
    expect(again.state).toMatchObject({ status: "interrupted", isBusy: false });
    const ended = outcomes(again);
    await again.finish();
    expect(again.state.isBusy).toBe(true);
    await again.stop();
    expect(again.state.isBusy).toBe(false);
    expect(ended).toEqual(["aborted"]);
  });

  test("a turn that is left does not come back, and the next prompt starts at once", async () => {
    await using it = await begin();
    const { chat } = it;
    await chat.prompt(write("a"));
    await chat.settled();
    // The question is withdrawn, and the call keeps waiting.
    await chat.stop("close");
    expect(chat.state).toMatchObject({ isBusy: false, asks: [] });
    chat.leave();
    expect(await chat.prompt("hello")).toBe("started");
    await chat.settled();
    expect(chat.state).toMatchObject({ status: "idle", interruption: null });
    expect(chat.state.items.at(-2)).toMatchObject({ kind: "prompt", text: "hello" });
  });

  test("a change shows when its call resolves: title, model, mode, clear, undo, rewind", async () => {
    await using it = await begin();
    const { chat } = it;
    await chat.prompt("hello");
    await chat.settled();
    for (let round = 0; round < 5; round++) {
      await chat.rename(`title ${round}`);
      expect(chat.state.title).toBe(`title ${round}`);
    }
    expect(await codeOf(chat.setModel("no/such"))).toBe("MODEL_UNKNOWN");
    await chat.setModel("offline");
    await chat.clear();
    expect(chat.state).toMatchObject({ items: [], canUndo: true });
    await chat.undo();
    expect(chat.state).toMatchObject({ items: [{}, {}], canUndo: false });
    expect(await chat.rewind(chat.state.items[0]!.id)).toBe("hello");
    expect(chat.state.items).toEqual([]);
    expect(await codeOf(chat.rewind("nothing"))).toBe("MESSAGE_UNKNOWN");
    expect(await codeOf(chat.compact())).toBe("NOTHING_TO_COMPACT");
    chat.setMode("plan");
    await chat.prompt(write("a"));
    await chat.settled();
    expect(chat.state).toMatchObject({ mode: "plan", asks: [], status: "idle" });
    expect(existsSync(join(it.stage.work, "a"))).toBe(false);
  });

  test("a prompt with a key is one turn: for two clients at once, in another epoch, after a restart", async () => {
    await using it = await begin();
    const { chat, stage } = it;
    const other = await (await stage.client()).open(chat.id);
    const [first, second] = await Promise.all([chat.prompt("hello", [], "k1"), other.prompt("hello", [], "k1")]);
    expect([first, second]).toContain("started");
    await Promise.all([chat.settled(), other.settled()]);
    expect(await chat.prompt("hello", [], "k1")).toBe("started");
    expect(await codeOf(chat.prompt("something else", [], "k1"))).toBe("KEY_TAKEN");
    const asked = () => chat.state.items.filter(({ kind }) => kind === "prompt").length;
    expect(asked()).toBe(1);
    expect(chat.state).toMatchObject({ isBusy: false, queue: [] });
    await chat.clear();
    expect(await chat.prompt("hello", [], "k1")).toBe("started");
    expect(chat.state).toMatchObject({ items: [], isBusy: false });
    const queued = chat.prompt("tell me a story of 400 lines", [], "k2");
    await queued;
    expect(await other.prompt("hello again", [], "k3")).toBe("queued");
    expect(await chat.prompt("hello again", [], "k3")).toBe("queued");
    expect(chat.state.queue).toHaveLength(1);
    await stage.restart();
    const again = await (await stage.client()).open(chat.id);
    expect(again.state).toMatchObject({ status: "interrupted", queue: [{ text: "hello again" }] });
    expect(await again.prompt("tell me a story of 400 lines", [], "k2")).toBe("started");
    await again.settled();
    expect(await again.prompt("hello again", [], "k3")).toBe("started");
    expect(again.state).toMatchObject({ status: "idle", queue: [] });
    const prompts = again.state.items.filter((item) => item.kind === "prompt");
    expect(prompts.map(({ text }) => text)).toEqual(["tell me a story of 400 lines", "hello again"]);
  });

  test("compact resolves when the conversation is compacted, and keeps prompts that come meanwhile", async () => {
    await using it = await begin();
    const { chat } = it;
    for (const text of ["hello", "tell me a story of 3 lines"]) {
      await chat.prompt(text);
      await chat.settled();
    }
    const compacting = until(chat, "compacting");
    const compacted = chat.compact();
    await compacting;
    expect(chat.state.isBusy).toBe(true);
    const outcome = await chat.prompt("and again");
    await compacted;
    await chat.settled();
    expect(chat.state).toMatchObject({ status: "idle", isCompacting: false, queue: [] });
    expect(outcome).toBe("queued");
    expect(chat.state.items.at(-2)).toMatchObject({ kind: "prompt", text: "and again" });
  });

  test("sessions are listed, found, shown, opened and forked; unknown ones are refused with the same code", async () => {
    await using it = await begin();
    const { stage, host, chat } = it;
    await chat.prompt("hello there");
    await chat.settled();
    expect((await host.list({ cwd: stage.work })).sessions).toMatchObject([{ id: chat.id, turns: 1 }]);
    expect(await Array.fromAsync(host.search("hello"))).toMatchObject([{ session: chat.id }, { session: chat.id }]);
    expect(await Array.fromAsync(host.search(" "))).toEqual([]);
    expect((await host.peek(chat.id)).map(({ kind }) => kind)).toEqual(["prompt", "answer"]);
    expect(await host.prompts(stage.work, "")).toEqual(["hello there"]);
    expect(await host.open(chat.id)).toBe(chat);
    expect(await host.latest(stage.work)).toBe(chat);
    expect(await host.unfinished(stage.work)).toBe(null);
    const folder = join(stage.work, "fork");
    mkdirSync(folder);
    const fork = await host.fork(chat.id, { cwd: folder });
    expect(fork.state).toMatchObject({ cwd: folder, items: [{}, {}] });
    expect(await host.latest(join(stage.work, "nothing"))).toBe(null);
    const id = "01a1ec8c-1e1b-754d-b507-d3dc90b3fdc3";
    for (const work of [() => host.open(id), () => host.fork(id), () => host.peek(id)])
      expect(await codeOf(work())).toBe("SESSION_NOT_FOUND");
  });

  test("two clients see the same: one is asked, the other one answers", async () => {
    await using it = await begin();
    const { stage, chat } = it;
    const other = await (await stage.client()).open(chat.id);
    const ended = outcomes(chat);
    await chat.prompt(write("a"));
    await chat.settled();
    await expect.poll(() => other.state.asks.length).toBe(1);
    await other.answer(chat.state.asks[0]!.call, "allow");
    await other.settled();
    await expect.poll(() => ended).toEqual(["completed"]);
    await expect.poll(() => chat.state).toEqual(other.state);
  });

  test("two questions in one turn: settled waits for each of them, and then for the end", async () => {
    await using it = await begin();
    const { chat, stage } = it;
    const ended = outcomes(chat);
    await chat.prompt("1. write a: one 2. write b: two");
    for (const name of ["a", "b"]) {
      await chat.settled();
      expect(chat.state.asks).toMatchObject([{ name: "write", input: { path: name } }]);
      expect(ended).toEqual([]);
      await chat.answer(chat.state.asks[0]!.call, "allow");
      expect(chat.state.asks).toEqual([]);
    }
    await chat.settled();
    expect(ended).toEqual(["completed"]);
    expect(existsSync(join(stage.work, "b"))).toBe(true);
  });

  test("sub-agents ask through their chat, and an answer for always is not asked for again", async () => {
    await using it = await begin();
    const { chat, stage } = it;
    const ended = outcomes(chat);
    await chat.prompt(`delegate in parallel:\n- ${write("a")}\n- ${write("a")}`);
    const asked: [string, unknown][] = [];
    for (await chat.settled(); chat.state.asks.length > 0; await chat.settled()) {
      const [{ call, name, input }] = chat.state.asks as [PermissionAsk];
      asked.push([name, input]);
      await chat.answer(call, "always");
      expect(chat.state.asks.some((ask) => ask.call === call)).toBe(false);
    }
    expect(asked.filter(([name]) => name === "write")).toHaveLength(1);
    expect(ended).toEqual(["completed"]);
    expect(chat.state).toMatchObject({ status: "idle", isBusy: false });
    expect(existsSync(join(stage.work, "a"))).toBe(true);
  });

  test("a turn that fails: settled waits for its end, the failure is shown, and the next prompt replaces it", async () => {
    await using it = await begin();
    const { chat } = it;
    const ended = outcomes(chat);
    await chat.prompt("fail: 400");
    await chat.settled();
    expect(ended).toEqual(["failed"]);
    expect(chat.state).toMatchObject({ isBusy: false, failure: { code: expect.stringMatching(/^MODEL_/) } });
    expect(await chat.prompt("hello")).toBe("started");
    await chat.settled();
    expect(chat.state).toMatchObject({ status: "idle", failure: null, interruption: null });
  });

  test("an image goes with its prompt, also through the queue", async () => {
    await using it = await begin();
    const { chat } = it;
    const image = { name: "dot.png", mediaType: "image/png", data: "iVBORw0KGgo=" };
    await chat.prompt(write("a"));
    await chat.settled();
    expect(await chat.prompt("look", [image])).toBe("queued");
    expect(chat.state.queue).toMatchObject([{ text: "look", images: [image] }]);
    await chat.answer(chat.state.asks[0]!.call, "deny");
    await chat.settled();
    expect(chat.state.items.filter(({ kind }) => kind === "prompt").at(-1)).toMatchObject({ text: "look" });
  });

  test("a compaction that is stopped rejects, and changes nothing", async () => {
    await using it = await begin();
    const { chat } = it;
    for (const text of ["hello", "tell me a story of 300 lines"]) {
      await chat.prompt(text);
      await chat.settled();
    }
    const { items } = chat.state;
    const compacting = until(chat, "compacting");
    const compacted = codeOf(chat.compact());
    await compacting;
    await chat.stop();
    expect(await compacted).toBe("STOPPED");
    expect(chat.state).toMatchObject({ isBusy: false, isCompacting: false });
    expect(chat.state.items).toEqual(items);
  });

  test("after a restart the interrupted session is the latest and the unfinished one; labels find it", async () => {
    await using stage = await start();
    const host = await stage.client();
    const chat = await host.create({ cwd: stage.work, title: "one", labels: { team: "a=b" } });
    await chat.prompt(STORY);
    await stage.restart();
    const again = await stage.client();
    expect(await again.unfinished(stage.work)).toMatchObject({
      id: chat.id,
      title: "one",
      account: { state: "interrupted" },
    });
    expect((await again.list({ labels: { team: "a=b" } })).sessions).toMatchObject([{ id: chat.id }]);
    expect((await again.list({ labels: { team: "a" } })).sessions).toEqual([]);
    const latest = await again.latest(stage.work);
    expect(latest).toMatchObject({ id: chat.id, state: { status: "interrupted", account: { state: "interrupted" } } });
    latest!.leave();
    await latest!.rename("two");
    expect(latest!.state).toMatchObject({ title: "two", interruption: null, status: "idle" });
  });

  test("a session in which nothing happened is gone when it is closed, unless it is kept", async () => {
    await using it = await begin();
    const { stage, host, chat } = it;
    const kept = await host.create({ cwd: stage.work, keep: true });
    await chat.close();
    await kept.close();
    await stage.restart();
    const { sessions } = await (await stage.client()).list({ cwd: stage.work, empty: true });
    expect(sessions.map(({ id }) => id)).toEqual([kept.id]);
  });

  test("a listener that throws does not affect the others; one that has left hears nothing", async () => {
    await using it = await begin();
    const { chat } = it;
    const heard: string[] = [];
    chat.subscribe(({ type }) => {
      if (type === "turn.ended") throw new Error("of a listener in a test");
    });
    const leave = chat.subscribe(() => heard.push("left"));
    leave();
    const ended = outcomes(chat);
    await chat.prompt("hello");
    await chat.settled();
    expect(ended).toEqual(["completed"]);
    expect(heard).toEqual([]);
  });

  test("a closed chat is settled, and takes nothing any more", async () => {
    await using it = await begin();
    const { chat } = it;
    await chat.prompt(STORY);
    const settled = chat.settled();
    await chat.close();
    await settled;
    await chat.close();
    expect(await codeOf(chat.prompt("hello"))).toBe("SESSION_CLOSED");
    expect(await codeOf(chat.rename("other"))).toBe("SESSION_CLOSED");
  });
});

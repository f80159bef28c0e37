import { setImmediate as turnOfLoop } from "node:timers/promises";
import { type ToolSet, tool } from "ai";
import { openStore, type Store } from "holdfast";
import { Memory, openMemoryStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { expect, test, vi } from "vitest";
import { place } from "../../../../../holdfast/test/place.ts";
import { type ChatState, type DurableChatOptions, durableChat } from "../../../../src/ai-sdk/index.ts";
import { LazyDisk } from "../../../lazy-disk.ts";
import { BASE, chunksOf, held, nothing, Server, says, wordsIn } from "../../../memory-chat.ts";
import { call, scripted, text } from "../../../scripted-model.ts";

const stream = ({ chat, id: own }: Server, id = own): Promise<Response> =>
  chat.GET(new Request(`${BASE}/${id}/stream`));

const asks: ToolSet = { send: tool({ inputSchema: nothing, needsApproval: true, execute: async () => "Sent." }) };

test("a page that was told of a running answer gets it, also if it ends before the page asks for the stream", async () => {
  const slow = held("One ", "two.");
  await using server = await Server.with([slow.step]);
  const response = await server.post(says("m", "Count."));
  await slow.said;
  expect((await server.state()).status).toBe("running");
  slow.release();
  await response.text();
  await server.chat.idle();
  const late = await stream(server);
  expect(late.status).toBe(200);
  expect(wordsIn(await chunksOf(late))).toBe("One two.");
  expect((await server.state()).status, "a page that loads now knows that nothing runs").toBe("ready");
  expect((await stream(server)).status).toBe(204);
});

/** The store of another server. `then` happens after that server has called this function for the first time. */
function elsewhere(store: Store, name: "once" | "read", then: () => Promise<unknown>): Store {
  let isFirst = true;
  return new Proxy(store, {
    get: (_, key) => {
      const value = Reflect.get(store, key) as unknown;
      if (typeof value !== "function") return value;
      if (key !== name || !isFirst) return value.bind(store);
      return async (...all: unknown[]) => {
        isFirst = false;
        const called = value.apply(store, all) as Promise<unknown>;
        await called.catch(() => undefined);
        await then();
        return called;
      };
    },
  });
}

test("a retry on another server at the same instant joins the answer that the first server makes", async () => {
  const slow = held("One ", "two.");
  await using server = await Server.with([slow.step]);
  let first: Response | undefined;
  const other = new Server(
    elsewhere(server.store, "once", async () => {
      first = await server.post(says("m", "Count."));
      await slow.said;
    }),
    [],
  );
  const retried = await other.post({ id: server.id, ...says("m", "Count.") });
  expect([retried.status, retried.headers.get("x-holdfast-repeated")]).toEqual([200, "true"]);
  slow.release();
  expect(wordsIn(await chunksOf(first!))).toBe("One two.");
  expect(wordsIn(await chunksOf(retried))).toBe("One two.");
  expect(other.model.prompts).toEqual([]);
});

test("a retry on another server leaves a turn that waits for a person as it is", async () => {
  await using server = await Server.with([[text("May I?"), call("c1", "send")]], asks);
  const other = new Server(
    elsewhere(server.store, "once", async () => {
      await (await server.post(says("m", "Send it."))).text();
      await server.chat.idle();
    }),
    [[text("Asked again.")]],
    asks,
  );
  const retried = await other.post({ id: server.id, ...says("m", "Send it.") });
  expect(wordsIn(await chunksOf(retried))).toBe("May I?");
  await other.chat.idle();
  expect(other.model.prompts).toEqual([]);
  expect((await server.state()).status).toBe("waiting");
});

/** A chat that waits for an approval, and the message that approves it. */
async function asked(server: Server): Promise<object> {
  await (await server.post(says("m", "Send it."))).text();
  await server.chat.idle();
  const message = (await server.state()).messages.at(-1)!;
  const parts = message.parts.map((part) =>
    "approval" in part && part.approval
      ? { ...part, state: "approval-responded", approval: { ...part.approval, approved: true } }
      : part,
  );
  return { id: server.id, message: { ...message, parts } };
}

test("an approval that is sent again to another server at the same instant joins the answer", async () => {
  const slow = held("One ", "two.");
  await using server = await Server.with([[text("May I?"), call("c1", "send")], slow.step], asks);
  const approval = await asked(server);
  let first: Response | undefined;
  const then = async (): Promise<void> => {
    first = await server.post(approval);
    await slow.said;
  };
  const other = new Server(elsewhere(server.store, "read", then), [], asks);
  const repeated = await other.post(approval);
  expect([repeated.status, repeated.headers.get("x-holdfast-repeated")]).toEqual([200, "true"]);
  slow.release();
  expect(wordsIn(await chunksOf(first!))).toBe("One two.");
  expect(wordsIn(await chunksOf(repeated))).toBe("One two.");
});

test("an approval that is sent again to another server gets the answer that is complete by then", async () => {
  await using server = await Server.with([[text("May I?"), call("c1", "send")], [text("Sent.")]], asks);
  const approval = await asked(server);
  const then = async (): Promise<void> => {
    await (await server.post(approval)).text();
    await server.chat.idle();
  };
  const other = new Server(elsewhere(server.store, "read", then), [], asks);
  expect(wordsIn(await chunksOf(await other.post(approval)))).toBe("Sent.");
  expect(other.model.prompts).toEqual([]);
});

test("a page that says to go on, at a server where another one already does, is told that it goes on", async () => {
  const slow = held("One ", "two.");
  const down = (): never => {
    throw new Error("the provider is down");
  };
  await using server = await Server.with([down, slow.step], {}, { onFailure: () => undefined });
  await (await server.post(says("m", "Count."))).text();
  await server.chat.idle();
  expect((await server.post({ trigger: "continue" })).status).toBe(202);
  await slow.said;
  const other = new Server(server.store, []);
  expect((await other.post({ id: server.id, trigger: "continue" })).status).toBe(202);
  slow.release();
  await server.chat.idle();
  expect((await server.state()).status).toBe("ready");
});

test("a page that loads between two turns is told that the chat runs, not that the server was killed", async () => {
  const [one, two] = [held("One.", ""), held("Two.", "")];
  const store = await openStore("memory:", { recordsToolStarts: true });
  await using server = new Server(store, [one.step, two.step]);
  const first = await server.post(says("m1", "First."));
  await one.said;
  const second = server.post(says("m2", "Second."));
  await expect.poll(async () => (await server.state()).messages.at(-1)?.id).toBe("m2");
  const session = store.live(server.chat.sessionId(server.id))!;
  let between: Promise<[{ status: string }, Response]> | undefined;
  const { startTurn } = session;
  session.startTurn = async (...all) => {
    between = Promise.all([server.state(), stream(server)]);
    // Time enough to answer without waiting for the turn.
    for (let turns = 0; turns < 50; turns++) await turnOfLoop();
    return startTurn.apply(session, all);
  };
  one.release();
  await first.text();
  await two.said;
  two.release();
  await (await second).text();
  await server.chat.idle();
  const [{ status }, response] = await between!;
  expect(status).toBe("running");
  expect(wordsIn(await chunksOf(response)), "the stream of the next answer").toBe("Two.");
});

test("onCreate that fails is called again before the first turn", async () => {
  const titles: string[] = [];
  let isDown = true;
  await using server = await Server.with(
    [[text("Hello.")], [text("Again.")]],
    {},
    {
      onFailure: () => undefined,
      onCreate: async ({ id, session }) => {
        if (isDown) throw new Error("the index is down");
        await session.rename(`Chat ${id}`);
        titles.push(id);
      },
    },
  );
  expect((await server.post(says("m1", "Hi."))).status).toBe(500);
  isDown = false;
  expect(wordsIn(await chunksOf(await server.post(says("m1", "Hi."))))).toBe("Hello.");
  expect(titles, "it was told before the turn began").toEqual([server.id]);
  await server.chat.idle();
  expect(wordsIn(await chunksOf(await server.post(says("m2", "Hi again."))))).toBe("Again.");
  expect(titles, "once").toEqual([server.id]);
});

test("settings that cannot be made fail their request alone: the chat can be used as soon as they can", async () => {
  const store = await openStore("memory:", { recordsToolStarts: true });
  const model = scripted([text("Hello.")]);
  let isDown = true;
  const settings = () => {
    if (isDown) throw new Error("the list of tools is down");
    return { model };
  };
  const chat = durableChat(store, settings, { onFailure: () => undefined });
  const post = (): Promise<Response> => {
    const body = JSON.stringify({ id: "c", ...says("m", "Hi.") });
    return chat.POST(new Request(BASE, { method: "POST", headers: { "content-type": "application/json" }, body }));
  };
  expect((await post()).status).toBe(500);
  expect(await store.holder(chat.sessionId("c"))).toBe(null);
  isDown = false;
  expect(wordsIn(await chunksOf(await post()))).toBe("Hello.");
  await chat.idle();
  await store.close();
});

test("a known prompt gets its own answer, also while another server answers the next one", async () => {
  const slow = held("Two ", "now.");
  await using server = await Server.with([[text("One.")], slow.step]);
  await (await server.post(says("m1", "First."))).text();
  await server.chat.idle();
  const second = await server.post(says("m2", "Second."));
  await slow.said;
  const other = new Server(server.store, []);
  const known = await other.post({ id: server.id, ...says("m1", "First.") });
  expect(known.headers.get("x-holdfast-repeated")).toBe("true");
  expect(wordsIn(await chunksOf(known))).toBe("One.");
  slow.release();
  expect(second.headers.get("x-holdfast-repeated")).toBe(null);
  expect(wordsIn(await chunksOf(second))).toBe("Two now.");
});

test("what another server is answering is neither stopped nor decided here, and the page is told", async () => {
  const slow = held("Two ", "now.");
  await using server = await Server.with([slow.step]);
  const answer = await server.post(says("m", "Count."));
  await slow.said;
  const other = new Server(server.store, []);
  const stopped = await other.chat.DELETE(new Request(`${BASE}/${server.id}`, { method: "DELETE" }));
  expect([stopped.status, stopped.headers.get("x-holdfast-code"), stopped.headers.get("retry-after")]).toEqual([
    ...[409, "BUSY", "1"],
  ]);
  slow.release();
  expect(wordsIn(await chunksOf(answer))).toBe("Two now.");
});

test("a promised answer is kept for a minute, and for the page that was told last", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  using _ = { [Symbol.dispose]: () => vi.useRealTimers() };
  const [one, two] = [held("One.", ""), held("Two.", "")];
  await using server = await Server.with([one.step, two.step]);
  const run = async (id: string, { said, release }: typeof one): Promise<void> => {
    const response = await server.post(says(id, "Go."));
    await said;
    expect((await server.state()).status).toBe("running");
    release();
    await response.text();
    await server.chat.idle();
  };
  await run("m1", one);
  await vi.advanceTimersByTimeAsync(59_000);
  expect(wordsIn(await chunksOf(await stream(server)))).toBe("One.");
  await run("m2", two);
  await vi.advanceTimersByTimeAsync(2000);
  expect(wordsIn(await chunksOf(await stream(server))), "the first minute is over, the second is not").toBe("Two.");
  await vi.advanceTimersByTimeAsync(60_000);
  expect((await stream(server)).status).toBe(204);
});

test("idle waits for every chat, and each turn has the name of its model", async () => {
  const [one, two] = [held("One.", ""), held("Two.", "")];
  await using server = await Server.with([one.step, two.step]);
  await server.post(says("m1", "Go."));
  await one.said;
  await server.post({ id: "other", ...says("m2", "Go.") });
  await two.said;
  let isIdle = false;
  const idle = server.chat.idle().then(() => {
    isIdle = true;
  });
  two.release();
  await expect.poll(async () => (await server.state("other")).status).toBe("ready");
  for (let turns = 0; turns < 50; turns++) await turnOfLoop();
  expect(isIdle).toBe(false);
  one.release();
  await idle;
  for (const id of [server.id, "other"]) {
    const { entries, running } = await server.store.read(server.chat.sessionId(id));
    expect([entries.at(-1)!.model, running]).toEqual(["scripted-1", null]);
  }
});

test("an answer to a message that is none of this chat is refused", async () => {
  await using server = await Server.with([[call("c1", "send")]], asks);
  const { message } = (await asked(server)) as { message: { id: string } };
  for (const id of ["x.1", `${message.id.split(".")[0]}.one`, `${message.id.split(".")[0]}x1`, "1"])
    expect([id, (await server.post({ message: { ...message, id } })).status]).toEqual([id, 400]);
  const unknown = await server.post({ id: "unknown", message });
  expect([unknown.status, unknown.headers.get("x-holdfast-code")]).toEqual([404, "NOT_FOUND"]);
  const past = await server.post({ message: { ...message, id: `${message.id.split(".")[0]}.7` } });
  expect([past.status, past.headers.get("x-holdfast-code")]).toEqual([409, "NOT_WAITING"]);
  expect((await server.state()).status).toBe("waiting");
});

test("a server that was too late with an answer leaves the session free", async () => {
  using folder = place();
  const lazy = new LazyDisk();
  await using store = await lazy.open(folder.path);
  const server = new Server(store, [[text("May I?"), call("c1", "send")], [text("Sent.")]], asks);
  const approval = await asked(server);
  const then = async (): Promise<void> => {
    await (await server.post(approval)).text();
    await server.chat.idle();
  };
  const other = new Server(elsewhere(store, "read", then), [], asks);
  const repeated = await other.post(approval);
  expect([repeated.status, await store.holder(server.chat.sessionId(server.id))]).toEqual([200, null]);
  expect(wordsIn(await chunksOf(repeated))).toBe("Sent.");
});

test("odd ids are taken or refused, and never fail", async () => {
  const failures: unknown[] = [];
  const ids = ["\0", "a\nb", " ", "é".repeat(200), "__proto__", "\u202e", "😀".repeat(100), ".."];
  const answers = Array.from({ length: ids.length * 2 }, () => [text("Yes.")]);
  await using server = await Server.with(answers, {}, { onFailure: (error) => failures.push(error) });
  for (const id of ids) {
    for (const body of [says(id, "Hi."), { id, ...says("m", "Hi.") }]) {
      const response = await server.post(body);
      await response.text();
      expect([id, response.status]).toEqual([id, expect.toSatisfy((status) => status === 200 || status === 400)]);
    }
  }
  await server.chat.idle();
  expect(failures).toEqual([]);
});

test("a message cannot take the id of an answer", async () => {
  await using server = await Server.with([[text("Yes.")]]);
  const taken = await server.post(says(`${server.chat.sessionId(server.id)}.1`, "Hi."));
  expect(taken.status).toBe(400);
});

test("a prompt whose turn cannot begin ends with an error, and the page can go on later", async () => {
  const one = held("One.", "");
  const failures: unknown[] = [];
  const onFailure = (error: unknown): unknown => failures.push(error);
  await using server = await Server.with([one.step, [text("Two.")]], {}, { onFailure });
  const first = await server.post(says("m1", "First."));
  await one.said;
  const second = server.post(says("m2", "Second."));
  await expect.poll(async () => (await server.state()).messages.at(-1)?.id).toBe("m2");
  const session = server.store.live(server.chat.sessionId(server.id))!;
  session.startTurn = () => Promise.reject(new Error("the disk is full"));
  one.release();
  await first.text();
  expect((await chunksOf(await second)).map(({ type }) => type)).toEqual(["error"]);
  expect(failures).toHaveLength(1);
  expect((await server.state()).status).toBe("interrupted");
  expect(wordsIn(await chunksOf(await server.post(says("m2", "Second."))))).toBe("Two.");
});

test("a page that follows another server learns that this server was shut down in mid-answer", async () => {
  const slow = held("One ", "two.");
  using folder = place();
  await using here = await openStore(folder.path, { recordsToolStarts: true });
  await using there = await openStore(folder.path, { recordsToolStarts: true });
  const server = new Server(here, [slow.step]);
  await server.post(says("m", "Count."));
  await slow.said;
  const other = new Server(there, []);
  const ended = chunksOf(await stream(other, server.id));
  await here.close();
  expect((await ended).at(-1)!.type).toBe("error");
  expect((await other.state(server.id)).status).toBe("interrupted");
  slow.release();
});

test("a page that follows another server through a long silence costs no reading of the conversation", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  using _ = { [Symbol.dispose]: () => vi.useRealTimers() };
  const memory = new Memory();
  const open = (): Promise<Store> =>
    openStoreWith((options) => openMemoryStore({ ...options, memory }), { recordsToolStarts: true });
  await using here = await open();
  await using there = await open();
  const slow = held("One ", "two.");
  const server = new Server(here, [slow.step], {}, { onFailure: () => undefined });
  await server.post(says("m", "Count."));
  await slow.said;
  await here.live(server.chat.sessionId(server.id))!.flush();
  const read = vi.spyOn(there, "read");
  const other = new Server(there, []);
  const ended = chunksOf(await stream(other, server.id));
  for (let seconds = 0; seconds < 30; seconds++) await vi.advanceTimersByTimeAsync(1000);
  expect(read.mock.calls.length).toBeLessThan(4);

  memory.crash(server.chat.sessionId(server.id));
  let isEnded = false;
  void ended.then(() => {
    isEnded = true;
  });
  while (!isEnded) await vi.advanceTimersByTimeAsync(1000);
  expect((await ended).at(-1)!.type, "its server died").toBe("error");
  slow.release();
});

test("handlers behind a base path, or mounted elsewhere: every address of the chat is found there", async () => {
  const mounts: readonly (readonly [at: string, options: DurableChatOptions])[] = [
    ["/api/chat", {}],
    ["/app/api/chat", {}],
    ["/chat/v1/api/chat", {}],
    ["/api/v1/chat", { path: "/api/v1/chat" }],
    ["/app/api/v1/chat", { path: "api/v1/chat/" }],
    ["/über/uns%20alle/chat", { path: "/uns alle/chat" }],
    ["", { path: "/" }],
  ];
  for (const [at, options] of mounts) {
    const slow = held("One ", "two.");
    await using server = await Server.with([slow.step, [text("Again.")]], {}, options);
    const url = `http://localhost${at}`;
    const headers = { "content-type": "application/json" };
    const body = JSON.stringify({ id: server.id, ...says("m", "Count.") });
    const asked = (path: string, init: RequestInit = {}): Promise<Response> =>
      server.chat.handle(new Request(`${url}${path}`, init));
    expect((await asked("", { method: "POST", headers, body })).status, at).toBe(200);
    await slow.said;
    const state = (await (await asked(`/${server.id}`)).json()) as ChatState;
    expect([state.status, state.messages[0]?.id], at).toEqual(["running", "m"]);
    expect((await asked(`/${server.id}/stream`)).status, at).toBe(200);
    expect((await asked(`/${server.id}`, { method: "DELETE" })).status, at).toBe(204);
    slow.release();
    await server.chat.idle();
    const goOn = JSON.stringify({ trigger: "continue" });
    expect((await asked(`/${server.id}`, { method: "POST", headers, body: goOn })).status, at).toBe(202);
    await server.chat.idle();
  }
});

test("an address at which no handler is mounted is not one of a chat, and the answer says where they are", async () => {
  await using server = await Server.with([]);
  for (const path of [
    "/",
    "/api/v1/chat",
    "/api/v1/chat/c",
    "/xapi/chat/c",
    "/api/chats/c",
    "/api/chat/c/d",
    "/api/chat/c/stream/e",
    "/api/chat/c/api/chat/d",
  ]) {
    const response = await server.chat.handle(new Request(`http://localhost${path}`));
    expect([path, response.status]).toEqual([path, 404]);
    expect(await response.text()).toContain("/api/chat");
  }
});

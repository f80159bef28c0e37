import { type ToolSet, tool } from "ai";
import { openStore, type Store } from "holdfast";
import { Memory, openMemoryStore, openStoreWith } from "holdfast/store";
import { expect, test, vi } from "vitest";
import { place } from "../../../holdfast/test/place.ts";
import { BASE, chunksOf, held, nothing, Server, says, wordsIn } from "../memory-chat.ts";
import { call, text } from "../scripted-model.ts";

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
  session.startTurn = (...all) => {
    between = Promise.all([server.state(), stream(server)]);
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
  await server.chat.idle();
  expect(wordsIn(await chunksOf(await server.post(says("m2", "Hi again."))))).toBe("Again.");
  expect(titles).toEqual([server.id]);
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

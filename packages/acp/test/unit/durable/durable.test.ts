import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { agent, methods } from "@agentclientprotocol/sdk";
import { AgentSideConnection as OldConnection } from "acp-sdk-0.4";
import { HoldfastError, openStore, type Store } from "holdfast";
import { expect, test } from "vitest";
import { type DurableOptions, type DurableStream, durable, type RestoredSession } from "../../../src/index.ts";
import { connectClient, pipe, shown, type TestClient } from "../../in-memory.ts";

const { session } = methods.agent;
const said = (text: string) => [{ type: "text" as const, text }];
const CWD = "/work";

interface Living {
  readonly client: TestClient;
  readonly stream: DurableStream<unknown>;
  /** The prompts that reached the agent. */
  readonly heard: string[];
  readonly cancelled: string[];
  readonly restored: [string, RestoredSession][];
  readonly sent: readonly unknown[];
}

interface AgentOptions extends DurableOptions {
  readonly capabilities?: object;
  readonly answer?: () => string | null;
  readonly ids?: () => string;
  readonly onPrompt?: (prompt: string, act: Act) => Promise<void>;
}

interface Act {
  update(update: object): Promise<void>;
  ask(toolCallId: string): Promise<unknown>;
  request(method: string, params: object): Promise<unknown>;
}

/** An agent on the current SDK that cannot load sessions, behind `durable`. */
async function start(store: Store, options: AgentOptions = {}): Promise<Living> {
  const { capabilities = {}, answer, ids = () => crypto.randomUUID(), onPrompt, ...rest } = options;
  const ends = pipe();
  const heard: string[] = [];
  const cancelled: string[] = [];
  const restored: [string, RestoredSession][] = [];
  const restore: DurableOptions["restore"] = (id, given) => void restored.push([id, given]);
  const stream = durable(ends.agent, store, { app: "test", log: () => undefined, restore, ...rest });
  agent({ name: "test" })
    .onRequest(methods.agent.initialize, () => ({ protocolVersion: 1, agentCapabilities: capabilities }))
    .onRequest(session.new, () => ({ sessionId: ids() }))
    .onRequest(session.load, () => ({}))
    .onNotification(session.cancel, ({ params }) => void cancelled.push(params.sessionId))
    .onRequest(session.prompt, async ({ params, client }) => {
      const words = params.prompt.map((block) => (block.type === "text" ? block.text : "")).join("|");
      heard.push(words);
      const { sessionId } = params;
      const update = (one: object) => client.notify(methods.client.session.update, { sessionId, update: one } as never);
      await onPrompt?.(words, {
        update,
        ask: (toolCallId) =>
          client.request(methods.client.session.requestPermission, {
            sessionId,
            toolCall: { toolCallId, title: "Tool", rawInput: { n: 1 } },
            options: [
              { optionId: "yes", name: "Yes", kind: "allow_once" },
              { optionId: "no", name: "No", kind: "reject_once" },
            ],
          }),
        request: (method, params) => client.request(method, { sessionId, ...params }),
      });
      await update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: `heard ${words}` } });
      return { stopReason: "end_turn" };
    })
    .connect(stream)
    .closed.catch(() => undefined);
  const client = await connectClient(ends.client, answer);
  return { client, stream, heard, cancelled, restored, sent: ends.sent };
}

const forever = () => new Promise<never>(() => undefined);

const memory = (): Promise<Store> => openStore("memory:");

function folder(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), "holdfast-durable-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

const until = async (isTrue: () => boolean | Promise<boolean>): Promise<void> => {
  for (let turns = 0; !(await isTrue()); turns++) {
    if (turns > 10_000) throw new Error("it never came");
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
};

test("capabilities are amended: what the agent cannot do, the decorator answers", async () => {
  await using store = await memory();
  const { client } = await start(store, { capabilities: { promptCapabilities: { image: true } } });
  expect(client.capabilities.agentCapabilities).toMatchObject({
    loadSession: true,
    promptCapabilities: { image: true },
    sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
  });
});

test("a session is loaded: the agent gets the conversation, the client sees it before the answer, nothing is sent twice", async () => {
  await using store = await memory();
  const first = await start(store);
  const { sessionId } = await first.client.agent.request(session.new, { cwd: CWD, mcpServers: [] });
  await first.client.agent.request(session.prompt, { sessionId, prompt: said("one") });
  await first.client.agent.request(session.prompt, { sessionId, prompt: said("two") });
  await first.stream.checkpoint(sessionId, { response: "r2" });
  await first.client.agent.request(session.close, { sessionId });

  const second = await start(store);
  const mcpServers = [{ name: "files", command: "x", args: [], env: [{ name: "KEY", value: "s3cret" }] }];
  await second.client.agent.request(session.load, { sessionId, cwd: CWD, mcpServers });
  expect(shown(second.client.updates)).toEqual([
    "user_message_chunk one",
    "agent_message_chunk heard one",
    "user_message_chunk two",
    "agent_message_chunk heard two",
  ]);
  const [[id, given] = ["", null]] = second.restored;
  expect(id).toBe(sessionId);
  expect(given).toMatchObject({ interruption: null, checkpoint: { response: "r2" }, cwd: CWD, mcpServers });
  expect(shown(given!.history)).toEqual(shown(second.client.updates));
  expect(given!.transcript).toContain("> User: one");
  expect(second.heard).toEqual([]);
  const answerAt = second.sent.findIndex((one) => "result" in (one as object) && (one as { id: unknown }).id === 1);
  expect(answerAt).toBe(second.sent.length - 1);

  await second.client.agent.request(session.prompt, { sessionId, prompt: said("three") });
  expect(second.heard).toEqual(["three"]);
  // Loaded again while it is open: the agent still knows it.
  await second.client.agent.request(session.load, { sessionId, cwd: CWD, mcpServers: [] });
  expect(second.restored).toHaveLength(1);
});

test("resume restores without a replay; list, close and delete need nothing of the agent", async () => {
  await using store = await memory();
  const first = await start(store);
  const { sessionId } = await first.client.agent.request(session.new, { cwd: CWD, mcpServers: [] });
  // Without a prompt it can be loaded too.
  await first.client.agent.request(session.close, { sessionId });
  await until(() => first.cancelled.length > 0);
  expect(first.cancelled).toEqual([sessionId]);
  await first.client.agent.request(session.resume, { sessionId, cwd: CWD, mcpServers: [] });
  expect(first.client.updates).toEqual([]);
  expect(first.restored).toHaveLength(1);
  await first.client.agent.request(session.prompt, { sessionId, prompt: said("one") });
  const { sessions } = await first.client.agent.request(session.list, {});
  expect(sessions).toMatchObject([{ sessionId, cwd: CWD, title: "one" }]);
  await first.client.agent.request(session.delete, { sessionId });
  expect((await first.client.agent.request(session.list, {})).sessions).toEqual([]);
  await expect(first.client.agent.request(session.load, { sessionId, cwd: CWD, mcpServers: [] })).rejects.toMatchObject(
    {
      code: -32002,
    },
  );
  await expect(first.client.agent.request(session.prompt, { sessionId, prompt: said("x") })).rejects.toThrow(
    "not open",
  );
  expect(first.heard).toEqual(["one"]);
});

test.each([
  ["waits for permission", null, "awaiting", "failed: Interrupted. Waiting for approval, has not run."],
  ["was approved and runs", "yes", "unrecorded", "failed: Interrupted. May have run: its start was not recorded."],
  ["was refused", "no", "awaiting", "failed: Interrupted. Waiting for approval, has not run."],
] as const)("cut off while a call that only its permission announced %s", async (_, choice, state, words) => {
  using here = folder();
  const store = await openStore(here.path, { durability: "process" });
  let isAsked = false;
  const first = await start(store, {
    answer: () => {
      isAsked = true;
      return choice;
    },
    onPrompt: async (_words, { ask }) => {
      await ask("call");
      await forever();
    },
  });
  const { sessionId } = await first.client.agent.request(session.new, { cwd: CWD, mcpServers: [] });
  first.client.agent.request(session.prompt, { sessionId, prompt: said("go") }).catch(() => undefined);
  await until(() => isAsked);
  if (choice !== null) await noted(store, (value) => JSON.stringify(value).includes(choice));
  // A store that is closed in the middle of a turn leaves what a kill leaves, with another reason.
  await store.close();

  await using later = await openStore(here.path);
  const second = await start(later);
  await second.client.agent.request(session.load, { sessionId, cwd: CWD, mcpServers: [] });
  expect(shown(second.client.updates)).toEqual(["user_message_chunk go", `tool_call Tool ${words}`]);
  const interruption = second.restored[0]![1].interruption!;
  expect(interruption.prompt).toEqual(said("go"));
  expect(interruption.calls).toMatchObject([
    { toolCallId: "call", title: "Tool", rawInput: { n: 1 }, state, permission: { options: [{}, {}] } },
  ]);
  expect(second.heard).toEqual([]);
  // After the next prompt, too, the record says what happened, and nothing that the user did not say.
  await second.client.agent.request(session.prompt, { sessionId, prompt: said("next") });
  await second.client.agent.request(session.close, { sessionId });
  const from = second.client.updates.length;
  await second.client.agent.request(session.load, { sessionId, cwd: CWD, mcpServers: [] });
  expect(shown(second.client.updates.slice(from))).toEqual([
    "user_message_chunk go",
    `tool_call Tool ${words}`,
    "user_message_chunk next",
    "agent_message_chunk heard next",
  ]);
});

async function noted(store: Store, isThere: (value: unknown) => boolean): Promise<void> {
  for (let turns = 0; ; turns++) {
    if (turns > 10_000) throw new Error("it was never recorded");
    const [row] = (await store.list({ empty: true })).sessions;
    const { attributes } = await store.read(row!.id, { dialect: "acp" });
    if (isThere(attributes.notes["acp.line"] ?? null)) return;
  }
}

test("nothing secret reaches the journal: MCP servers, files, forms, extensions", async () => {
  await using store = await memory();
  const { client } = await start(store, {
    onPrompt: async (_words, { request }) => {
      await request("fs/read_text_file", { path: "/secret-path" });
      await request("_example.com/login", { token: "SECRET-TOKEN" }).catch(() => undefined);
      await request("elicitation/create", { message: "SECRET-FORM", mode: "form", requestedSchema: {} }).catch(
        () => undefined,
      );
    },
  });
  const env = [{ name: "KEY", value: "SECRET-ENV" }];
  const mcpServers = [{ name: "m", command: "x", args: ["SECRET-ARG"], env }];
  const made = await client.agent.request(session.new, { cwd: CWD, mcpServers });
  const { sessionId } = made as { sessionId: string };
  await client.agent.request(session.prompt, { sessionId, prompt: said("go") });
  const [row] = (await store.list({ empty: true })).sessions;
  const lines: string[] = [];
  for await (const record of store.history(row!.id)) lines.push(JSON.stringify(record));
  expect(lines.join("\n")).toContain("fs/read_text_file");
  expect(lines.join("\n")).not.toMatch(/SECRET/i);
});

test("a store that fails: the person is told in words, the agent is stopped, and nothing unrecorded is shown", async () => {
  await using store = await memory();
  let isBroken = false;
  const log: string[] = [];
  const full = new HoldfastError("STORE_FULL", "The disk is full. Nothing was written.");
  const broken = new Proxy(store, {
    get: (target, name) => {
      const value = Reflect.get(target, name) as unknown;
      if (typeof value !== "function") return value;
      return async (...args: unknown[]) => {
        if (isBroken && name === "record") throw full;
        const made = await (value as (...all: unknown[]) => unknown).apply(target, args);
        return name === "record" ? breakable(made as object, () => isBroken, full) : made;
      };
    },
  });
  const { client, cancelled, heard } = await start(broken, {
    log: (line) => log.push(line),
    onPrompt: async (words, { update }) => {
      if (words !== "break") return;
      await update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "recorded" } });
      isBroken = true;
      await update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "lost" } });
      await update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "lost too" } });
    },
  });
  const { sessionId } = await client.agent.request(session.new, { cwd: CWD, mcpServers: [] });
  await expect(client.agent.request(session.prompt, { sessionId, prompt: said("break") })).rejects.toThrow(
    /could not be recorded.*The disk is full/,
  );
  expect(shown(client.updates)).toEqual(["agent_message_chunk recorded"]);
  await until(() => cancelled.length > 0);
  expect(cancelled).toEqual([sessionId]);
  expect(log.join("\n")).toContain("The disk is full");
  await expect(client.agent.request(session.prompt, { sessionId, prompt: said("again") })).rejects.toThrow(
    "disk is full",
  );
  expect(heard).toEqual(["break"]);
  isBroken = false;
  await client.agent.request(session.prompt, { sessionId, prompt: said("now") });
  expect(heard).toEqual(["break", "now"]);
  // Loading it again is a way back too.
  await expect(client.agent.request(session.prompt, { sessionId, prompt: said("break") })).rejects.toThrow(
    "disk is full",
  );
  isBroken = false;
  await client.agent.request(session.load, { sessionId, cwd: CWD, mcpServers: [] });
  await client.agent.request(session.prompt, { sessionId, prompt: said("then") });
  expect(shown(client.updates).at(-1)).toBe("agent_message_chunk heard then");
  isBroken = true;
  await expect(client.agent.request(session.prompt, { sessionId, prompt: said("unrecorded") })).rejects.toThrow(
    "disk is full",
  );
  expect(heard).not.toContain("unrecorded");
});

/** The same recorder, which cannot write while `isBroken`. */
function breakable<T extends object>(target: T, isBroken: () => boolean, error: Error): T {
  return new Proxy(target, {
    get: (one, name) => {
      const value = Reflect.get(one, name, one) as unknown;
      if (typeof value !== "function") return value;
      return async (...args: unknown[]) => {
        if (isBroken() && name !== "close") throw error;
        return (value as (...all: unknown[]) => unknown).apply(one, args);
      };
    },
  });
}

test("an agent that numbers its sessions reuses an id: the client gets another one, and both sessions stay apart", async () => {
  await using store = await memory();
  const one = await start(store, { ids: () => "session-1" });
  const { sessionId } = await one.client.agent.request(session.new, { cwd: CWD, mcpServers: [] });
  await one.client.agent.request(session.prompt, { sessionId, prompt: said("old") });
  await one.client.agent.request(session.close, { sessionId });
  const two = await start(store, { ids: () => "session-1" });
  const { sessionId: other } = await two.client.agent.request(session.new, { cwd: CWD, mcpServers: [] });
  expect(other).not.toBe(sessionId);
  await two.client.agent.request(session.prompt, { sessionId: other, prompt: said("new") });
  expect(shown(two.client.updates)).toEqual(["agent_message_chunk heard new"]);
  await two.client.agent.request(session.load, { sessionId, cwd: CWD, mcpServers: [] });
  expect(shown(two.client.updates.slice(1))).toEqual(["user_message_chunk old", "agent_message_chunk heard old"]);
});

test("without a restore function, a new session is told the conversation with the next prompt, once", async () => {
  await using store = await memory();
  const one = await start(store);
  const { sessionId } = await one.client.agent.request(session.new, { cwd: CWD, mcpServers: [] });
  await one.client.agent.request(session.prompt, { sessionId, prompt: said("the word is heron") });
  await one.client.agent.request(session.close, { sessionId });
  const two = await start(store, { restore: undefined as never });
  await two.client.agent.request(session.load, { sessionId, cwd: CWD, mcpServers: [] });
  expect(shown(two.client.updates).at(-1)).toMatch(/agent_thought_chunk Restored from Holdfast's record/);
  await two.client.agent.request(session.prompt, { sessionId, prompt: said("which?") });
  await two.client.agent.request(session.prompt, { sessionId, prompt: said("sure?") });
  expect(two.heard[0]).toMatch(/> User: the word is heron[\s\S]*\|which\?$/);
  expect(two.heard[1]).toBe("sure?");
});

test("a restore function that throws fails the request in its words, and the session can be loaded later", async () => {
  await using store = await memory();
  let isReady = false;
  const { client } = await start(store, {
    restore: () => {
      if (!isReady) throw new Error("the index is being rebuilt");
      return { modes: { currentModeId: "ask", availableModes: [{ id: "ask", name: "Ask" }] } };
    },
  });
  const { sessionId } = await client.agent.request(session.new, { cwd: CWD, mcpServers: [] });
  await client.agent.request(session.close, { sessionId });
  const load = () => client.agent.request(session.load, { sessionId, cwd: CWD, mcpServers: [] });
  await expect(load()).rejects.toThrow("the index is being rebuilt");
  isReady = true;
  expect(await load()).toMatchObject({ modes: { currentModeId: "ask" } });
});

test("a version of the protocol that nobody here knows passes untouched", async () => {
  await using store = await memory();
  const ends = pipe();
  const stream = durable(ends.agent, store, { log: () => undefined });
  const [reader, writer] = [stream.readable.getReader(), stream.writable.getWriter()];
  const fromClient = ends.client.writable.getWriter();
  const toClient = ends.client.readable.getReader();
  const sent = { jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: 9, x: 1 } };
  void fromClient.write(sent);
  expect((await reader.read()).value).toBe(sent);
  const answer = { jsonrpc: "2.0", id: 1, result: { protocolVersion: 9, agentCapabilities: {} } };
  void writer.write(answer);
  expect((await toClient.read()).value).toEqual(answer);
  const load = { jsonrpc: "2.0", id: 2, method: "session/load", params: { sessionId: "a" } };
  void fromClient.write(load);
  expect((await reader.read()).value).toBe(load);
  expect((await store.list({ empty: true })).sessions).toEqual([]);
});

/** Both sides by hand. */
function raw(store: Store) {
  const ends = pipe();
  const stream = durable(ends.agent, store, { app: "raw", log: () => undefined });
  const [reader, writer] = [stream.readable.getReader(), stream.writable.getWriter()];
  const fromClient = ends.client.writable.getWriter();
  const toClient = ends.client.readable.getReader();
  /** A request of the client, and the agent's answer to it. */
  const ask = async (id: number, method: string, params: object, result: object) => {
    void fromClient.write({ jsonrpc: "2.0", id, method, params });
    await reader.read();
    void writer.write({ jsonrpc: "2.0", id, result });
    return (await toClient.read()).value;
  };
  return { reader, writer, fromClient, toClient, ask };
}

test("a fork that the agent makes begins with the conversation of its source", async () => {
  await using store = await memory();
  const { ask } = raw(store);
  await ask(0, "initialize", {}, { protocolVersion: 1 });
  await ask(1, "session/new", { cwd: CWD }, { sessionId: "a" });
  await ask(2, "session/prompt", { sessionId: "a", prompt: said("one") }, { stopReason: "end_turn" });
  await ask(3, "session/fork", { sessionId: "a", cwd: "/other" }, { sessionId: "b" });
  await ask(4, "session/prompt", { sessionId: "b", prompt: said("two") }, { stopReason: "end_turn" });
  const found = await Promise.all(
    (await store.list()).sessions.map(async ({ id, labels, cwd }) => [
      labels?.["acp.session"],
      [cwd, ...shown((await store.read(id, { dialect: "acp" })).messages as never)],
    ]),
  );
  expect(Object.fromEntries(found)).toEqual({
    a: [CWD, "user_message_chunk one"],
    b: ["/other", "user_message_chunk one", "user_message_chunk two"],
  });
});

test("a client that does not wait for the answer to initialize is answered in order", async () => {
  await using store = await memory();
  const { reader, writer, fromClient, toClient } = raw(store);
  void fromClient.write({ jsonrpc: "2.0", id: 0, method: "initialize", params: {} });
  void fromClient.write({ jsonrpc: "2.0", id: 1, method: "session/load", params: { sessionId: "none", cwd: CWD } });
  expect((await reader.read()).value).toMatchObject({ method: "initialize" });
  void writer.write({ jsonrpc: "2.0", id: 0, result: { protocolVersion: 1 } });
  expect((await toClient.read()).value).toMatchObject({ id: 0, result: { agentCapabilities: { loadSession: true } } });
  expect((await toClient.read()).value).toMatchObject({ id: 1, error: { code: -32002 } });
});

test("the client goes: sessions are released, the one with a turn when the turn has ended", async () => {
  await using store = await memory();
  const { reader, writer, fromClient, ask } = raw(store);
  await ask(0, "initialize", {}, { protocolVersion: 1 });
  for (const [id, sessionId] of ["idle", "busy"].entries())
    await ask(id + 1, "session/new", { cwd: CWD }, { sessionId });
  void fromClient.write({
    jsonrpc: "2.0",
    id: 9,
    method: "session/prompt",
    params: { sessionId: "busy", prompt: said("x") },
  });
  await reader.read();
  const { sessions } = await store.list({ empty: true });
  const journal = (name: string) => sessions.find(({ labels }) => labels?.["acp.session"] === name)!.id;
  void fromClient.close();
  expect((await reader.read()).done).toBe(true);
  const isHeld = async (name: string) => (await store.read(journal(name), { dialect: "acp" })).holder !== null;
  await until(async () => !(await isHeld("idle")));
  expect(await isHeld("busy")).toBe(true);
  void writer.write({ jsonrpc: "2.0", id: 9, result: { stopReason: "end_turn" } });
  await until(async () => !(await isHeld("busy")));
  expect((await store.read(journal("busy"), { dialect: "acp" })).interruption).toBeNull();
});

test("an agent on the SDK of 2025 is durable in the same way", async () => {
  await using store = await memory();
  const live = async () => {
    const ends = pipe();
    const memories = new Map<string, string[]>();
    const stream = durable(ends.agent, store, {
      app: "old",
      log: () => undefined,
      restore: (id, { history }) =>
        void memories.set(
          id,
          history.map((update) => update.sessionUpdate),
        ),
    });
    const connection: OldConnection = new OldConnection(
      () => ({
        initialize: async () => ({ protocolVersion: 1, agentCapabilities: {} }),
        authenticate: async () => ({}),
        cancel: async () => undefined,
        newSession: async () => {
          const sessionId = crypto.randomUUID();
          memories.set(sessionId, []);
          return { sessionId };
        },
        prompt: async ({ sessionId }) => {
          const text = `I remember ${memories.get(sessionId)?.join(" ")}`;
          await connection.sessionUpdate({
            sessionId,
            update: { sessionUpdate: "agent_message_chunk", content: { type: "text", text } },
          });
          return { stopReason: "end_turn" as const };
        },
      }),
      stream,
    );
    return connectClient(ends.client);
  };
  const one = await live();
  const { sessionId } = await one.agent.request(session.new, { cwd: CWD, mcpServers: [] });
  await one.agent.request(session.prompt, { sessionId, prompt: said("hello") });
  await one.agent.request(session.close, { sessionId });
  const two = await live();
  await two.agent.request(session.load, { sessionId, cwd: CWD, mcpServers: [] });
  await two.agent.request(session.prompt, { sessionId, prompt: said("again") });
  expect(shown(two.updates)).toEqual([
    "user_message_chunk hello",
    "agent_message_chunk I remember",
    "agent_message_chunk I remember user_message_chunk agent_message_chunk",
  ]);
});

import { dialects, openStore, type Reading } from "holdfast";
import { openFolderStore } from "holdfast/internal";
import { describe, expect, test } from "vitest";
import { place } from "../../../../holdfast/test/place.ts";
import { HoldfastSessionStore } from "../../../src/claude-agent/index.ts";
import { describeInterruption } from "../../../src/claude-agent/model-words.ts";
import type { SessionEntry, SessionKey } from "../../../src/claude-agent/surface.ts";
import { ClaudeCode, type ScriptedCall } from "../../claude-agent/claude-code.ts";
import { conformance } from "../../claude-agent/conformance.ts";
import { FailingDisk } from "../../failing-disk.ts";
import { unreadable } from "../../unreadable-journals.ts";

const KEY: SessionKey = { projectKey: "-tmp-project", sessionId: "10b0bd58-0d97-41eb-abca-a932c3cc539e" };
const SUB: SessionKey = { ...KEY, subpath: "subagents/agent-a1" };
const MAIL: ScriptedCall = { id: "toolu_1", name: "send_mail", input: { to: "all" } };

describe("the published cases, in memory", () => {
  conformance(() => HoldfastSessionStore.open("memory:"));
});

describe.each(["a folder", "SQLite"])("the published cases, in %s", (kind) => {
  conformance(async () => {
    const folder = place();
    const address = kind === "SQLite" ? `sqlite:${folder.path}/store.db` : folder.path;
    const store = await HoldfastSessionStore.open(address, { durability: "process" });
    const close = store.close.bind(store);
    store.close = () => close().finally(() => folder[Symbol.dispose]());
    return store;
  });
});

/** A store in a folder, and Claude Code with it, as often as asked. */
async function machine(folder: string, key = KEY) {
  const store = await HoldfastSessionStore.open(folder, { durability: "process" });
  const ran: string[] = [];
  const act = ({ id }: ScriptedCall): string => {
    ran.push(id);
    return `${id} is done`;
  };
  const start = (hooks = store.hooks) => ClaudeCode.start({ key, mirror: store, hooks, act });
  return { store, ran, start, [Symbol.asyncDispose]: () => store.close() };
}

/** What a person sees of the only main session. */
async function shown(folder: string): Promise<Reading<unknown>> {
  await using store = await openStore(folder);
  const { sessions } = await store.list();
  expect(sessions).toHaveLength(1);
  return store.read(sessions[0]!.id);
}

describe("append and load", () => {
  test("an entry that is appended again is stored once, also by another process", async () => {
    using folder = place();
    const first = { type: "user", uuid: "u1", message: { role: "user", content: "hi" }, extra: { a: [1, null, "ß"] } };
    const second = { type: "tag", tag: "x" };
    {
      await using store = await HoldfastSessionStore.open(folder.path);
      await store.append(KEY, [first, second]);
      await store.append(KEY, [first, second]);
    }
    {
      await using store = await HoldfastSessionStore.open(folder.path);
      await store.append(KEY, [first]);
      expect(await store.load(KEY)).toEqual([first, second, second]);
    }
    await using store = await openStore(folder.path);
    const records = await Array.fromAsync(store.history((await store.list()).sessions[0]!.id));
    expect(records.filter(({ kind }) => kind === "message")).toHaveLength(1);
  });

  test("entries of any shape come back as they were", async () => {
    await using store = await HoldfastSessionStore.open("memory:");
    const odd: SessionEntry[] = [
      { type: "user", message: "not an object" },
      { type: "user", message: { role: "assistant", content: "of another role" } },
      { type: "user", message: { role: "user", content: [{ type: "unheard of", x: 1 }] }, uuid: "a" },
      { type: "assistant", message: { role: "assistant", content: [], id: "m", usage: { input_tokens: "many" } } },
      { type: "message", entry: { kind: "message" }, kind: "epoch", seq: 1 },
      { type: "user", isMeta: true, message: { role: "user", content: "hidden" }, "\ud800": "\udc00" },
      { type: "x", __proto__hidden: true, nested: JSON.parse('{"__proto__":{"a":1}}') as object },
    ];
    await store.append(KEY, odd);
    expect(await store.load(KEY)).toEqual(odd);
  });

  test("what the caller changes after the call is not stored", async () => {
    await using store = await HoldfastSessionStore.open("memory:");
    const entry = { type: "user", uuid: "u", message: { role: "user", content: "before" } };
    const appended = store.append(KEY, [entry]);
    entry.message.content = "after";
    await appended;
    expect(await store.load(KEY)).toMatchObject([{ message: { content: "before" } }]);
  });

  test("two processes that append to one session lose nothing", async () => {
    using folder = place();
    await using one = await HoldfastSessionStore.open(folder.path, { durability: "process", releaseMs: 10 });
    await using two = await HoldfastSessionStore.open(folder.path, { durability: "process", releaseMs: 10 });
    const wanted = Array.from({ length: 20 }, (_, n) => `u${n}`);
    await Promise.all(wanted.map((uuid, n) => (n % 2 ? one : two).append(KEY, [{ type: "x", uuid }])));
    expect((await one.load(KEY))!.map(({ uuid }) => uuid).sort()).toEqual([...wanted].sort());
  });

  test("a session of which only hooks have reported is not offered for a resume", async () => {
    using folder = place();
    await using here = await machine(folder.path);
    const [matcher] = here.store.hooks.UserPromptSubmit;
    const transcript_path = `/x/projects/${KEY.projectKey}/${KEY.sessionId}.jsonl`;
    const event = { hook_event_name: "UserPromptSubmit", session_id: KEY.sessionId, transcript_path, cwd: "/x" };
    await matcher!.hooks[0]!({ ...event, prompt: "hi", prompt_id: "p" });
    expect(await here.store.listSessions(KEY.projectKey)).toEqual([]);
    expect(await here.store.load(KEY)).toBe(null);
  });
});

describe("what people see", () => {
  test("a session is a conversation: prompts, answers, calls and results, each once", async () => {
    using folder = place();
    {
      await using here = await machine(folder.path);
      const claude = await here.start();
      await claude.prompt("Tell everybody.");
      await claude.call(MAIL);
      await claude.answer("They know.");
      expect(await here.store.load(KEY)).toEqual(claude.local);
    }
    const { messages, interruption, attributes, usage } = await shown(folder.path);
    const { text, calls, results } = dialects.anthropic;
    expect(messages.map((message) => text(message as never))).toEqual([
      "Tell everybody.",
      "I call send_mail.",
      "",
      "They know.",
    ]);
    expect(messages.flatMap((message) => calls(message as never).map(({ id }) => id))).toEqual(["toolu_1"]);
    expect(messages.flatMap((message) => results(message as never).map(({ call }) => call))).toEqual(["toolu_1"]);
    expect(interruption).toBe(null);
    expect(attributes).toMatchObject({ dialect: "anthropic", app: "claude-agent-sdk", cwd: "/tmp/project" });
    expect(usage).toEqual({ inputTokens: 20, outputTokens: 10 });
  });

  test("titles of Claude Code become the session's title; a person's wins", async () => {
    using folder = place();
    {
      await using here = await machine(folder.path);
      await (await here.start()).prompt("hi");
      await here.store.append(KEY, [{ type: "custom-title", customTitle: "mine" }]);
      await here.store.append(KEY, [{ type: "ai-title", aiTitle: "its" }]);
    }
    expect((await shown(folder.path)).attributes.title).toBe("mine");
  });

  test("a sub-agent is a session of its own, below the main one", async () => {
    using folder = place();
    {
      await using main = await machine(folder.path);
      await (await main.start()).prompt("Delegate.");
      const agent = await ClaudeCode.start({
        key: SUB,
        mirror: main.store,
        hooks: main.store.hooks,
        act: () => "done",
      });
      await agent.call(MAIL);
    }
    await using store = await openStore(folder.path);
    const main = (await store.list()).sessions.find(({ parent }) => parent === undefined);
    const children = await store.list({ parent: main!.id });
    expect(children.sessions).toHaveLength(1);
    const child = await store.read(children.sessions[0]!.id);
    expect(child.attributes.labels).toMatchObject({ "claude.subpath": SUB.subpath });
    expect(child.messages.flatMap((message) => dialects.anthropic.calls(message as never))).toHaveLength(1);
  });
});

describe("what hooks record", () => {
  test("a call of a sub-agent that starts before its prompt is mirrored belongs to that prompt", async () => {
    using folder = place();
    {
      await using store = await HoldfastSessionStore.open(folder.path, { durability: "process" });
      const lost = { append: async () => undefined, load: async () => null };
      const agent = await ClaudeCode.start({ key: KEY, mirror: lost, hooks: store.hooks, act: () => "done" });
      await agent.call(MAIL);
      await store.append(KEY, [{ type: "user", message: { role: "user", content: "Count." } }]);
      const call = { type: "tool_use", id: MAIL.id, name: MAIL.name, input: {} };
      await store.append(KEY, [{ type: "assistant", message: { role: "assistant", content: [call] } }]);
    }
    await using store = await openStore(folder.path);
    const { sessions } = await store.list();
    expect(sessions).toMatchObject([{ title: "Count.", turns: 1 }]);
    const { entries } = await store.read(sessions[0]!.id);
    expect(entries.flatMap(({ message }) => dialects.anthropic.results(message as never))).toHaveLength(1);
  });

  test("a call is on disk before it runs, though no entry has been mirrored", async () => {
    using folder = place();
    let onDisk: unknown;
    await using store = await HoldfastSessionStore.open(folder.path);
    const act = async (): Promise<string> => {
      await using other = await HoldfastSessionStore.open(folder.path);
      onDisk = (await other.interruption(KEY.sessionId)).calls;
      return "done";
    };
    const claude = await ClaudeCode.start({ key: KEY, mirror: store, hooks: store.hooks, act });
    await claude.prompt("Go.");
    await claude.call(MAIL);
    expect(onDisk).toMatchObject([{ name: "send_mail", state: "outcome-unknown" }]);
  });

  test("a call that cannot be recorded does not run, and a prompt that cannot be is not sent", async () => {
    using folder = place();
    const failing = new FailingDisk();
    const { disk } = failing;
    await using store = await HoldfastSessionStore.openWith((given) =>
      openFolderStore(folder.path, { ...given, disk }),
    );
    const ran: string[] = [];
    const act = ({ id }: ScriptedCall): number => ran.push(id);
    const claude = await ClaudeCode.start({ key: KEY, mirror: store, hooks: store.hooks, act });
    await claude.prompt("Go.");
    failing.countdown = 1;
    expect(await claude.call(MAIL)).toBe(false);
    expect(ran).toEqual([]);
    failing.countdown = 1;
    expect(await claude.prompt("Go on.")).toBe(null);
    expect(failing.failed).toBe(2);
  });

  test("your own hooks run as well, and your options stay", async () => {
    await using store = await HoldfastSessionStore.open("memory:");
    const seen: string[] = [];
    const own = async ({ hook_event_name }: { hook_event_name: string }): Promise<object> => {
      seen.push(hook_event_name);
      return {};
    };
    const options = store.options({ model: "m", hooks: { PreToolUse: [{ hooks: [own] }], Stop: [{ hooks: [own] }] } });
    expect(options).toMatchObject({ model: "m", sessionStore: store, sessionStoreFlush: "eager" });
    expect(options.hooks).toHaveProperty("Stop");
    const claude = await ClaudeCode.start({ key: KEY, mirror: store, hooks: options.hooks, act: () => "done" });
    await claude.prompt("Go.");
    await claude.call(MAIL);
    expect(seen).toEqual(["PreToolUse"]);
  });
});

describe("after a death", () => {
  /** Dies where `at` says, and returns what the next process is told with its first prompt, and with its second. */
  async function tellAfter(at: "request" | "running" | "ended", key = KEY): Promise<[string | null, string | null]> {
    using folder = place();
    const lost = { append: async () => undefined, load: async () => null };
    {
      await using store = await HoldfastSessionStore.open(folder.path, { durability: "process" });
      const claude = await ClaudeCode.start({ key: KEY, mirror: store, hooks: store.hooks, act: () => "done" });
      await claude.prompt("First.");
      await claude.answer("Yes.");
      const hooks = store.hooks;
      if (at === "running") hooks.PostToolUse = [];
      // From here on, nothing is mirrored in time.
      const dying = await ClaudeCode.start({ key, mirror: lost, hooks, act: () => "sent to 7" });
      if (key === KEY) await dying.prompt("Tell everybody.");
      if (at !== "request") await dying.call(MAIL);
    }
    await using store = await HoldfastSessionStore.open(folder.path, { durability: "process" });
    const claude = await ClaudeCode.start({ key: KEY, mirror: store, hooks: store.hooks, act: () => "done" });
    const first = await claude.prompt("Go on.");
    await claude.answer("I see.");
    await claude.call({ ...MAIL, id: "toolu_2" });
    const again = await ClaudeCode.start({ key: KEY, mirror: store, hooks: store.hooks, act: () => "done" });
    return [first, await again.prompt("And now?")];
  }

  test("the model is told once that a call may have run", async () => {
    const [first, second] = await tellAfter("running");
    expect(first).toContain('- send_mail {"to":"all"}: it had started, and may have taken effect.');
    expect(second).toBe("");
  });

  test("the model is told the result of a call that is not in the transcript", async () => {
    const [first, second] = await tellAfter("ended");
    expect(first).toContain('it completed. Do not run it again. Its outcome: {"stdout":"sent to 7"}');
    expect(second).toBe("");
  });

  test("the model is told a prompt that is not in the transcript", async () => {
    const [first, second] = await tellAfter("request");
    expect(first).toContain('This prompt was not answered, and is not in the conversation: "Tell everybody."');
    expect(second).toBe("");
  });

  test("the model is told what a sub-agent was doing", async () => {
    const [first, second] = await tellAfter("running", SUB);
    expect(first).toContain("(made by the sub-agent subagents/agent-a1)");
    expect(second).toBe("");
  });

  test("if the process dies before the model has answered, it is told again", async () => {
    using folder = place();
    const lost = { append: async () => undefined, load: async () => null };
    for (const prompt of ["First.", "Second.", "Third."]) {
      await using store = await HoldfastSessionStore.open(folder.path, { durability: "process" });
      const hooks = { ...store.hooks, PostToolUse: [] };
      const claude = await ClaudeCode.start({ key: KEY, mirror: lost, hooks, act: () => "done" });
      const told = await claude.prompt(prompt);
      if (prompt === "First.") await claude.call(MAIL);
      else expect(told).toContain("send_mail");
      if (prompt === "Third.") expect(told).toContain('"Second."');
    }
  });

  test("interruption says what is unfinished", async () => {
    using folder = place();
    await using here = await machine(folder.path);
    const claude = await here.start({ ...here.store.hooks, PostToolUse: [] });
    await claude.prompt("Go.");
    const lost = { append: async () => undefined, load: async () => null };
    const hooks = { ...here.store.hooks, PostToolUse: [] };
    await (await ClaudeCode.start({ key: KEY, mirror: lost, hooks, act: () => "x" })).call(MAIL);
    expect(await here.store.interruption(KEY.sessionId)).toEqual({
      prompts: [],
      calls: [{ id: "toolu_1", name: "send_mail", input: { to: "all" }, state: "outcome-unknown" }],
    });
    expect(await here.store.interruption("never")).toEqual({ prompts: [], calls: [] });
  });

  test("P9: a transcript of a sub-agent that cannot be read does not block the session, and the model is told", async () => {
    using folder = place();
    const bad = new Set<string>();
    const open = (): Promise<HoldfastSessionStore> =>
      HoldfastSessionStore.openWith(async (options) => unreadable(await openFolderStore(folder.path, options), bad));
    {
      await using store = await open();
      const lost = { append: async () => undefined, load: async () => null };
      const hooks = { ...store.hooks, PostToolUse: [] };
      const claude = await ClaudeCode.start({ key: KEY, mirror: store, hooks, act: () => "x" });
      await claude.prompt("Go.");
      await (await ClaudeCode.start({ key: SUB, mirror: lost, hooks, act: () => "x" })).call(MAIL);
    }
    {
      await using listing = await openStore(folder.path);
      const { sessions } = await listing.list({ parent: (await listing.list()).sessions[0]!.id, empty: true });
      bad.add(sessions[0]!.id);
    }
    await using store = await open();
    const claude = await ClaudeCode.start({ key: KEY, mirror: store, hooks: store.hooks, act: () => "x" });
    const told = await claude.prompt("Go on.");
    expect(told).toContain("subagents/agent-a1");
    expect(told).toContain("cannot be read");
  });

  test("what the model is told is cut between characters", () => {
    const [even, odd] = ["", "x"].map(
      (start) => describeInterruption({ prompts: [start + "😀".repeat(2000)], calls: [] })!,
    );
    for (const words of [even!, odd!]) expect(words).toMatch(/😀…$/);
  });
});

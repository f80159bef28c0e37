import { stripVTControlCharacters } from "node:util";
import { describe, expect, test, vi } from "vitest";
import { whyNoScreen } from "../../../src/commands/agent/chat.ts";
import type { ChatState, UnfinishedSession } from "../../../src/host/host.ts";
import { Controller } from "../../../src/screen/controller.ts";
import type { KeyName } from "../../../src/screen/input/keys.ts";
import { accountWith, cutOffCall } from "../../account.ts";
import { asking } from "../../screen/ask.ts";
import { ScriptedChat, scriptedHost } from "../../screen/scripted-host.ts";

const ASKING: Partial<ChatState> = {
  status: "waiting",
  asks: [asking({ call: "c1", name: "write", input: {}, summary: "write a.txt", rule: "write(a.txt)" })],
};

const startNew = (): Promise<never> => Promise.reject(new Error("nothing was offered"));

class Person {
  readonly controller: Controller;
  /** Ahead of the clock. */
  #aheadMs = 0;

  constructor(...given: readonly (ScriptedChat | { offer: UnfinishedSession; chats: ScriptedChat[] })[]) {
    const chats = given.flatMap((one) => (one instanceof ScriptedChat ? [one] : one.chats));
    const offer = given.flatMap((one) => (one instanceof ScriptedChat ? [] : [one.offer]))[0];
    const environment = {
      host: scriptedHost(...chats),
      colour: false,
      now: () => Date.now() + this.#aheadMs,
      exportTo: async () => "out.md",
      startNew: async () => chats.at(-1)!,
    };
    this.controller = new Controller(environment, { columns: 80, rows: 24 });
    if (offer !== undefined) this.controller.offer(offer);
    else if (chats[0] !== undefined) this.controller.show(chats[0], false);
    this.waits();
  }

  /** Long enough to have seen what is on the screen. */
  waits(): this {
    this.#aheadMs += 1_000;
    this.controller.renderer.draw();
    return this;
  }

  press(...names: KeyName[]): this {
    for (const name of names) this.controller.key({ name });
    return this;
  }

  /** Character by character, as people do. */
  type(text: string): this {
    for (const character of text) this.controller.key({ name: "text", text: character });
    return this;
  }

  say(text: string): this {
    return this.type(text).press("enter");
  }

  get live(): string {
    return stripVTControlCharacters(this.controller.renderer.picture.live);
  }

  get all(): string {
    return stripVTControlCharacters(this.controller.renderer.picture.written.join("\n"));
  }

  async sees(text: string): Promise<void> {
    await vi.waitFor(() => expect(`${this.all}\n${this.live}`).toContain(text), 60_000);
  }
}

describe("what waits for a word", () => {
  test("a prompt that begins with the letter of a choice is a prompt, and never a yes", () => {
    const chat = new ScriptedChat("s1", ASKING);
    new Person(chat).say("add a test, and then yes").say("yes, but later");
    expect(chat.told).toEqual(["prompt add a test, and then yes", "prompt yes, but later"]);
  });

  test("y, yes, a, always, p, project, n and no do what they say, in any case", () => {
    const chat = new ScriptedChat("s1", ASKING);
    const person = new Person(chat);
    for (const word of ["y", "yes", "YES", "a", "always", "p", "Project", "n", "no", "No"]) person.say(word);
    const words = ["allow", "allow", "allow", "always", "always", "project", "project", "deny", "deny", "deny"];
    expect(chat.told).toEqual(words.map((word) => `answer c1 ${word}`));
  });

  test("the default is no; the letter and Enter, or the arrows and Enter, choose", () => {
    const chat = new ScriptedChat("s1", ASKING);
    const person = new Person(chat);
    expect(person.live).toMatch(/▸ n {2}deny/);
    person.type("a");
    expect(person.live).toMatch(/▸ a {2}always/);
    person.press("enter").press("enter").press("up", "up", "up", "enter").press("down", "down", "down", "enter");
    expect(chat.told).toEqual(["answer c1 always", "answer c1 deny", "answer c1 allow", "answer c1 deny"]);
  });

  test("v writes the whole request into the scrollback, and answers nothing", () => {
    const content = Array.from({ length: 500 }, (_, i) => `line ${i};`).join("\n");
    const chat = new ScriptedChat("s1", {
      ...ASKING,
      asks: [asking({ name: "write", input: { path: "x", content } })],
    });
    const person = new Person(chat).say("v");
    expect(person.all.match(/│ line \d+;/g)).toHaveLength(500);
    expect(chat.told).toEqual([]);
  });

  test("what was typed before a question appeared does not answer it", () => {
    const chat = new ScriptedChat("s1", { status: "running" });
    const person = new Person(chat).type("y");
    chat.become(ASKING, { type: "permission.asked", ask: ASKING.asks![0]! });
    // In the same breath, before anything can have been seen; and in the first moment.
    person.press("enter").say("y").press("enter", "enter");
    expect(chat.told).toEqual(["prompt y", "prompt y"]);
    person.type("y").waits().press("enter");
    expect(chat.told).toEqual(["prompt y", "prompt y", "prompt y"]);
    person.say("y");
    expect(chat.told.at(-1)).toBe("answer c1 allow");
  });

  test("the next question is not answered by a key that was pressed twice", () => {
    const second = asking({ call: "c2", name: "shell", input: { command: "rm -rf x" } });
    const chat = new ScriptedChat("s1", { ...ASKING, asks: [...ASKING.asks!, second] });
    const person = new Person(chat).press("up", "up", "up").press("enter");
    chat.become({ asks: [second] });
    person.press("enter", "up", "up", "enter");
    expect(chat.told).toEqual(["answer c1 allow"]);
  });

  test("Esc stops the turn, and answers nothing", () => {
    const chat = new ScriptedChat("s1", ASKING);
    new Person(chat).press("escape");
    expect(chat.told).toEqual(["stop user"]);
  });
});

describe("stopping and leaving", () => {
  test("Ctrl+C stops the turn, the second one leaves; another key between them takes that back", async () => {
    const chat = new ScriptedChat("s1", { status: "running" });
    const person = new Person(chat).press("interrupt");
    expect(chat.told).toEqual(["stop user"]);
    expect(person.live).toContain("Ctrl+C again to quit");
    chat.become({ status: "idle" });
    person.type("x").press("interrupt");
    expect(person.live).toContain("Ctrl+C again to quit");
    expect(person.live).not.toContain("❯ x");
    person.press("interrupt");
    expect(await person.controller.left).toBe(chat);
    expect(person.live).toBe("");
  });

  test("until what was stopped has stopped, it is seen that the key was heard", async () => {
    const chat = new ScriptedChat("s1", { status: "running" });
    const stopped = Promise.withResolvers<void>();
    chat.stop = () => stopped.promise;
    const person = new Person(chat).press("escape");
    expect(person.live).toMatch(/^. stopping · offline/mu);
    chat.become({ status: "idle" });
    stopped.resolve();
    await vi.waitFor(() => expect(person.live).toMatch(/^idle/m), 60_000);
  });

  test("Ctrl+D leaves when nothing is written, else it deletes", async () => {
    const chat = new ScriptedChat("s1");
    const person = new Person(chat).type("ab").press("home", "endOfInput");
    expect(person.live).toContain("❯ b");
    person.press("endOfInput", "endOfInput");
    expect(await person.controller.left).toBe(chat);
  });
});

test("whoever leaves in the middle of an answer keeps its words in the terminal", async () => {
  const live = { text: "The first words\n\nand the last", reasoning: "", calls: [] };
  const person = new Person(new ScriptedChat("s1", { status: "running", live })).press("interrupt", "interrupt");
  await person.controller.left;
  expect(person.all).toMatch(/The first words\n\nand the last\n… cut off here$/);
});

test("keys that were pressed behind the one that left do nothing: words are written once, and what was cut off is named", async () => {
  const live = { text: "The first words", reasoning: "", calls: [] };
  const chat = new ScriptedChat("s1", { status: "running", live });
  const person = new Person(chat).press("endOfInput", "endOfInput", "escape").say("too late");
  await person.controller.left;
  expect(person.all.match(/cut off here/g)).toHaveLength(1);
  expect(person.controller.cutOff).toEqual([chat]);
  expect(chat.told).toEqual([]);
});

describe("while the conversation is summed up", () => {
  test("it says so, Esc stops it, and what is queued meanwhile is not asked about", async () => {
    const queue = [{ id: "q1", text: "and then" }];
    const chat = new ScriptedChat("s1", { isCompacting: true, queue });
    const person = new Person(chat);
    expect(person.live).toContain("queued: and then");
    expect(person.live).not.toContain("send it");
    expect(person.live).toContain("Esc to stop");
    person.press("escape");
    expect(chat.told).toEqual(["stop user"]);
    chat.become({ status: "running" });
    await person.sees("compacting 0:0");
  });
});

describe("no, and why", () => {
  test("t asks for the reason and denies with it; Esc goes back to the question", () => {
    const chat = new ScriptedChat("s1", ASKING);
    const person = new Person(chat).say("t");
    expect(person.live).toContain("Deny write: what should the agent know or do instead?");
    person.type("oh").press("escape");
    expect(person.live).toContain("? Allow write?");
    expect(chat.told).toEqual([]);
    person.say("tell").press("enter").say("y").waits();
    // What is typed there is the reason, whatever it is.
    expect(chat.told).toEqual(["answer c1 deny y"]);
  });

  test("the question is gone while the reason is typed: it goes nowhere, and stays in the line", () => {
    const chat = new ScriptedChat("s1", ASKING);
    const person = new Person(chat).say("t").type("because");
    chat.become({ asks: [], status: "running" });
    person.waits();
    expect(person.live).toContain("❯ because");
    expect(chat.told).toEqual([]);
  });
});

describe("an unfinished session is offered before anything else", () => {
  const INTERRUPTED: UnfinishedSession = {
    ...{ id: "s1", title: "", cwd: "/tmp/x", at: new Date().toISOString(), queue: [] },
    account: accountWith({ state: "interrupted" }),
    interruption: {
      ...{ turn: 1, at: new Date().toISOString(), resumes: 0, how: { kind: "killed" }, prompt: "run the tests" },
      ...{ words: "interrupted: its process died", answered: false, text: "" },
      calls: [cutOffCall("c")],
    },
  };
  const left = { status: "interrupted", interruption: INTERRUPTED.interruption } as const;

  function offered(found = INTERRUPTED): { person: Person; old: ScriptedChat; fresh: ScriptedChat } {
    const [old, fresh] = [new ScriptedChat("s1", left), new ScriptedChat("s2")];
    const person = new Person({ offer: found, chats: [old, fresh] });
    return { person, old, fresh };
  }

  test("it says what was left; Enter continues it", async () => {
    const { person, old } = offered();
    expect(person.live).toContain("A session here was interrupted just now, in `npm test`.");
    expect(person.live).toContain("you asked: run the tests");
    expect(person.live).toContain("Enter continues it, n starts a new session");
    expect(person.live).toMatch(/^! interrupted/m);
    person.press("enter");
    await vi.waitFor(() => expect(old.told).toEqual(["finish"]), 60_000);
  });

  test("n starts a new session, and nothing happens to the other", async () => {
    const { person, old } = offered();
    person.say("n");
    await person.sees("new session");
    expect(old.told).toEqual([]);
  });

  test("keys from before it appeared do not choose; other text is not sent anywhere, and stays in the line", async () => {
    const { person, old, fresh } = offered();
    person.say("fix the bug");
    await person.sees("Choose first");
    expect(person.live).toContain("❯ fix the bug");
    const { person: hasty, old: other } = offered();
    hasty.press("escape");
    expect([...old.told, ...fresh.told, ...other.told]).toEqual([]);
    person.press("killToStart").say("n");
    await person.sees("new session");
  });

  test("a process that still runs: what happens to it is for the person to say", async () => {
    const call = { ...left.interruption!.calls[0]!, process: { pid: 7, running: true } };
    const old = new ScriptedChat("s1", { ...left, interruption: { ...left.interruption!, calls: [call] } });
    const person = new Person({ offer: INTERRUPTED, chats: [old] }).press("enter");
    await person.sees("stop process 7 first");
    expect(old.told).toEqual([]);
  });
});

test("a server that says nothing: how long it has been silent is seen; while a tool runs, that is no wonder", () => {
  const chat = new ScriptedChat("s1", { status: "running" });
  let now = 0;
  const environment = {
    host: scriptedHost(chat),
    colour: false,
    now: () => now,
    exportTo: async () => "out.md",
    startNew,
  };
  const controller = new Controller(environment, { columns: 80, rows: 24 });
  controller.show(chat, false);
  const seenAt = (ms: number): string => {
    now = ms;
    controller.renderer.draw();
    return controller.renderer.picture.live;
  };
  expect(seenAt(10_000)).not.toContain("silent");
  expect(seenAt(65_000)).toContain("the model has been silent for 1:05");
  chat.become({ live: { text: "", reasoning: "hm", calls: [] } });
  expect(seenAt(70_000)).not.toContain("silent");
  expect(seenAt(100_000)).toContain("the model has been silent for 0:35");
  const item = {
    kind: "call",
    id: "c",
    call: "c",
    at: "",
    turn: 1,
    name: "shell",
    input: {},
    state: "running",
  } as const;
  chat.become({ items: [item] });
  expect(seenAt(200_000)).not.toContain("silent");
  controller.leave();
});

test("how long a turn has worked is not counted anew from each question on", () => {
  const chat = new ScriptedChat("s1");
  let now = 0;
  const environment = {
    host: scriptedHost(chat),
    colour: false,
    now: () => now,
    exportTo: async () => "out.md",
    startNew,
  };
  const controller = new Controller(environment, { columns: 80, rows: 24 });
  controller.show(chat, false);
  chat.become({ status: "running" }, { type: "turn.started", turn: 1, prompt: "go" });
  now = 60_000;
  chat.become(ASKING, { type: "permission.asked", ask: ASKING.asks![0]! });
  chat.become({ status: "running", asks: [] });
  now = 65_000;
  controller.renderer.draw();
  expect(controller.renderer.picture.live).toContain("running 1:05");
  controller.leave();
});

describe("queued prompts", () => {
  test("taken back faster than it can be recorded: each once, in their order, before what was typed meanwhile", async () => {
    const queue = ["one", "two"].map((text) => ({ id: text, text }));
    const chat = new ScriptedChat("s1", { status: "running", queue });
    const person = new Person(chat).press("up", "up").type("x");
    await person.sees("❯ one\n  two\n  x");
    expect(chat.told).toEqual(["withdraw two", "withdraw one"]);
  });
});

describe("when something fails", () => {
  test("the same failure twice in a row is told twice", () => {
    const chat = new ScriptedChat("s1");
    const person = new Person(chat);
    for (const _ of [1, 2]) {
      chat.become({ status: "interrupted", failure: { code: "MODEL_UNREACHABLE", message: "nobody answers" } });
      person.press("end");
    }
    expect(person.all.match(/nobody answers/g)).toHaveLength(2);
  });

  test("that a request is made again stands behind the prompt that it is about", async () => {
    const chat = new ScriptedChat("s1");
    const person = new Person(chat);
    const item = { kind: "prompt", id: "m1", at: "2026-11-15T10:00:00.000Z", turn: 1, text: "think" } as const;
    chat.become({ status: "running", items: [item] }, { type: "retry", reason: "the server is gone" });
    await person.sees("the server is gone");
    expect(person.all).toMatch(/❯ think[\s\S]*Retrying the request: the server is gone/);
  });

  test("a prompt that could not be recorded comes back into the editor, with the reason", async () => {
    const chat = new ScriptedChat("s1");
    chat.failure = new Error("no space left");
    const person = new Person(chat).say("important words");
    await person.sees("no space left");
    await person.sees("❯ important words");
  });

  test("a failure that the chat tells itself is told once", async () => {
    const chat = new ScriptedChat("s1");
    chat.failure = new Error("the disk is full");
    const person = new Person(chat);
    chat.become({ failure: { code: "STORE_FULL", message: "the disk is full" }, status: "interrupted" });
    person.say("words");
    await person.sees("❯ words");
    expect(person.all.match(/the disk is full/g)).toHaveLength(1);
    expect(person.live).toContain("The turn was interrupted.");
  });
});

test("word from another session is shown, and goes away when one goes there", async () => {
  const here = new ScriptedChat("0199aaaa-0000", { title: "here", status: "running" });
  const other = new ScriptedChat("0199bbbb-0000", { title: "the other" });
  const person = new Person(here, other).say("/sessions");
  await person.sees("the other");
  person.type("other").press("enter");
  await vi.waitFor(() => expect(person.all).toContain("holdfast the other"), 60_000);
  here.become({}, { type: "permission.asked", ask: ASKING.asks![0]! });
  await person.sees('"here" needs approval');
  person.say("/sessions");
  await person.sees("Sessions  2");
  person.type("here").press("enter");
  await vi.waitFor(() => expect(person.live).not.toContain("needs approval"), 60_000);
});

test("a question that was left behind unanswered is not forgotten", async () => {
  const here = new ScriptedChat("0199aaaa-0000", { title: "here", ...ASKING });
  const person = new Person(here, new ScriptedChat("0199bbbb-0000", { title: "the other" })).say("/sessions");
  await person.sees("the other");
  person.type("other").press("enter");
  await person.sees('"here" needs approval');
});

test("a chat that has nothing to do is given back when one goes to another; one that works is not", async () => {
  const idle = new ScriptedChat("0199aaaa-0000", { title: "idle" });
  const other = new ScriptedChat("0199bbbb-0000", { title: "the other" });
  const person = new Person(idle, other).say("/sessions");
  await person.sees("the other");
  person.type("other").press("enter");
  await vi.waitFor(() => expect(idle.told).toEqual(["close"]), 60_000);
  other.become({ status: "running" });
  person.say("/sessions");
  await person.sees("Sessions  2");
  person.type("idle").press("enter");
  await vi.waitFor(() => expect(person.all).toContain("holdfast idle"), 60_000);
  expect(other.told).toEqual([]);
});

test("where a screen cannot be drawn, it is said why", () => {
  expect(whyNoScreen(true, true, "xterm-256color")).toBeNull();
  expect(whyNoScreen(true, true, undefined)).toBeNull();
  expect(whyNoScreen(true, true, "dumb")).toMatch(/TERM is dumb/);
  expect(whyNoScreen(true, false, "dumb")).toBe("Standard output is not a terminal");
});

test("the model that was named at the start is for the session that is taken from the list", async () => {
  const host = scriptedHost(new ScriptedChat("0199aaaa-0000", { title: "one" }));
  const open = vi.spyOn(host, "open");
  const environment = {
    host,
    colour: false,
    now: Date.now,
    exportTo: async () => "out.md",
    startNew,
    model: "openai/x",
  };
  const controller = new Controller(environment, { columns: 80, rows: 24 });
  controller.pick();
  await vi.waitFor(() => expect(controller.renderer.picture.live).toContain("0199aaaa"), 60_000);
  controller.key({ name: "enter" });
  await vi.waitFor(() => expect(open).toHaveBeenCalledWith("0199aaaa-0000", { model: "openai/x" }), 60_000);
});

test("/rewind puts the prompt back to be edited", async () => {
  const item = { kind: "prompt", id: "m1", at: "2026-11-15T10:00:00.000Z", turn: 1, text: "what was asked" } as const;
  const chat = new ScriptedChat("s1", { items: [item] });
  const person = new Person(chat).say("/rewind").press("enter");
  await person.sees("❯ what was asked");
  expect(chat.told).toEqual(["rewind m1"]);
});

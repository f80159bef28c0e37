import { describe, expect, test } from "vitest";
import type { JournalRecord, NewRecord } from "../../../src/journal/record.ts";
import { forkRecords } from "../../../src/replace/fork.ts";
import { openJournalStore } from "../../../src/stores/open.ts";
import { interruptionOf, openCalls } from "../../../src/view/interruption.ts";
import { messagesOf } from "../../../src/view/messages.ts";
import { place } from "../../place.ts";
import { modelVoices } from "../dialects/dialect-voices.ts";
import { call, codeOf, Life, STILL, step, voiceOf } from "./epoch-lives.ts";

const anthropic = voiceOf("anthropic");

function forked(life: Life, options: { at?: string; title?: string } = {}): Life {
  const fork = new Life(life.voice, { begun: false, name: "fork" });
  fork.begin(forkRecords(life.conversation, { from: "source", ...options }));
  fork.steps.push(...life.steps);
  return fork;
}

const ids = (life: Life): string[] => life.entries.map(({ id }) => id);

describe("a fork (C33)", () => {
  test("has the same prefix, by id, after a compaction and after a repaired resume", () => {
    const life = new Life(anthropic);
    life.prompt("first");
    life.step(step({ reasoning: "signed", text: "one", calls: [call("a")] }));
    life.prompt("second");
    life.step(step({ reasoning: "signed", text: "two" }));
    life.replace([anthropic.user("summary"), ...life.entries.slice(1)]);
    life.step(step({ reasoning: "signed", text: "three" }));
    const repaired = life.entries.find(({ synthetic }) => synthetic === "unrecorded")!;
    for (const { id } of life.entries) {
      const fork = forked(life, { at: id });
      const end = ids(life).indexOf(id) + 1;
      const whole = id === repaired.call!.message ? end + 1 : end;
      expect(ids(fork)).toEqual(ids(life).slice(0, whole));
      expect(fork.accepted()).toBe("");
    }
    expect(forked(life).view(STILL)).toEqual(life.view(STILL));
  });

  test.each(modelVoices.map((voice) => [voice.dialect.name, voice] as const))(
    "%s: takes the whole step and all its results, and no steering words from behind it (C34)",
    (_name, voice) => {
      const life = new Life(voice);
      life.prompt("go");
      const made = life.step(step({ reasoning: "signed", text: "look", calls: [call("a"), call("b")] }));
      const b = life.result("text of b");
      const steered = life.message(voice.user("hurry"));
      const a = life.result("text of a", { back: 1, asMessage: false });
      life.step(step({ text: "done" }));
      for (const id of made) expect(ids(forked(life, { at: id }))).toEqual(["m1", ...made, b, a]);
      expect(ids(forked(life, { at: b }))).toEqual(["m1", ...made, b, a]);
      expect(ids(forked(life, { at: steered }))).toEqual(["m1", ...made, b, steered, a]);
      expect(ids(forked(life, { at: a })), "what a tool came to can be named").toContain(a);
      for (const id of ids(life)) expect(forked(life, { at: id }).accepted()).toBe("");
      expect(codeOf(() => forked(life, { at: "nobody" }))).toBe("MESSAGE_UNKNOWN");
    },
  );

  test("takes no later response along for what the provider had not finished (R8)", () => {
    const life = new Life(anthropic);
    life.prompt("go");
    const search = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} };
    const paused = life.message({ role: "assistant", content: [search] });
    const found = { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] };
    life.message({ role: "assistant", content: [found, { type: "text", text: "done" }] });
    const fork = forked(life, { at: paused });
    expect(ids(fork)).toEqual(["m1", paused]);
    expect(fork.accepted()).toBe("");
  });

  test("shows what was to be hidden or edited at the next turn as it is to be", () => {
    const life = new Life(anthropic);
    life.prompt("go");
    const [said] = life.step(step({ text: "wordy" }));
    const [long] = life.step(step({ text: "longish" }));
    life.write({ kind: "patch", id: said!, metadata: { hiddenFromModel: true } });
    const shown = [{ id: "short", message: { role: "assistant", content: "brief" } }];
    life.write({ kind: "edit", id: "e", ids: [long!], shown, reason: "shorter" });
    expect(JSON.stringify(life.view())).toMatch(/wordy.*longish/);
    const fork = forked(life);
    expect(JSON.stringify(fork.view(STILL))).toContain("brief");
    expect(JSON.stringify(fork.view(STILL))).not.toContain("longish");
    expect(JSON.stringify(fork.view(STILL))).not.toContain("wordy");
    expect(ids(fork)).toContain(said);
    fork.write({ kind: "patch", id: said!, metadata: { hiddenFromModel: null } } as never);
    fork.prompt("show it");
    expect(JSON.stringify(fork.view())).toContain("wordy");
  });

  test("inherits no interruption: the source's turn goes on elsewhere", () => {
    const life = new Life(anthropic);
    life.prompt("first");
    life.step(step({ text: "one" }));
    life.prompt("second");
    life.step(step({ text: "two", calls: [call("a")] }));
    life.start();
    life.write(
      { kind: "draft", id: "d", turn: 2, n: 0, parts: [{ part: 0, text: "I wi" }] },
      { kind: "queue.put", id: "q", prompt: { role: "user", content: "later" } },
      { kind: "usage", turn: 2, usage: { inputTokens: 9 } },
    );
    const fork = forked(life);
    const found = fork.reopened();
    expect(interruptionOf(found)).toBeNull();
    expect(found).toMatchObject({ turns: 2, turn: null, draft: null, queue: [], usage: {}, undo: null });
    expect(openCalls(found)).toEqual([]);
    expect(found.items.at(-1)!.entry).toMatchObject({ synthetic: "forked", turn: 2 });
    expect(JSON.stringify(messagesOf(found, STILL))).toContain("forked");
    expect(fork.accepted()).toBe("");
    expect(fork.conversation.turn?.number, "turns are counted on").toBe(3);
    expect(forked(life, { at: "m3" }).conversation.turns).toBe(1);
  });

  test("has the attributes and notes of its source, and says where it comes from", () => {
    const life = new Life(anthropic);
    life.write(
      { kind: "session", labels: { team: "x" }, app: "agent", parent: { session: "boss", call: "c" } },
      { kind: "note", name: "plan", value: 1 },
    );
    life.prompt("go");
    life.step(step({ text: "one" }));
    const attributes = { title: "a life", cwd: "/work", app: "agent", dialect: "anthropic", labels: { team: "x" } };
    const all = forked(life).reopened().attributes;
    expect(all).toEqual({ ...attributes, notes: { plan: 1 }, forkedFrom: { session: "source", at: "m3" } });
    const some = forked(life, { at: "m1", title: "another" }).reopened().attributes;
    expect(some).toMatchObject({ title: "another", forkedFrom: { session: "source", at: "m1" } });
    expect(forked(new Life(anthropic)).entries).toEqual([]);
  });

  test.each(["folder", "sqlite", "memory"])("is the beginning of a session in the %s store", async (kind) => {
    using here = place();
    const url = kind === "folder" ? here.path : kind === "sqlite" ? `sqlite:${here.path}/s.db` : "memory:";
    await using store = await openJournalStore(url);
    const life = new Life(anthropic);
    life.prompt("go");
    life.step(step({ text: "one", calls: [call("a")] }));
    const fork = forked(life);
    const id = "01a1dd00-0000-7000-8000-000000000001";
    const journal = await store.create(id, forkRecords(life.conversation, { from: "source" }) as never as NewRecord[]);
    await journal.append({ kind: "note", name: "n", value: 1 });
    await journal.close();
    const conversation = fork.empty();
    const { records } = await store.read(id);
    for (const record of records as JournalRecord[]) conversation.add(record);
    expect(messagesOf(conversation, STILL)).toEqual(fork.view(STILL));
    expect(conversation.attributes.notes).toEqual({ n: 1 });
  });
});

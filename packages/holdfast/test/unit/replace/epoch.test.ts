import { describe, expect, test } from "vitest";
import type { EpochRecord } from "../../../src/conversation/records/records.ts";
import { checkpointOf } from "../../../src/replace/checkpoint.ts";
import { interruptionOf, openCalls } from "../../../src/view/interruption.ts";
import { messagesOf } from "../../../src/view/messages.ts";
import { repairForPrompt } from "../../../src/view/repairs.ts";
import { call, codeOf, LIVE, Life, STILL, step, voiceOf } from "./epoch-lives.ts";

const anthropic = voiceOf("anthropic");

function begun(): Life {
  const life = new Life(anthropic);
  life.prompt("go");
  return life;
}

describe("what an entry keeps", () => {
  test("ids, times, turns, metadata and marks; a patch that came after the entry was taken is not lost", () => {
    const life = begun();
    const prompt = life.entries[0]!;
    life.step(step({ calls: [call("a")] }));
    life.prompt("another thing");
    life.step(step({ text: "done" }));
    const taken = life.entries;
    life.write({ kind: "patch", id: prompt.id, metadata: { starred: true } });
    const now = life.entries;
    expect(now.some(({ synthetic }) => synthetic === "unrecorded")).toBe(true);
    life.replace(taken);
    const plain = ({ seq: _, ...entry }: (typeof now)[number]) => entry;
    expect(life.entries.map(plain)).toEqual(now.map(plain));
    expect(life.entries[0]!.metadata).toEqual({ starred: true });
    expect(life.reopened().items.map(({ entry }) => plain(entry))).toEqual(now.map(plain));
  });

  test("entries of an older epoch are taken as they are", () => {
    const life = begun();
    life.step(step({ text: "done" }));
    const old = life.entries;
    life.end();
    life.replace([], { reason: "clear", activity: STILL });
    expect(life.entries).toEqual([]);
    life.replace(old, { reason: "rewind", activity: STILL });
    const plain = ({ seq: _, ...entry }: (typeof old)[number]) => entry;
    expect(life.entries.map(plain)).toEqual(old.map(plain));
    expect(life.accepted()).toBe("");
  });

  test("what was hidden or edited between turns is so in the new epoch, and stays so", () => {
    const life = begun();
    const [first] = life.step(step({ calls: [call("a")] }));
    life.result("secret");
    const [second] = life.step(step({ text: "wordy" }));
    life.write({ kind: "patch", id: first!, metadata: { hiddenFromModel: true } });
    const shown = { id: "short", message: { role: "assistant", content: "short" } };
    life.write({ kind: "edit", id: "e", ids: [second!], shown: [shown], reason: "shorter" });
    expect(JSON.stringify(life.view())).toContain("wordy");
    life.end();
    life.replace(life.entries);
    for (const conversation of [life.conversation, life.reopened()]) {
      const view = JSON.stringify(messagesOf(conversation, STILL));
      expect(view).toContain("short");
      expect(view).not.toMatch(/wordy|secret/);
      expect(conversation.find(second!)!.entry.replacedBy).toBe("short");
    }
    life.write({ kind: "patch", id: first!, metadata: { hiddenFromModel: false } });
    expect(life.accepted()).toBe("");
    expect(JSON.stringify(life.view()), "and can be shown again").toContain("secret");
  });

  test("while a turn is open it waits for the next one, over the epoch: a request ends where it did (R2)", () => {
    const life = begun();
    life.step(step({ text: "wordy" }));
    life.prompt("go on");
    const [wordy, prompt] = life.entries.slice(1).map(({ id }) => id);
    life.write({ kind: "patch", id: prompt!, metadata: { hiddenFromModel: true } });
    const shown = { id: "short", message: { role: "assistant", content: "short" } };
    life.write({ kind: "edit", id: "e", ids: [wordy!], shown: [shown], reason: "shorter" });
    const before = life.view();
    life.replace(life.entries);
    life.replace(life.entries);
    for (const conversation of [life.conversation, life.reopened()]) {
      expect(messagesOf(conversation, STILL)).toEqual(before);
      expect(conversation.find(prompt!)!.entry.metadata).toEqual({ hiddenFromModel: true });
    }
    expect(before.at(-1)).toMatchObject({ role: "user" });
    life.end();
    life.prompt("and now?");
    for (const conversation of [life.conversation, life.reopened()]) {
      const view = JSON.stringify(messagesOf(conversation, STILL));
      expect(view).toMatch(/short.*and now/);
      expect(view).not.toMatch(/wordy|go on/);
    }
    expect(life.accepted()).toBe("");
  });

  test("an edit whose replaced entries are dropped while a turn is open has nothing to wait for", () => {
    const life = begun();
    const [wordy] = life.step(step({ text: "wordy" }));
    life.prompt("go on");
    const shown = { id: "short", message: { role: "assistant", content: "short" } };
    life.write({ kind: "edit", id: "e", ids: [wordy!], shown: [shown], reason: "shorter" });
    life.replace(life.entries.filter(({ id }) => id !== wordy));
    for (const conversation of [life.conversation, life.reopened()])
      expect(JSON.stringify(messagesOf(conversation, STILL))).toMatch(/go.*short.*go on/);
  });
});

describe("signed reasoning (R1)", () => {
  const signed = step({ reasoning: "signed", text: "thought", calls: [call("a")] });
  const thinks = (life: Life): boolean => JSON.stringify(life.view()).includes('"thinking"');

  test("stays behind a rewind, and is left out behind a summary", () => {
    for (const [items, stays] of [
      [(life: Life) => life.entries.slice(0, 3), true],
      [(life: Life) => [anthropic.user("summary"), ...life.entries.slice(1, 3)], false],
    ] as const) {
      const life = begun();
      life.step(signed);
      life.result("text of a");
      life.step(step({ text: "done" }));
      life.replace(items(life));
      expect(thinks(life)).toBe(stays);
      expect(life.conversation.changed.saved()).toEqual(stays ? null : { from: life.entries[0]!.id, until: "m4" });
      life.step({ ...signed, calls: [] });
      expect(thinks(life), "what is signed from here on stays").toBe(true);
      expect(life.accepted()).toBe("");
    }
  });

  test("a change from before the epoch is remembered, as far as it reaches", () => {
    const life = begun();
    const [first] = life.step({ ...signed, calls: [] });
    life.step(signed);
    const result = life.result("text of a");
    const edited = { id: "p", message: anthropic.user("go on") as never };
    life.write({ kind: "edit", id: "e", ids: ["m1"], shown: [edited], reason: "typo", now: true });
    life.step({ ...signed, calls: [] });
    expect(life.conversation.changed.saved()).toEqual({ from: "p", until: result });
    life.replace(life.entries);
    expect(life.conversation.changed.saved()).toEqual({ from: "p", until: result });
    life.replace(life.entries.slice(0, 3), { reason: "rewind" });
    expect(life.conversation.changed.saved()).toEqual({ from: "p", until: first });
    life.step({ ...signed, calls: [] });
    expect(thinks(life)).toBe(true);
    expect(life.accepted()).toBe("");
    life.replace([], { reason: "clear" });
    expect(life.conversation.changed.saved()).toBeNull();
  });
});

describe("what lives on (S16, C38)", () => {
  /** In the middle of a turn, with everything that there can be. */
  function busy(): Life {
    const life = new Life(anthropic);
    life.write({ kind: "opened", intents: true } as never);
    life.prompt("first");
    life.write({ kind: "usage", turn: 1, usage: { inputTokens: 5, cost: { amount: 1, currency: "EUR" } } });
    life.step(step({ text: "done" }));
    life.prompt("second");
    life.step(step({ calls: [call("a"), call("b")] }));
    life.start(1);
    life.write(
      { kind: "usage", turn: 2, usage: { inputTokens: 7 } },
      { kind: "queue.put", id: "q", prompt: { role: "user", content: "later" }, metadata: { by: "me" }, model: "m" },
      { kind: "note", name: "plan", value: [1, 2] },
      { kind: "session", title: "named", labels: { team: "x" } },
      { kind: "draft", id: "d", turn: 2, n: 0, parts: [{ part: 0, text: "I wi" }] },
      { kind: "draft", id: "d", turn: 2, n: 1, parts: [{ part: 0, text: "ll" }] },
    );
    return life;
  }

  test("C38: compaction in the middle of a turn: open turn, queue, title, usage, notes, draft and ids are all there", () => {
    const life = busy();
    const before = life.conversation;
    const { attributes, queue, usage, turns } = before;
    const interruption = interruptionOf(before)!;
    life.replace([anthropic.user("summary"), ...life.entries.slice(-1)]);
    life.write({ kind: "draft", id: "d", turn: 2, n: 2, parts: [{ part: 0, text: " see" }] });
    const found = life.reopened();
    expect(found.attributes).toEqual({ ...attributes, title: "named", labels: { team: "x" } });
    expect(found.queue).toEqual(queue);
    expect(found.queued("q")).toMatchObject({ model: "m" });
    expect(found.usage).toEqual(usage);
    expect([...found.usageByTurn]).toEqual([[2, { inputTokens: 7 }]]);
    expect(found.turns).toBe(turns);
    expect(found.writer.intents).toBe(true);
    const { prompt, ...after } = interruptionOf(found)!;
    const { seq: _, ...was } = interruption.prompt;
    expect(prompt).toMatchObject(was);
    expect(after).toEqual({
      ...interruption,
      prompt: undefined,
      lastAt: life.records.at(-1)!.at,
      draft: { ...interruption.draft, text: "I will see" },
    });
    expect(after.calls.map(({ id, state }) => [id, state])).toEqual([
      ["a", "outcome-unknown"],
      ["b", "never-started"],
    ]);
    expect(life.accepted()).toBe("");
  });

  test("a checkpoint says the same when it is taken again behind the epoch", () => {
    const life = busy();
    life.write({ kind: "turn.suspended", turn: 2, reason: "asks", calls: ["b"] });
    const once = checkpointOf(life.conversation);
    life.replace(life.entries);
    const { turn, ...again } = checkpointOf(life.reopened());
    expect({ ...again, turn: { ...turn, lastAt: once.turn!.lastAt } }).toEqual(once);
  });

  test("a turn on which somebody worked who records no starts does not become one of which all are known", () => {
    const life = begun();
    life.write({ kind: "opened", intents: true } as never);
    life.step(step({ calls: [call("a")] }));
    expect(openCalls(life.conversation)[0]!.state).toBe("unrecorded");
    life.replace(life.entries);
    expect(openCalls(life.reopened())[0]!.state).toBe("unrecorded");
  });

  test("tools that were started while the model still spoke are named, unless a clear takes their turn away", () => {
    const life = begun();
    life.write({ kind: "tool.started", turn: 1, call: "x", message: null, name: "early" });
    life.replace([anthropic.user("summary")]);
    expect(interruptionOf(life.reopened())!.calls).toMatchObject([{ id: "x", message: null, name: "early" }]);
    life.write({ kind: "turn.ended", turn: 1, outcome: "aborted", by: "user" });
    life.replace([], { reason: "clear", activity: STILL });
    expect(repairForPrompt(life.reopened())).toEqual([]);
  });

  test("what was redacted is known to be", () => {
    const life = begun();
    const message = { role: "user", content: "the key is [redacted]" };
    life.write({ kind: "message", id: "r", turn: 1, step: "r", message, redacted: true });
    life.replace(life.entries);
    expect(life.reopened().items.map(({ redacted }) => redacted)).toEqual([false, true]);
  });

  test("the second seq of undo is where this epoch began, and the records are counted", () => {
    const life = busy();
    const [first] = life.replace(life.entries) as EpochRecord[];
    expect(first).toMatchObject({ kind: "epoch", undo: 1, carried: 4, reason: "compaction" });
    const { epochSeq } = life.conversation;
    const [second] = life.replace(life.entries.slice(0, 2), { reason: "rewind", activity: STILL }) as EpochRecord[];
    expect(second).toMatchObject({ undo: epochSeq, carried: 2, reason: "rewind" });
  });

  test("a turn that nobody works on is over when a clear or a rewind leaves nothing of it", () => {
    for (const [reason, keep, how] of [
      ["clear", 0, null],
      ["rewind", 2, null],
      ["rewind", 3, "aborted"],
      ["compaction", 0, "aborted"],
    ] as const) {
      const life = busy();
      life.write({ kind: "turn.ended", turn: 2, outcome: "aborted", by: "user" });
      const had = interruptionOf(life.conversation);
      life.replace(life.entries.slice(0, keep), { reason, activity: STILL });
      const left = interruptionOf(life.reopened());
      expect(left?.how.kind ?? null, reason).toBe(how);
      expect(left?.draft?.text, "what was streamed belongs behind the last message").toBe(
        reason === "compaction" ? "I will" : undefined,
      );
      life.undo(STILL);
      expect(interruptionOf(life.reopened())).toEqual({ ...had, prompt: expect.anything() });
    }
    const life = busy();
    life.result("a", { back: 1, asMessage: false });
    life.replace([], { reason: "clear", activity: LIVE });
    expect(interruptionOf(life.reopened())?.how.kind, "the turn that is at work goes on").toBe("killed");
  });
});

describe("undo (C32)", () => {
  test("brings back what was there, and keeps what was recorded since", () => {
    const life = begun();
    life.step(step({ text: "thought", reasoning: "signed", calls: [call("a")] }));
    life.start();
    const before = life.entries.map(({ id }) => id);
    life.write({ kind: "queue.put", id: "q1", prompt: { role: "user", content: "later" } });
    life.replace([anthropic.user("summary"), ...life.entries.slice(-1)]);
    const result = life.result("text of a", { asMessage: false });
    life.write(
      { kind: "queue.take", id: "q1", withdrawn: true },
      { kind: "queue.put", id: "q2", prompt: { role: "user", content: "later" } },
      { kind: "note", name: "n", value: 1 },
      { kind: "session", title: "new name" },
      { kind: "usage", turn: 1, usage: { inputTokens: 3 } },
      { kind: "patch", id: "m1", metadata: { seen: true } },
    );
    const [since] = life.step(step({ text: "more", reasoning: "signed" }));
    life.undo();
    const found = life.reopened();
    expect(found.items.map(({ entry }) => entry.id)).toEqual([...before, result, since]);
    expect(found.queue.map(({ id }) => id)).toEqual(["q2"]);
    expect(found.attributes).toMatchObject({ title: "new name", notes: { n: 1 } });
    expect(found.usage).toEqual({ inputTokens: 3 });
    expect(found.find("m1")!.entry.metadata).toEqual({ seen: true });
    expect(openCalls(found)).toEqual([]);
    expect(found.changed.saved(), "what was signed since, was signed over the summary").toMatchObject({ until: since });
    expect(
      codeOf(() => life.undo()),
      "once",
    ).toBe("UNDO_TOO_LATE");
    expect(life.accepted()).toBe("");
  });

  test("is too late when there was no replacement, and when a turn began or went on", () => {
    const life = begun();
    expect(codeOf(() => life.undo())).toBe("UNDO_TOO_LATE");
    life.step(step({ text: "done" }));
    life.replace([anthropic.user("summary")]);
    expect(life.conversation.undo).toBe(1);
    life.write({ kind: "turn.resumed", turn: 1, n: 1 });
    expect(codeOf(() => life.undo())).toBe("UNDO_TOO_LATE");
    life.replace(life.entries);
    life.prompt("next");
    expect(codeOf(() => life.undo())).toBe("UNDO_TOO_LATE");
  });

  test("undoes the last of several, and nothing that was never started counts as lost", () => {
    const life = new Life(anthropic);
    life.write({ kind: "opened", intents: true } as never);
    life.prompt("go");
    life.step(step({ calls: [call("a")] }));
    life.replace([anthropic.user("one"), ...life.entries.slice(-1)]);
    const ids = life.entries.map(({ id }) => id);
    life.replace([anthropic.user("two"), ...life.entries.slice(-1)]);
    life.undo();
    expect(life.entries.map(({ id }) => id)).toEqual(ids);
    expect(openCalls(life.reopened()).map(({ state }) => state)).toEqual(["never-started"]);
  });
});

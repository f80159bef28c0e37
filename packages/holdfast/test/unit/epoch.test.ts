import { describe, expect, test } from "vitest";
import { HoldfastError } from "../../src/errors.ts";
import { checkpointOf } from "../../src/session/checkpoint.ts";
import { messagesOf } from "../../src/session/messages.ts";
import type { EpochRecord } from "../../src/session/records.ts";
import { interruptionOf, openCalls, repairForPrompt } from "../../src/session/resume.ts";
import { modelVoices } from "./dialect-voices.ts";
import { call, codeOf, LIVE, Life, STILL, step, voiceOf } from "./epoch-lives.ts";

const anthropic = voiceOf("anthropic");
const responses = voiceOf("openai-responses");

function begun(voice = anthropic): Life {
  const life = new Life(voice);
  life.prompt("go");
  return life;
}

const errorOf = (act: () => unknown): HoldfastError => {
  try {
    act();
  } catch (error) {
    if (error instanceof HoldfastError) return error;
  }
  throw new Error("it was not refused");
};

describe("whole steps (R3, C34)", () => {
  const items = (): { life: Life; ids: string[] } => {
    const life = begun(responses);
    const ids = life.step(step({ reasoning: "signed", text: "I will read", calls: [call("a")] }));
    life.result("text of a");
    life.step(step({ text: "done" }));
    return { life, ids };
  };
  const kept = (life: Life, ...left: string[]) => life.entries.filter(({ id }) => !left.includes(id));

  test("reasoning without its follower, and a follower without its reasoning, is refused", () => {
    const { life, ids } = items();
    for (const id of ids) {
      const error = errorOf(() => life.replace(kept(life, id)));
      expect(error).toMatchObject({ code: "STEP_SPLIT", facts: { ids: [id] } });
      expect(error.message, "it says which belong together").toContain(id);
    }
    expect(life.conversation.epochSeq, "nothing was written").toBe(0);
  });

  test("a tail is made whole where more is left out; not where all that is missing is half a step, nor before the end", () => {
    const { life, ids } = items();
    expect(codeOf(() => life.replace(life.entries.slice(2)))).toBe("nothing");
    life.undo();
    expect(codeOf(() => life.replace(kept(life, "m1", ids[0]!)))).toBe("nothing");
    life.undo();
    expect(codeOf(() => life.replace([life.entries[0]!, ...life.entries.slice(2)]))).toBe("STEP_SPLIT");
    expect(codeOf(() => life.replace([responses.user("summary"), ...life.entries.slice(2, -1)]))).toBe("STEP_SPLIT");
  });

  test("items of one response stay in their order, and nothing comes between them", () => {
    const { life } = items();
    const [prompt, reasoning, said, made, result, done] = life.entries;
    const orders = [
      [prompt, said, reasoning, made, result, done],
      [prompt, reasoning, responses.user("by the way"), said, made, result, done],
      [prompt, reasoning, done, said, made, result],
    ];
    for (const order of orders) expect(codeOf(() => life.replace(order))).toBe("STEP_SPLIT");
  });

  test.each(modelVoices.map((voice) => [voice.dialect.name, voice] as const))(
    "%s: a call goes with its result, and a result with its call",
    (_name, voice) => {
      const life = begun(voice);
      const ids = life.step(step({ calls: [call("a")] }));
      const result = life.result("text of a");
      life.step(step({ text: "done" }));
      expect(errorOf(() => life.replace(kept(life, result)))).toMatchObject({
        code: "STEP_SPLIT",
        facts: { ids: [result] },
      });
      const late = voice.user("steered");
      const [, made, answer] = life.entries;
      expect(errorOf(() => life.replace([late, answer, late]))).toMatchObject({ code: "STEP_SPLIT", facts: { ids } });
      expect(codeOf(() => life.replace([late, made, answer]))).toBe("nothing");
      expect(life.accepted()).toBe("");
    },
  );

  test("another result in the place of the old one will do", () => {
    const life = begun();
    life.step(step({ calls: [call("a")] }));
    life.result("a very long text");
    life.step(step({ text: "done" }));
    const [prompt, made, , done] = life.entries;
    life.replace([prompt, made, anthropic.result(call("a"), "(cleared)", false), done]);
    expect(JSON.stringify(life.view())).toContain("(cleared)");
    expect(JSON.stringify(life.view())).not.toContain("very long");
    expect(life.accepted()).toBe("");
  });

  test("a tail that begins with results, or inside a step, is carried with what belongs to it", () => {
    const life = begun(responses);
    const ids = life.step(step({ reasoning: "signed", calls: [call("a"), call("b")] }));
    const results = [life.result("text of b"), life.result("text of a", { back: 1 })];
    for (const count of [1, 2, 3, 4]) {
      const records = life.replace([responses.user("summary"), ...life.entries.slice(-count)], { life: STILL });
      expect(records.length).toBe(2 + 1 + 5);
      expect(life.entries.slice(1).map(({ id }) => id)).toEqual([...ids, ...results]);
      life.undo();
    }
    expect(life.entries.map(({ id }) => id)).toEqual(["m1", ...ids, ...results]);
  });

  test("what is given twice, or under an id that stands for another message, is refused", () => {
    const { life } = items();
    const [prompt] = life.entries;
    expect(codeOf(() => life.replace([prompt, ...life.entries]))).toBe("MESSAGE_ID_TAKEN");
    expect(codeOf(() => life.replace([{ ...prompt, message: responses.user("other words") }]))).toBe(
      "MESSAGE_ID_TAKEN",
    );
    expect(codeOf(() => life.replace([{ nonsense: true }]))).toBe("MESSAGE_UNFIT");
    expect(
      codeOf(() => life.replace(structuredClone(life.entries))),
      "a copy is as good",
    ).toBe("nothing");
  });
});

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
    life.replace([], { reason: "clear", life: STILL });
    expect(life.entries).toEqual([]);
    life.replace(old, { reason: "rewind", life: STILL });
    const plain = ({ seq: _, ...entry }: (typeof old)[number]) => entry;
    expect(life.entries.map(plain)).toEqual(old.map(plain));
    expect(life.accepted()).toBe("");
  });

  test("what was hidden or edited for the next turn is so in the new epoch, and stays so", () => {
    const life = begun();
    const [first] = life.step(step({ calls: [call("a")] }));
    life.result("secret");
    const [second] = life.step(step({ text: "wordy" }));
    life.write({ kind: "patch", id: first!, metadata: { hiddenFromModel: true } });
    const shown = { id: "short", message: { role: "assistant", content: "short" } };
    life.write({ kind: "edit", id: "e", ids: [second!], shown: [shown], reason: "shorter" });
    expect(JSON.stringify(life.view())).toContain("wordy");
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
});

describe("calls", () => {
  test("a call whose tool runs is not dropped (CALLS_OPEN); one that runs no more is", () => {
    const life = begun();
    life.step(step({ calls: [call("a"), call("b")] }));
    life.start(1);
    const summary = anthropic.user("summary");
    expect(errorOf(() => life.replace([summary]))).toMatchObject({ code: "CALLS_OPEN", facts: { calls: ["a"] } });
    expect(codeOf(() => life.replace([summary, ...life.entries.slice(-1)]))).toBe("nothing");
    expect(
      errorOf(() => life.replace([summary])),
      "also after an epoch",
    ).toMatchObject({ code: "CALLS_OPEN" });
    expect(
      codeOf(() => life.replace([summary], { life: STILL })),
      "of a process that died",
    ).toBe("nothing");
    life.undo();
    const later = { kind: "live", since: life.records.length } as const;
    expect(
      codeOf(() => life.replace([summary], { life: later })),
      "of the process before this one",
    ).toBe("nothing");
    life.undo();
    life.result("done", { back: 1, asMessage: false });
    expect(codeOf(() => life.replace([summary]))).toBe("nothing");
  });

  test("a tool whose result stands in a message runs no more, and its start is not carried", () => {
    const life = begun();
    life.step(step({ calls: [call("a")] }));
    life.start();
    life.result("text of a");
    expect(checkpointOf(life.conversation).started).toHaveLength(1);
    const [epoch] = life.replace([anthropic.user("summary")]) as [EpochRecord];
    expect(epoch.checkpoint.started).toEqual([]);
  });

  test("what was left out before, since it had no result, stays left out: the view does not change", () => {
    const life = begun();
    for (const message of anthropic.step(step({ text: "lost", calls: [call("a")] }), 1)) life.message(message);
    life.message(anthropic.user("never mind"));
    for (const message of anthropic.step(step({ text: "fine" }), 2)) life.message(message);
    const view = life.view();
    expect(JSON.stringify(view)).not.toContain("lost");
    const ids = life.entries.map(({ id }) => id);
    life.replace(life.entries);
    expect(life.entries.map(({ id }) => id)).toEqual(ids);
    expect(life.view()).toEqual(view);
  });

  test("a tool that was told of as still running is running", () => {
    const life = begun();
    const [message] = life.step(step({ calls: [call("a")] }));
    life.start();
    const made = { role: "user", content: [{ type: "tool_result", tool_use_id: "a", content: "Still running" }] };
    const entry = { id: "r", message: made, synthetic: "running", call: { message: message!, index: 0 } };
    life.write({ kind: "repair", turn: 1, entries: [entry] });
    life.step(step({ text: "meanwhile" }));
    expect(codeOf(() => life.replace([anthropic.user("summary")]))).toBe("CALLS_OPEN");
    expect(codeOf(() => life.replace([anthropic.user("summary"), ...life.entries]))).toBe("nothing");
  });

  test("a call that can get no result any more has one from the start of the epoch", () => {
    const life = begun();
    life.step(step({ text: "words to keep", calls: [call("a")] }));
    life.replace([...life.entries, anthropic.user("no, wait"), ...anthropic.step(step({ text: "fine" }), 9)]);
    const made = life.entries.find(({ synthetic }) => synthetic !== undefined)!;
    expect(made).toMatchObject({ call: { message: "m3", index: 0 }, turn: 1 });
    expect(JSON.stringify(life.view())).toContain("words to keep");
    expect(openCalls(life.conversation)).toEqual([]);
    expect(life.accepted()).toBe("");
  });

  test("an array of messages with calls that were never answered can be imported", () => {
    const life = new Life(anthropic);
    const messages = [
      anthropic.user("go"),
      ...anthropic.step(step({ text: "one", calls: [call("a")] }), 1),
      anthropic.user("stop"),
      ...anthropic.step(step({ text: "two", calls: [call("b")] }), 2),
    ];
    life.replace(messages, { reason: "import", life: STILL });
    expect(life.entries.map(({ synthetic }) => synthetic)).toEqual([
      undefined,
      undefined,
      undefined,
      "unrecorded",
      undefined,
    ]);
    expect(life.conversation.changed.saved()).toBeNull();
    expect(life.accepted()).toBe("");
    expect(JSON.stringify(life.view())).toMatch(/one.*two/);
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
    life.replace([], { reason: "clear", life: STILL });
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
    const [second] = life.replace(life.entries.slice(0, 2), { reason: "rewind", life: STILL }) as EpochRecord[];
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
      life.replace(life.entries.slice(0, keep), { reason, life: STILL });
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
    life.replace([], { reason: "clear", life: LIVE });
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

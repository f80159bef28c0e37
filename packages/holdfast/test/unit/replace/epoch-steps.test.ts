import { describe, expect, test } from "vitest";
import type { EpochRecord } from "../../../src/conversation/records/records.ts";
import { HoldfastError } from "../../../src/errors.ts";
import { checkpointOf } from "../../../src/replace/checkpoint.ts";
import { forkRecords } from "../../../src/replace/fork.ts";
import { openCalls } from "../../../src/view/interruption.ts";
import { modelVoices } from "../dialects/dialect-voices.ts";
import { call, codeOf, Life, STILL, step, voiceOf } from "./epoch-lives.ts";

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

  test.each(modelVoices.map((voice) => [voice.dialect.name, voice] as const))(
    "%s: also where both are hidden, since the result is",
    (_name, voice) => {
      const life = begun(voice);
      life.step(step({ text: "I will read", calls: [call("a")] }));
      const result = life.result("text of a");
      life.step(step({ text: "done" }));
      life.write({ kind: "patch", id: result, metadata: { hiddenFromModel: true } });
      life.end();
      life.prompt("and now?");
      expect(JSON.stringify(life.view())).not.toMatch(/I will read|text of a/);
      expect(codeOf(() => life.replace(kept(life, result)))).toBe("STEP_SPLIT");
      const from = life.entries.findIndex(({ id }) => id === result);
      const fork = forkRecords(life.conversation, { from: "s", at: life.entries[from - 1]!.id });
      expect(fork.some((record) => record.kind === "message" && record.id === result)).toBe(true);
      expect(codeOf(() => life.replace([voice.user("summary"), ...life.entries.slice(from)]))).toBe("nothing");
      expect(JSON.stringify(life.view())).not.toMatch(/I will read|text of a/);
      expect(JSON.stringify(life.entries)).toMatch(/I will read.*text of a/);
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
      const records = life.replace([responses.user("summary"), ...life.entries.slice(-count)], { activity: STILL });
      const kinds = ["epoch", "session", "turn.prompt", ...Array(6).fill("message")];
      expect(records.map(({ kind }) => kind)).toEqual(kinds);
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
      codeOf(() => life.replace([summary], { activity: STILL })),
      "of a process that died",
    ).toBe("nothing");
    life.undo();
    const later = { kind: "active", since: life.records.length } as const;
    expect(
      codeOf(() => life.replace([summary], { activity: later })),
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
    life.replace(messages, { reason: "import", activity: STILL });
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

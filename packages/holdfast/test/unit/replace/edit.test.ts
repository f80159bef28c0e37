import { describe, expect, test } from "vitest";
import { editRecord } from "../../../src/replace/edit.ts";
import { messagesOf } from "../../../src/view/messages.ts";
import { modelVoices, type Voice } from "../dialects/dialect-voices.ts";
import { call, codeOf, Life, STILL, step, voiceOf } from "./epoch-lives.ts";

const anthropic = voiceOf("anthropic");
const responses = voiceOf("openai-responses");

interface Edited {
  readonly life: Life;
  /** The messages of the step that makes the calls. */
  readonly made: string[];
  readonly results: string[];
}

/** A step with two calls, their results, and an answer. */
function lived(voice: Voice): Edited {
  const life = new Life(voice);
  life.prompt("go");
  const made = life.step(step({ reasoning: "signed", text: "I will look", calls: [call("a"), call("b")] }));
  const results = [life.result("text of a", { back: 1 }), life.result("text of b")];
  life.step(step({ reasoning: "signed", text: "done" }));
  return { life, made, results };
}

function edit(life: Life, ids: readonly string[], shown: readonly unknown[], now = true): readonly string[] {
  const stored = shown.map((message) => life.stored(message));
  const record = editRecord(life.conversation, ids, stored, { reason: "shorter", now }, () => life.newId());
  life.write(record);
  return record.ids;
}

describe.each(modelVoices.map((voice) => [voice.dialect.name, voice] as const))("%s", (_name, voice) => {
  test("R12: a step in other words takes its results along", () => {
    const { life, made, results } = lived(voice);
    expect(edit(life, [...made].reverse(), voice.step(step({ text: "I looked" }), 7))).toEqual([...made, ...results]);
    expect(JSON.stringify(life.view())).toContain("I looked");
    expect(JSON.stringify(life.view())).not.toContain("text of");
    for (const id of [...made, ...results]) expect(life.conversation.find(id)!.entry.replacedBy).toBeDefined();
    expect(messagesOf(life.reopened(), STILL)).toEqual(life.view(STILL));
    expect(life.accepted()).toBe("");
  });

  test("R12: results are cleared one by one", () => {
    const { life, results } = lived(voice);
    expect(edit(life, [results[0]!], [voice.result(call("a"), "(cleared)", false)])).toEqual([results[0]]);
    expect(edit(life, [results[1]!], [voice.result(call("b"), "(cleared)", false)])).toEqual([results[1]]);
    expect(JSON.stringify(life.view())).not.toContain("text of");
    expect(JSON.stringify(life.view()).split("(cleared)")).toHaveLength(3);
    expect(life.accepted()).toBe("");
  });

  test("R12: with nothing in its place, it is left out", () => {
    const { life, made, results } = lived(voice);
    expect(edit(life, made, [])).toEqual([...made, ...results]);
    expect(JSON.stringify(life.view())).not.toMatch(/look|text of/);
    expect(life.accepted()).toBe("");
  });

  test("a call that is made again keeps its result", () => {
    const { life, made, results } = lived(voice);
    const shorter = voice.step(step({ calls: [call("a"), call("b")] }), 7);
    expect(edit(life, made, shorter)).toEqual(made);
    for (const id of results) expect(life.conversation.find(id)!.entry.replacedBy).toBeUndefined();
    expect(JSON.stringify(life.view())).toMatch(/text of a.*text of b/);
    expect(life.accepted()).toBe("");
  });

  test("R1: without `now` it reaches the model with the next turn", () => {
    const { life, made } = lived(voice);
    const before = life.view();
    edit(life, made, voice.step(step({ text: "I looked" }), 7), false);
    expect(life.view()).toEqual(before);
    expect(life.accepted()).toBe("");
    expect(JSON.stringify(life.view())).toContain("I looked");
  });

  test("a call is not left without its result", () => {
    const { life, made, results } = lived(voice);
    const refused = [
      [[results[0]], []],
      [[results[0]], [voice.user("it was long")]],
      [[results[0]], [voice.result(call("nobody"), "(cleared)", false)]],
      [made, voice.step(step({ calls: [call("new")] }), 7)],
    ] as const;
    for (const [ids, shown] of refused) {
      expect(
        codeOf(() => edit(life, ids as string[], shown)),
        JSON.stringify(shown),
      ).toBe("STEP_SPLIT");
    }
    expect(life.entries.every(({ replacedBy }) => replacedBy === undefined)).toBe(true);
  });

  test("nor is one that is hidden at the moment, with its results: it could be shown again", () => {
    const { life, made, results } = lived(voice);
    life.write({ kind: "patch", id: results[0]!, metadata: { hiddenFromModel: true } });
    expect(codeOf(() => edit(life, results, [voice.user("they were long")]))).toBe("STEP_SPLIT");
    expect(edit(life, made, [voice.user("it looked")])).toEqual([...made, ...results]);
    expect(JSON.stringify(life.view())).not.toMatch(/I will look|text of/);
    expect(life.accepted()).toBe("");
  });
});

describe("which messages can be edited", () => {
  test("C34: whole steps", () => {
    const { life, made } = lived(responses);
    for (const id of made) expect(codeOf(() => edit(life, [id], [responses.user("x")]))).toBe("STEP_SPLIT");
    expect(codeOf(() => edit(life, made.slice(1), []))).toBe("STEP_SPLIT");
  });

  test("those that are there, and are shown", () => {
    const { life, made } = lived(anthropic);
    expect(codeOf(() => edit(life, ["nobody"], []))).toBe("MESSAGE_UNKNOWN");
    expect(codeOf(() => edit(life, [], [anthropic.user("x")]))).toBe("MESSAGE_UNKNOWN");
    expect(codeOf(() => edit(life, made, [{ role: 7 }]))).toBe("MESSAGE_UNFIT");
    edit(life, made, anthropic.step(step({ text: "I looked" }), 7));
    expect(codeOf(() => edit(life, made, []))).toBe("MESSAGE_UNKNOWN");
    const { replacedBy } = life.conversation.find(made[0]!)!.entry;
    expect(edit(life, [replacedBy!], anthropic.step(step({ text: "I looked, briefly" }), 8))).toEqual([replacedBy]);
    expect(JSON.stringify(life.view())).toContain("briefly");
    expect(life.accepted()).toBe("");
  });

  test("what stands beside a result stays when its call goes", () => {
    const life = new Life(anthropic);
    life.prompt("go");
    const made = life.step(step({ calls: [call("a")] }));
    const result = { type: "tool_result", tool_use_id: "a", content: "text of a" };
    life.message({ role: "user", content: [result, { type: "text", text: "and hurry" }] });
    life.step(step({ text: "done" }));
    expect(edit(life, made, anthropic.step(step({ text: "I looked" }), 7))).toEqual(made);
    expect(JSON.stringify(life.view())).toContain("and hurry");
    expect(JSON.stringify(life.view())).not.toContain("text of a");
    expect(life.accepted()).toBe("");
  });

  test("a message that answers another call, too, stays when the first call goes", () => {
    const life = new Life(anthropic);
    life.prompt("go");
    const [first, second] = ["a", "b"].map((id) => life.message(anthropic.step(step({ calls: [call(id)] }), 1)[0]));
    const results = ["a", "b"].map((id) => ({ type: "tool_result", tool_use_id: id, content: `text of ${id}` }));
    const both = life.message({ role: "user", content: results });
    life.step(step({ text: "done" }));
    expect(edit(life, [first!], [])).toEqual([first]);
    expect(JSON.stringify(life.view())).toContain("text of b");
    expect(JSON.stringify(life.view())).not.toContain("text of a");
    expect(edit(life, [second!], [])).toEqual([second, both]);
    expect(life.accepted()).toBe("");
  });

  test("what an edit will show at the next turn can be edited before that", () => {
    const { life, made, results } = lived(anthropic);
    edit(life, made, anthropic.step(step({ calls: [call("a"), call("b")] }), 7), false);
    const { replacedBy } = life.conversation.find(made[0]!)!.entry;
    expect(edit(life, [replacedBy!], [], false)).toEqual([replacedBy, ...results]);
    expect(life.accepted()).toBe("");
    expect(JSON.stringify(life.view())).not.toContain("text of");
  });

  test("results that were recorded as one step go together, or stay", () => {
    const chat = voiceOf("openai-chat");
    const life = new Life(chat);
    life.prompt("go");
    const made = life.step(step({ calls: [call("a"), call("b")] }));
    const results = ["a", "b"].map((id) =>
      life.message(chat.result(call(id), `text of ${id}`, false), { step: "both" }),
    );
    life.step(step({ text: "done" }));
    expect(edit(life, made, chat.step(step({ text: "I looked" }), 7))).toEqual([...made, ...results]);
    expect(life.accepted()).toBe("");
  });
});

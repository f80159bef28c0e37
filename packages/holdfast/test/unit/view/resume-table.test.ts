import { describe, expect, test } from "vitest";
import { interruptionOf, openCalls } from "../../../src/view/interruption.ts";
import { END_REPAIRS, type ResumeOptions, repairForPrompt, synthesizeResult } from "../../../src/view/repairs.ts";
import { Book } from "../conversation/fold-book.ts";
import { type MadeCall, type MadeStep, modelVoices, type Voice } from "../dialects/dialect-voices.ts";
import { judges, told } from "../dialects/provider-judges.ts";

/**
 * The resume table (view/repairs.ts), row by row: records in; what the interruption says, and what is sent with a new
 * prompt (P) and with `resumeTurn` (R), judged by the providers' rules.
 */

const callOf = (id: string, name = "read"): MadeCall => ({ id, name, input: "whole" });
const stepOf = (of: Partial<MadeStep>): MadeStep => ({
  reasoning: "none",
  text: null,
  calls: [],
  after: null,
  provider: "none",
  ...of,
});

interface Scene {
  readonly voice: Voice;
  readonly book: Book;
  /** The step, in the dialect; answers the id of the message that holds each call. */
  step(of: Partial<MadeStep>): { message: string; index: number }[];
  result(id: string, text: string): string;
  started(place: { message: string; index: number }, call: string, members?: object): void;
  ended(place: { message: string; index: number }, call: string, members?: object): string;
}

interface Row {
  readonly row: string;
  /** Its writer records every start. */
  readonly intents?: boolean;
  /** Only where the dialect has such a thing. */
  readonly only?: readonly string[];
  readonly happens: (scene: Scene) => void;
  readonly calls?: readonly string[];
  readonly answered?: boolean;
  readonly draft?: string;
  /** Why each entry was made up. */
  readonly P: readonly string[];
  readonly R: readonly string[];
  readonly rerun?: readonly string[];
  readonly keep?: readonly string[];
  /** In what is sent with a prompt. */
  readonly words?: readonly RegExp[];
  /** Nowhere in it. */
  readonly not?: readonly RegExp[];
  /** The view of the resumed turn may end with a call that somebody else has not finished with. */
  readonly open?: boolean;
}

const draft = (scene: Scene, parts: object[], n = 0): void =>
  scene.book.write({ kind: "draft", id: "d1", turn: 1, n, parts });

const rows: readonly Row[] = [
  { row: "prompt only", happens: () => {}, P: ["boundary"], R: [], words: [/the process died/] },
  {
    row: "last message is an answer without open calls",
    happens: ({ step }) => step({ text: "Done." }),
    answered: true,
    P: [],
    R: ["boundary"],
    words: [/Done\./],
    not: [/interrupted/],
  },
  {
    row: "an answer that says nothing is none",
    happens: ({ step }) => step({ text: "  " }),
    P: ["boundary"],
    R: [],
  },
  {
    row: "draft with text",
    happens: (scene) => {
      draft(scene, [{ part: 0, text: "Half an " }]);
      draft(scene, [{ part: 0, text: "answ" }], 1);
    },
    draft: "Half an answ",
    P: ["draft", "boundary"],
    R: [],
    keep: ["draft", "boundary"],
    words: [/Half an answ/, /cut off/],
  },
  {
    row: "draft of reasoning",
    happens: (scene) => draft(scene, [{ part: 0, reasoning: "secret" }]),
    draft: "",
    P: ["boundary"],
    R: [],
    not: [/secret/],
  },
  {
    row: "draft of tool input",
    happens: (scene) => draft(scene, [{ part: 0, call: { id: "call_1", name: "read" }, input: '{"pa' }]),
    draft: "",
    P: ["boundary"],
    R: [],
    not: [/\{"pa/],
  },
  {
    row: "draft of white space",
    happens: (scene) => draft(scene, [{ part: 0, text: " \n" }]),
    draft: " \n",
    P: ["boundary"],
    R: [],
  },
  {
    row: "discarded draft",
    happens: (scene) => {
      draft(scene, [{ part: 0, text: "wrong words" }]);
      scene.book.write({ kind: "draft", id: "d1", turn: 1, n: 1, discarded: "retry" });
    },
    P: ["boundary"],
    R: [],
    not: [/wrong words/],
  },
  {
    row: "draft behind an answer",
    happens: (scene) => {
      scene.step({ text: "Done." });
      draft(scene, [{ part: 0, text: "And more" }]);
    },
    draft: "And more",
    P: ["draft", "boundary"],
    R: ["boundary"],
    keep: ["draft", "boundary"],
  },
  {
    row: "call, starts recorded, none for it",
    intents: true,
    happens: ({ step }) => step({ text: "I read.", calls: [callOf("call_1")] }),
    calls: ["never-started"],
    P: ["never-started", "boundary"],
    R: ["never-started"],
    rerun: [],
    words: [/never started: it is safe to run/],
  },
  {
    row: "call, starts not recorded",
    happens: ({ step }) => step({ calls: [callOf("call_1")] }),
    calls: ["unrecorded"],
    P: ["unrecorded", "boundary"],
    R: ["unrecorded"],
    rerun: ["unrecorded"],
    words: [/may have run: check before repeating/],
    not: [/safe to run/],
  },
  {
    row: "`tool.started` only",
    intents: true,
    happens: ({ step, started }) => started(step({ calls: [callOf("call_1")] })[0]!, "call_1"),
    calls: ["outcome-unknown"],
    P: ["outcome-unknown", "boundary"],
    R: ["outcome-unknown"],
    rerun: ["outcome-unknown"],
    words: [/Started, then the process died: outcome unknown/],
  },
  {
    row: "`tool.started` only, of a tool that may run twice",
    intents: true,
    happens: ({ step, started }) => started(step({ calls: [callOf("call_1")] })[0]!, "call_1", { replay: "safe" }),
    calls: ["outcome-unknown"],
    P: ["outcome-unknown", "boundary"],
    R: ["outcome-unknown"],
    rerun: [],
  },
  {
    row: "`tool.started` only, after an abort",
    intents: true,
    happens: ({ step, started, book }) => {
      started(step({ calls: [callOf("call_1")] })[0]!, "call_1");
      book.write({ kind: "turn.ended", turn: 1, outcome: "aborted", by: "Anna", reason: "too slow" });
    },
    calls: ["outcome-unknown"],
    P: ["outcome-unknown", "boundary"],
    R: ["outcome-unknown"],
    rerun: ["outcome-unknown"],
    words: [/Was running when Anna stopped it \(too slow\): it may have taken effect/],
  },
  {
    row: "`tool.ended`, no message",
    intents: true,
    happens: ({ step, started, ended }) => {
      const [place] = step({ calls: [callOf("call_1")] });
      started(place!, "call_1");
      ended(place!, "call_1", { value: "the content" });
    },
    calls: [],
    P: ["boundary"],
    R: [],
    words: [/the content/],
    not: [/outcome unknown/],
  },
  {
    row: "`tool.ended` after the abort",
    intents: true,
    happens: ({ step, started, ended, book }) => {
      const [place] = step({ calls: [callOf("call_1")] });
      started(place!, "call_1");
      book.write({ kind: "turn.ended", turn: 1, outcome: "aborted", by: "user" });
      ended(place!, "call_1", { error: "it broke" });
    },
    calls: [],
    P: ["boundary"],
    R: [],
    words: [/it broke/],
  },
  {
    row: "call awaiting approval",
    intents: true,
    happens: ({ step, book }) => {
      step({ calls: [callOf("call_1")] });
      book.write({ kind: "turn.suspended", turn: 1, reason: "approval", calls: ["call_1"] });
    },
    calls: ["awaiting"],
    P: ["awaiting", "boundary"],
    R: ["awaiting"],
    rerun: ["awaiting"],
    words: [/not approved, and did not run/],
  },
  {
    row: "the provider's call without result, last",
    only: ["anthropic", "openai-responses", "gemini", "ai-sdk"],
    happens: ({ step }) => step({ text: "I search.", provider: "unfinished" }),
    calls: ["provider"],
    P: ["boundary"],
    R: [],
    rerun: [],
    open: true,
  },
  {
    row: "the provider's call without result, beside one that is ours",
    only: ["anthropic", "openai-responses", "gemini", "ai-sdk"],
    intents: true,
    happens: ({ step }) => step({ text: "I search.", provider: "unfinished", calls: [callOf("call_1")] }),
    calls: ["provider", "never-started"],
    P: ["never-started", "boundary"],
    R: ["never-started"],
    rerun: [],
    open: true,
  },
  {
    row: "some of several results",
    intents: true,
    happens: ({ step, result }) => {
      step({ calls: [callOf("call_1"), callOf("call_2"), callOf("call_3")] });
      result("call_2", "second");
    },
    calls: ["never-started", "never-started"],
    P: ["never-started", "never-started", "boundary"],
    R: ["never-started", "never-started"],
    rerun: [],
    words: [/never started.*second.*never started/],
  },
  {
    row: "result without call; second result",
    happens: ({ step, result }) => {
      step({ calls: [callOf("call_1")] });
      result("call_1", "the first");
      result("call_1", "the second");
      result("nobody", "an orphan");
    },
    P: ["boundary"],
    R: [],
    words: [/the first/],
    not: [/the second/, /an orphan/],
  },
  {
    row: "result after a later assistant message",
    happens: ({ step, result, book }) => {
      step({ calls: [callOf("call_1"), callOf("call_2")] });
      result("call_2", "in time");
      book.write({
        kind: "repair",
        turn: 1,
        entries: openCalls(book.conversation).flatMap((call) =>
          synthesizeResult(book.conversation.dialect, call, { kind: "completed" }),
        ),
      });
      step({ text: "I went on.", calls: [callOf("call_9")] });
      result("call_9", "the ninth");
      const id = result("call_1", "far too late");
      expect(book.conversation.find(id)!.entry.late).toBe(true);
    },
    P: ["boundary"],
    R: [],
    words: [/in time/, /the ninth/],
    not: [/far too late/],
  },
  {
    row: "started without a recorded call",
    intents: true,
    happens: ({ book }) => book.started(null, 0, "call_1", "deploy", { input: { to: "production" } }),
    calls: ["outcome-unknown"],
    P: ["boundary"],
    R: ["boundary"],
    words: [/deploy/, /unknown outcome/],
  },
  {
    row: "started and ended without a recorded call",
    intents: true,
    happens: ({ book }) => {
      book.started(null, 0, "call_1", "deploy");
      book.ended(null, 0, "call_1", "deploy", { value: 1 });
    },
    calls: [],
    P: ["boundary"],
    R: ["boundary"],
    words: [/Ran to completion, but the call was not recorded: deploy/],
  },
  {
    row: "failed",
    happens: ({ book }) => book.write({ kind: "turn.ended", turn: 1, outcome: "failed", error: "429" }),
    P: ["boundary"],
    R: [],
    words: [/it failed \(429\)/],
  },
  {
    row: "signal",
    happens: ({ book }) => book.write({ kind: "signal", signal: "SIGHUP" }),
    P: ["boundary"],
    R: [],
    words: [/ended by SIGHUP/],
  },
  {
    row: "an error that nobody caught",
    happens: ({ book }) => book.write({ kind: "signal", signal: "uncaughtException", error: "x is not a function" }),
    P: ["boundary"],
    R: [],
    words: [/it failed \(x is not a function\)/],
  },
  {
    row: "suspended",
    happens: ({ book }) => book.write({ kind: "turn.suspended", turn: 1, reason: "which branch?" }),
    P: ["boundary"],
    R: [],
    words: [/it waited for a person \(which branch\?\)/],
  },
];

function played(voice: Voice, { happens, intents = false }: Row): Book {
  const book = new Book(voice.dialect, { intents });
  book.prompt(voice.user("go"));
  let serial = 0;
  happens({
    voice,
    book,
    step: (of) => {
      const messages = judges[voice.dialect.name]!.signed(voice.step(stepOf(of), serial++), book.live());
      const ids = book.say(messages);
      return messages.flatMap((message, at) =>
        voice.dialect
          .calls(message)
          .map(({ by }, index) => ({ by, message: ids[at]!, index }))
          .filter(({ by }) => by === "agent"),
      );
    },
    result: (id, text) => book.say([voice.result(callOf(id), text, false)])[0]!,
    started: ({ message, index }, call, members) => book.started(message, index, call, "read", members),
    ended: ({ message, index }, call, members) => book.ended(message, index, call, "read", members),
  });
  // The process is gone, and another one looks.
  book.open({ intents });
  return book;
}

const why = (entries: readonly { synthetic: string }[]): string[] => entries.map(({ synthetic }) => synthetic);

describe.each(modelVoices.map((voice) => [voice.dialect.name, voice] as const))("%s", (name, voice) => {
  const judge = (book: Book, view: readonly unknown[], open = false): string => {
    // The items of each response, as they came.
    const steps = new Map<string, unknown[]>();
    for (const { entry, role, from } of book.conversation.items) {
      if (role !== "assistant" || from !== "message") continue;
      steps.set(entry.step, [...(steps.get(entry.step) ?? []), entry.message]);
    }
    return told(judges[name]!.judge(view, [...steps.values()], open));
  };
  const mine = rows.filter(({ only }) => only === undefined || only.includes(name));

  test.each(mine.map((row) => [row.row, row] as const))("interruption: %s", (_, row) => {
    const interruption = interruptionOf(played(voice, row).conversation)!;
    expect(interruption.calls.map(({ state }) => state)).toEqual(row.calls ?? []);
    expect(interruption.answered).toBe(row.answered ?? false);
    expect(interruption.draft?.text).toBe(row.draft);
    expect(interruption.resumes).toBe(0);
  });

  test.each(mine.map((row) => [row.row, row] as const))("P, with a new prompt: %s", (_, row) => {
    const book = played(voice, row);
    // Whoever looks, and adds a prompt by himself, is understood too; but for what the provider is still to finish.
    if (!row.open) expect(judge(book, [...book.still(), voice.user("and now?")])).toBe("");
    expect(why(book.prompt(voice.user("and now?")))).toEqual(row.P);
    expect(judge(book, book.live())).toBe("");
    const sent = JSON.stringify(book.live());
    for (const words of row.words ?? []) expect(sent).toMatch(words);
    for (const words of row.not ?? []) expect(sent).not.toMatch(words);
    expect(openCalls(book.conversation).filter(({ state }) => state !== "provider")).toEqual([]);
  });

  const options: readonly [string, ResumeOptions, (row: Row) => readonly string[]][] = [
    ["R", {}, ({ R }) => R],
    ["R with rerun", { calls: "rerun" }, ({ rerun, R }) => rerun ?? R],
    ["R with the draft kept", { draft: "keep" }, ({ keep, R }) => keep ?? R],
  ];
  describe.each(options)("%s", (_, option, expected) => {
    test.each(mine.map((row) => [row.row, row] as const))("%s", (_, row) => {
      const book = played(voice, row);
      const before = book.still();
      const made = book.resume(option);
      expect(why(made)).toEqual(expected(row));
      expect(judge(book, book.live(), row.open)).toBe("");
      if (made.length === 0 && (row.calls ?? []).length === 0) expect(book.live()).toEqual(before);
      expect(interruptionOf(book.conversation)!.resumes).toBe(1);
    });
  });

  test("R: as a function decides", () => {
    const book = new Book(voice.dialect, { intents: true });
    book.prompt(voice.user("go"));
    const step = voice.step(stepOf({ calls: [callOf("call_1"), callOf("call_2"), callOf("call_3")] }), 0);
    book.say(judges[name]!.signed(step, book.live()));
    const decided: string[] = [];
    book.resume({
      calls: (call) => {
        decided.push(call.id);
        return call.id === "call_1" ? "close" : call.id === "call_2" ? "keep" : { value: "asked the user" };
      },
    });
    expect(decided).toEqual(["call_1", "call_2", "call_3"]);
    expect(openCalls(book.conversation).map(({ id }) => id)).toEqual(["call_2"]);
    expect(JSON.stringify(book.live())).toMatch(/never started.*Not run yet.*asked the user/);
    expect(judge(book, book.live())).toBe("");
  });

  test("the first request after a resume is the one that died", () => {
    const book = new Book(voice.dialect);
    book.prompt(voice.user("go"));
    book.say(voice.step(stepOf({ calls: [callOf("call_1")] }), 0));
    book.say([voice.result(callOf("call_1"), "done", false)]);
    const sent = book.live();
    book.write({ kind: "draft", id: "d1", turn: 1, n: 0, parts: [{ part: 0, text: "Some words" }] });
    book.open();
    book.resume();
    expect(book.live()).toEqual(sent);
  });
});

test("the tables of the code are those of this file", () => {
  const no = { incomplete: false, boundary: false };
  const boundary = { incomplete: false, boundary: true };
  const both = { incomplete: true, boundary: true };
  expect(END_REPAIRS).toEqual({
    completed: { P: no, R: no, keep: no },
    answered: { P: no, R: boundary, keep: boundary },
    draft: { P: both, R: no, keep: both },
    "draft behind an answer": { P: both, R: boundary, keep: both },
    cut: { P: boundary, R: no, keep: no },
  });
});

test("a turn that completed has nothing to repair", () => {
  const [voice] = modelVoices;
  const book = new Book(voice!.dialect);
  book.prompt(voice!.user("go"));
  book.say(voice!.step(stepOf({ text: "Done." }), 0));
  book.write({ kind: "turn.ended", turn: 1, outcome: "completed" });
  expect(interruptionOf(book.conversation)).toBeNull();
  expect(repairForPrompt(book.conversation)).toEqual([]);
});

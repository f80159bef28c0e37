import { describe, expect, test } from "vitest";
import { interruptionOf } from "../../../src/view/interruption.ts";
import { messagesOf } from "../../../src/view/messages.ts";
import { planResume, repairForPrompt } from "../../../src/view/repairs.ts";
import { Book } from "../conversation/fold-book.ts";
import { type MadeCall, type MadeStep, type Voice, voices } from "../dialects/dialect-voices.ts";
import { stepsOf } from "./steps.ts";

/**
 * How a conversation is paired, folded and shown takes time that grows with its length, and not with its square. Steps
 * are counted (steps.ts), at a length and at twice that. In the first release, 8,000 calls of an ACP agent took seconds
 * at the start of a turn.
 */
const stepOf = (of: Partial<MadeStep>): MadeStep => ({
  reasoning: "none",
  text: null,
  calls: [],
  after: null,
  provider: "none",
  ...of,
});
const callOf = (id: string | null, name = "read"): MadeCall => ({ id, name, input: "whole" });
const range = (n: number): number[] => Array.from({ length: n }, (_, at) => at);
type WithParts = { readonly parts?: readonly unknown[]; readonly content?: readonly unknown[] };
type Scene = (book: Book, voice: Voice, n: number) => void;

function calls(
  book: Book,
  voice: Voice,
  made: readonly MadeCall[],
  serial = 0,
): { message: string; index: number; id: string }[] {
  const messages = voice.step(stepOf({ calls: made }), serial);
  const ids = book.say(messages);
  return messages.flatMap((message, at) =>
    voice.dialect.calls(message).map(({ id }, index) => ({ message: ids[at]!, index, id })),
  );
}
const scenes: Record<string, Scene> = {
  turns: (book, voice, n) => {
    for (const at of range(n)) {
      book.prompt(voice.user("go"));
      calls(book, voice, [callOf(`c${at}`)], at);
      book.say([voice.result(callOf(`c${at}`), "ok", false)]);
      book.say(voice.step(stepOf({ text: "done", reasoning: "signed" }), n + at));
      book.write({ kind: "turn.ended", turn: at + 1, outcome: "completed" });
    }
  },
  "parallel, in order": (book, voice, n) => {
    book.prompt(voice.user("go"));
    calls(
      book,
      voice,
      range(n).map((at) => callOf(`c${at}`)),
    );
    for (const at of range(n)) book.say([voice.result(callOf(`c${at}`), "ok", false)]);
  },
  "parallel, reversed": (book, voice, n) => {
    book.prompt(voice.user("go"));
    calls(
      book,
      voice,
      range(n).map((at) => callOf(`c${at}`)),
    );
    for (const at of range(n)) book.say([voice.result(callOf(`c${n - 1 - at}`), "ok", false)]);
  },
  "ended, then messages": (book, voice, n) => {
    book.prompt(voice.user("go"));
    const places = calls(
      book,
      voice,
      range(n).map((at) => callOf(`c${at}`)),
    );
    for (const { message, index, id } of places) book.started(message, index, id, "read");
    for (const { message, index, id } of places) book.ended(message, index, id, "read", { value: 1 });
    for (const at of range(n)) book.say([voice.result(callOf(`c${at}`), "ok", false)]);
  },
  ended: (book, voice, n) => {
    book.prompt(voice.user("go"));
    const places = calls(
      book,
      voice,
      range(n).map((at) => callOf(`c${at}`)),
    );
    for (const { message, index, id } of places) book.ended(message, index, id, "read", { value: 1 });
  },
  open: (book, voice, n) => {
    book.prompt(voice.user("go"));
    calls(
      book,
      voice,
      range(n).map((at) => callOf(`c${at}`)),
    );
  },
  "open, closed by a prompt": (book, voice, n) => {
    book.prompt(voice.user("go"));
    calls(
      book,
      voice,
      range(n).map((at) => callOf(`c${at}`)),
    );
    book.prompt(voice.user("and?"));
  },
  "steps in a row": (book, voice, n) => {
    book.prompt(voice.user("go"));
    for (const at of range(n)) calls(book, voice, [callOf(`c${at}`)], at);
    for (const at of range(n)) book.say([voice.result(callOf(`c${at}`), "ok", false)]);
  },
  "one id": (book, voice, n) => {
    book.prompt(voice.user("go"));
    for (const at of range(n)) calls(book, voice, [callOf("c")], at);
    for (const _ of range(n)) book.say([voice.result(callOf("c"), "ok", false)]);
  },
  "one id, a result each": (book, voice, n) => {
    book.prompt(voice.user("go"));
    for (const at of range(n)) {
      calls(book, voice, [callOf("c")], at);
      book.say([voice.result(callOf("c"), "ok", false)]);
    }
  },
  "one id, ended and message": (book, voice, n) => {
    book.prompt(voice.user("go"));
    const places = range(n).flatMap((at) => calls(book, voice, [callOf("c")], at));
    for (const { message, index, id } of places) book.ended(message, index, id, "read", { value: 1 });
    for (const _ of range(n)) book.say([voice.result(callOf("c"), "ok", false)]);
  },
  "no ids": (book, voice, n) => {
    book.prompt(voice.user("go"));
    calls(
      book,
      voice,
      range(n).map(() => callOf(null)),
    );
    for (const _ of range(n)) book.say([voice.result(callOf(null), "ok", false)]);
  },
  "no ids, ended and message": (book, voice, n) => {
    book.prompt(voice.user("go"));
    const places = calls(
      book,
      voice,
      range(n).map(() => callOf(null)),
    );
    for (const { message, index, id } of places) book.ended(message, index, id, "read", { value: 1 });
    for (const _ of range(n)) book.say([voice.result(callOf(null), "ok", false)]);
  },
  "results in one message": (book, voice, n) => {
    book.prompt(voice.user("go"));
    calls(
      book,
      voice,
      range(n).map((at) => callOf(`c${at}`)),
    );
    const results = range(n).map((at) => voice.result(callOf(`c${at}`), "ok", false) as WithParts);
    const list = results[0]!.parts ? "parts" : "content";
    const isOneEach = voice.dialect.name.startsWith("openai") || voice.dialect.name === "acp";
    book.say(isOneEach ? results : [{ ...results[0], [list]: results.flatMap((one) => one[list]) }]);
  },
  orphans: (book, voice, n) => {
    book.prompt(voice.user("go"));
    calls(
      book,
      voice,
      range(n).map((at) => callOf(`c${at}`)),
    );
    for (const at of range(n)) book.say([voice.result(callOf(`x${at}`), "ok", false)]);
  },
  late: (book, voice, n) => {
    book.prompt(voice.user("go"));
    calls(
      book,
      voice,
      range(n).map((at) => callOf(`c${at}`)),
    );
    book.say([voice.user("hm")]);
    book.say(voice.step(stepOf({ text: "so" }), 1));
    for (const at of range(n)) book.say([voice.result(callOf(`c${at}`), "ok", false)]);
  },
  "provider's, unfinished": (book, voice, n) => {
    book.prompt(voice.user("go"));
    for (const at of range(n)) book.say(voice.step(stepOf({ text: "a", provider: "unfinished" }), at));
  },
  "provider's, finished": (book, voice, n) => {
    book.prompt(voice.user("go"));
    for (const at of range(n))
      book.say(voice.step(stepOf({ text: "a", provider: "finished", reasoning: "signed" }), at));
  },
  "steered n times": (book, voice, n) => {
    book.prompt(voice.user("go"));
    for (const _ of range(n)) book.say([voice.user("more")]);
    for (const _ of range(n)) book.say([voice.system("sys")]);
    book.say(voice.step(stepOf({ text: "a" }), 1));
  },
  "system and answers": (book, voice, n) => {
    for (const _ of range(n)) book.say([voice.system("sys")]);
    book.prompt(voice.user("go"));
    for (const at of range(n)) {
      book.say(voice.step(stepOf({ text: "a" }), at));
      book.say([voice.user("more")]);
    }
  },
  hidden: (book, voice, n) => {
    book.prompt(voice.user("go"));
    const made = range(n).map((at) => {
      const [place] = calls(book, voice, [callOf(`c${at}`)], at);
      book.say([voice.result(callOf(`c${at}`), "ok", false)]);
      return place!.message;
    });
    for (const id of made) book.write({ kind: "patch", id, metadata: { hiddenFromModel: true } });
    book.write({ kind: "turn.ended", turn: 1, outcome: "completed" });
    book.prompt(voice.user("go"));
  },
  "hidden as they come": (book, voice, n) => {
    book.prompt(voice.user("go"));
    for (const at of range(n)) book.say(voice.step(stepOf({ text: "a" }), at), { metadata: { hiddenFromModel: true } });
  },
  "a long answer behind steering": (book, voice, n) => {
    book.prompt(voice.user("go"));
    const asked = book.head;
    book.say([voice.user("more")]);
    book.write({ kind: "repair", turn: 1, asked, entries: [] });
    book.say(range(n).flatMap((at) => voice.step(stepOf({ text: "a" }), at)));
  },
  "provider's, unfinished, with prompts": (book, voice, n) => {
    for (const at of range(n)) {
      book.prompt(voice.user("go"));
      book.say(voice.step(stepOf({ text: "a", provider: "unfinished" }), at));
    }
  },
  "reports on one call": (book, voice, n) => {
    book.prompt(voice.user("go"));
    calls(book, voice, [callOf("c")]);
    for (const at of voice.dialect.name === "acp" ? range(n) : [])
      book.say([{ sessionUpdate: "tool_call_update", toolCallId: "c", [`key${at}`]: 1 }]);
    book.say([voice.result(callOf("c"), "ok", false)]);
  },
  "steered while it answered, n times": (book, voice, n) => {
    book.prompt(voice.user("go"));
    for (const at of range(n)) {
      const asked = book.head;
      book.say([voice.user("more")]);
      book.write({ kind: "repair", turn: 1, asked, entries: [] });
      book.say(voice.step(stepOf({ text: "a" }), at));
    }
  },
};

/** Everything that is done with a conversation of this length. */
async function cost(voice: Voice, scene: Scene, n: number): Promise<{ fold: number; read: number }> {
  const { dialect } = voice;
  const book = new Book(dialect, { intents: true });
  scene(book, voice, n);
  let conversation = book.conversation;
  const fold = await stepsOf(() => {
    conversation = book.again();
  });
  const entries = conversation.items.map(({ entry: one }) => one);
  const read = await stepsOf(() => {
    messagesOf(conversation, { kind: "idle" });
    messagesOf(conversation, { kind: "active", since: 3 });
    interruptionOf(conversation);
    repairForPrompt(conversation);
    planResume(conversation, { calls: "rerun" });
    dialect.arrange(entries, { changedAt: entries[0]!.id, next: "prompt" });
  });
  return { fold, read };
}

describe.each(voices.map((voice) => [voice.dialect.name, voice] as const))(
  "P7: %s: twice the length takes twice the steps",
  (_, voice) => {
    test.each(Object.entries(scenes))("%s", async (_name, scene) => {
      const [some, twice] = [await cost(voice, scene, 40), await cost(voice, scene, 80)];
      // What does not depend on the length is a few hundred steps; a square would be four times as many.
      expect(twice.fold).toBeLessThan(2.3 * some.fold + 500);
      expect(twice.read).toBeLessThan(2.3 * some.read + 500);
    });
  },
);

test("the steps are counted: a square is seen", async () => {
  const list = Array.from({ length: 100 }, (_, at) => at);
  const square = await stepsOf(() => list.filter((at) => list.slice(0, at).includes(-1)));
  expect(square).toBeGreaterThan(100 * 50);
});

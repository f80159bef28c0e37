import { readFileSync } from "node:fs";
import { type Dialect, dialects, mapDialect } from "holdfast";
import { describe, expect, test } from "vitest";
import { type Note, notes } from "../../../../../examples/own-dialect.ts";
import { voiceNames, voiceOf } from "../../../src/conversations/voices.ts";
import { type DialectSubject, describeDialect, dialectCases } from "../../../src/dialects/index.ts";

// biome-ignore lint/suspicious/noExplicitAny: each voice has messages of its own.
type Any = any;

function builtIn(name: (typeof voiceNames)[number], dialect: Dialect<Any> = dialects[name]): DialectSubject<Any> {
  const voice = voiceOf(name);
  let serial = 0;
  return {
    dialect,
    user: (text) => voice.user(text),
    step: ({ text, calls }) => voice.step({ serial: String(serial++), reasoning: null, text, calls }, []),
    result: (call, text) => voice.results([{ call, text }])[0],
    atoms: (view) => voice.atoms(view),
    judge: (view) => voice.judge(view, []).map(({ rule, at, why }) => `${rule} ${at}: ${why}`),
  };
}

for (const name of voiceNames) describeDialect(builtIn(name), { describe, test });

const noteSubject: DialectSubject<Note> = {
  dialect: notes,
  user: (said) => ({ from: "human", said }),
  step: ({ text, calls }) => [
    { from: "ai", said: text, asks: calls.map(({ id, name, input }) => ({ ref: id, fn: name, args: input })) },
  ],
  result: ({ id }, said) => ({ from: "tool", said, answers: id }),
  samples: [{ from: "human", said: "hello", trace: "7f3a" }],
};

describeDialect(noteSubject, { describe, test });

test("docs/guides/own-dialect.md has the example, and the check of it that is made here", () => {
  const read = (path: string) => readFileSync(new URL(`../../../../../${path}`, import.meta.url), "utf8");
  const guide = read("docs/guides/own-dialect.md");
  expect(guide).toContain(read("examples/own-dialect.ts"));
  const here = read("packages/testkit/test/unit/dialects/dialect-check.test.ts");
  const members = (text: string) => /dialect: notes,[^;]*?samples: .*$/m.exec(text)![0].replaceAll(/\s+/g, " ");
  expect(members(guide)).toBe(members(here));
});

/** The names of the cases that fail. */
async function caughtBy(dialect: Dialect<Any>): Promise<string[]> {
  const failed: string[] = [];
  for (const { name, run } of dialectCases(builtIn("openai-chat", dialect))) {
    try {
      await run();
    } catch {
      failed.push(name);
    }
  }
  return failed;
}

const chat = dialects["openai-chat"];

test.each<[fault: string, dialect: Dialect<Any>, caught: string]>([
  ["refuses its own messages", { ...chat, check: () => "no" }, "accepts its own messages, and recognises their roles"],
  [
    "overlooks the second call",
    { ...chat, calls: (m) => chat.calls(m).slice(0, 1) },
    "finds the text, the calls and the results",
  ],
  ["overlooks results", { ...chat, results: () => [] }, "finds the text, the calls and the results"],
  [
    "loses a member when it is stored",
    { ...chat, encode: ({ content: _, ...rest }) => rest, decode: (stored) => stored },
    "stores messages as JSON, and reads the same back",
  ],
  [
    "makes a result for another call",
    { ...chat, result: (call, outcome) => chat.result({ ...call, id: "other" }, outcome) },
    "makes messages of its own that it accepts",
  ],
  ["says that everything is the same", { ...chat, same: () => true }, "compares messages by their content"],
  ["throws at what it does not know", { ...chat, text: (m) => m.content.toString() }, "answers whatever it is given"],
  [
    "changes what it is given",
    { ...chat, calls: (m) => chat.calls(Object.assign(m, { seen: true })) },
    "changes nothing that it is given",
  ],
  [
    "sends entries as they came",
    { ...chat, arrange: (entries) => entries.map(({ message }) => message) },
    "answers every call exactly once, in order, before anything else is said",
  ],
  [
    "shows the newest message first",
    { ...chat, arrange: (entries, view) => chat.arrange(entries, view).reverse() },
    "keeps the past unchanged as the conversation continues",
  ],
  [
    "loses calls when it must change a message",
    mapDialect<Any, Any>(chat, {
      name: "lossy",
      to: (message) => ({ ...message }),
      from: ({ tool_calls: _, ...message }) => message,
    }),
    "keeps what is said and called where a server uses a call id again",
  ],
  [
    "is not stable",
    { ...chat, arrange: (entries, view) => [...chat.arrange(entries, view), { role: "user", content: "more" }] },
    "arranges what is already arranged without a change",
  ],
  [
    "forgets the results when the model is asked",
    { ...chat, arrange: (entries, view) => chat.arrange(entries, view).filter(({ role }) => role !== "tool") },
    "gives a valid request after a death at any point",
  ],
])("a dialect that %s is caught", async (_, dialect, caught) => {
  expect(await caughtBy(dialect)).toContain(caught);
});

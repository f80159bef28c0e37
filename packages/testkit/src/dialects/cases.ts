import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { conversationCases } from "./conversation-cases.ts";
import { type DialectCase, entryOf, inputOf, READ, resultsOf, shown, WRITE } from "./sample.ts";
import type { DialectSubject } from "./subject.ts";

/** Values that a journal of another program, or a careless caller, may hold in place of a message. */
const NONSENSE: readonly unknown[] = [
  ...[null, undefined, true, 0, "", "text", [], {}, [[]], [null], () => null, Symbol("message")],
  ...[{ role: 1 }, { role: "user" }, { role: "assistant", content: null }, { role: "tool", content: [null] }],
  ...[
    { role: "assistant", content: [{ type: "tool-call" }] },
    { role: "constructor", content: {} },
    { type: "__proto__" },
  ],
  { role: "assistant", tool_calls: [null, {}, { function: null }], parts: [null], content: [1] },
];

/** The whole check. Passes if each case's `run` resolves. */
export function dialectCases<M>(subject: DialectSubject<M>): readonly DialectCase[] {
  const { dialect } = subject;
  const messages = samplesOf(subject);
  return [
    {
      name: "accepts its own messages, and recognises their roles",
      run: () => {
        for (const message of messages) assert.equal(dialect.check(message), null, shown(message));
        assert.equal(dialect.role(subject.user("hello")), "user");
        for (const message of subject.step({ text: "hello", calls: [READ] }))
          assert.equal(dialect.role(message), "assistant", shown(message));
        assert.ok(["user", "tool"].includes(dialect.role(subject.result(READ, "done"))), "the role of a result");
      },
    },
    {
      name: "finds the text, the calls and the results",
      run: () => {
        assert.equal(dialect.text(subject.user("hello")), "hello");
        const step = subject.step({ text: "hello", calls: [READ, WRITE] });
        assert.ok(
          step.some((message) => dialect.text(message).includes("hello")),
          "the text of a response",
        );
        const calls = step.flatMap((message) => dialect.calls(message));
        assert.deepEqual(
          calls.map(({ id, name, input, by }) => ({ id, name, input: inputOf(input), by })),
          [READ, WRITE].map((call) => ({ ...call, by: "agent" })),
        );
        assert.deepEqual(resultsOf(dialect, [subject.result(READ, "done")]), [READ.id]);
        assert.deepEqual(dialect.calls(subject.user("hello")), []);
        assert.deepEqual(resultsOf(dialect, step), []);
      },
    },
    {
      name: "stores messages as JSON, and reads the same back",
      run: () => {
        for (const message of messages) {
          const stored = dialect.encode ? dialect.encode(message) : message;
          const text = JSON.stringify(stored);
          const read = JSON.parse(text);
          const again = dialect.decode ? dialect.decode(read) : read;
          assert.ok(isDeepStrictEqual(again, message), `stored and read back, ${shown(message)} is ${shown(again)}`);
        }
      },
    },
    {
      name: "makes messages of its own that it accepts",
      run: () => {
        const boundary = dialect.boundary("The session was interrupted.");
        const incomplete = dialect.incomplete("I was about to");
        const results = [
          { value: { rows: 3 } },
          { value: "done" },
          { error: new Error("no such file") },
          { value: undefined },
        ]
          .map((outcome) => dialect.result({ id: READ.id, name: READ.name }, outcome as { value: unknown }))
          .filter((message) => message !== null);
        for (const message of [boundary, ...(incomplete === null ? [] : [incomplete]), ...results])
          assert.equal(dialect.check(message), null, shown(message));
        assert.equal(dialect.role(boundary), "user");
        assert.match(dialect.text(boundary), /The session was interrupted/);
        if (incomplete !== null) assert.equal(dialect.role(incomplete), "assistant");
        for (const message of results) assert.deepEqual(resultsOf(dialect, [message]), [READ.id], shown(message));
      },
    },
    {
      name: "compares messages by their content",
      run: () => {
        for (const message of messages) {
          const again = dialect.decode
            ? dialect.decode(JSON.parse(JSON.stringify(dialect.encode!(message))))
            : copyOf(message);
          assert.ok(dialect.same(message, again), `${shown(message)} is not the same as its copy`);
        }
        assert.ok(!dialect.same(subject.user("one"), subject.user("two")), "other text");
        const [one] = subject.step({ text: null, calls: [READ] });
        const [two] = subject.step({ text: null, calls: [{ ...READ, input: { path: "c.txt" } }] });
        assert.ok(!dialect.same(one!, two!), "another input of a call");
        assert.ok(!dialect.same(subject.result(READ, "one"), subject.result(READ, "two")), "another result");
      },
    },
    {
      name: "answers whatever it is given",
      run: () => {
        for (const value of NONSENSE as readonly M[]) {
          const why = dialect.check(value);
          assert.ok(why === null || typeof why === "string", `check of ${shown(value)}`);
          assert.ok(["system", "user", "assistant", "tool", "other"].includes(dialect.role(value)), shown(value));
          assert.equal(typeof dialect.text(value), "string", shown(value));
          for (const { id, name } of dialect.calls(value))
            assert.ok(typeof id === "string" && typeof name === "string");
          for (const { call } of dialect.results(value)) assert.equal(typeof call, "string");
          dialect.approvals?.(value);
          dialect.parts?.(value);
          dialect.unsent?.([value]);
          assert.equal(typeof dialect.same(value, messages[0]!), "boolean");
          assert.ok(
            Array.isArray(dialect.arrange([entryOf(value, 0)], { changedAt: null, next: "model" })),
            shown(value),
          );
        }
      },
    },
    {
      name: "changes nothing that it is given",
      run: () => {
        const entries = messages.map((message, at) => deepFreeze(entryOf(message, at)));
        for (const { message } of entries) {
          dialect.check(message);
          dialect.encode?.(message);
          dialect.calls(message);
          dialect.results(message);
          dialect.parts?.(message);
        }
        const once = dialect.arrange(entries, { changedAt: null, next: "model" });
        assert.ok(isDeepStrictEqual(once, dialect.arrange(entries, { changedAt: null, next: "model" })));
      },
    },
    ...conversationCases(subject),
  ];
}

function samplesOf<M>(subject: DialectSubject<M>): readonly M[] {
  return [
    subject.user("hello"),
    ...subject.step({ text: "hello", calls: [] }),
    ...subject.step({ text: "reading", calls: [READ, WRITE] }),
    subject.result(READ, "done"),
    ...(subject.samples ?? []),
  ];
}

function copyOf<M>(message: M): M {
  return JSON.parse(JSON.stringify(message)) as M;
}

/** Not of class instances: their own methods may need to write. */
function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  const isPlain = Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
  if (!isPlain) return value;
  Object.freeze(value);
  for (const member of Object.values(value)) deepFreeze(member);
  return value;
}

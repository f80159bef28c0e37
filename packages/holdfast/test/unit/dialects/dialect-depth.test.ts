import { openStore, type Session } from "holdfast";
import { describe, expect, test } from "vitest";
import { deepFreeze } from "../../../src/conversation/snapshot.ts";
import { equal } from "../../../src/dialects/order/sameness.ts";
import { inputObject, inputText, parsedJson } from "../../../src/dialects/shape.ts";
import { isWellFormed, wellFormed } from "../../../src/text/well-formed.ts";
import { Book } from "../conversation/fold-book.ts";
import { type MadeStep, type Voice, voices } from "./dialect-voices.ts";

/**
 * Deep nesting, members called `__proto__`, and the like: what JSON can carry goes in and out as it was, or is refused
 * with a code; no walk runs out of stack.
 */

// biome-ignore lint/suspicious/noExplicitAny: each voice has messages of its own.
type M = any;

/** Deeper than any stack. */
const DEEP = 200_000;
const nested = (depth: number): string => `{"a":${"[".repeat(depth - 1)}${"]".repeat(depth - 1)}}`;
const parsed = (depth: number): M => JSON.parse(nested(depth));
const stepOf = (of: Partial<MadeStep>): MadeStep => ({
  reasoning: "none",
  text: null,
  calls: [],
  after: null,
  provider: "none",
  ...of,
});

/** Members that an assignment, a spread or a table would take for something else. */
const ODD = JSON.parse(
  '{"__proto__":{"polluted":1},"constructor":{"prototype":{"x":1}},"toJSON":"no","":0,"a.b":[null]}',
);

async function begun(voice: Voice, redact = false): Promise<Session<M>> {
  const store = await openStore("memory:", {
    recordsToolStarts: true,
    ...(redact ? { redact: "credentials" } : {}),
  });
  return store.create<M>({ dialect: voice.dialect.name as never });
}

/** A call with this input, as each dialect has it. */
function calling(voice: Voice, input: unknown): M {
  const [made] = structuredClone(voice.step(stepOf({ calls: [{ id: "a", name: "read", input: "whole" }] }), 1)) as M[];
  switch (voice.dialect.name) {
    case "anthropic":
    case "ai-sdk":
      made.content[0].input = input;
      return made;
    case "openai-chat":
      made.tool_calls[0].function.arguments = typeof input === "string" ? input : JSON.stringify(input);
      return made;
    case "openai-responses":
      return { ...made, arguments: typeof input === "string" ? input : JSON.stringify(input) };
    case "gemini":
      made.parts[0].functionCall.args = input;
      return made;
    default:
      return { ...made, rawInput: input };
  }
}

describe("walks over JSON", () => {
  test("end at a depth, and do not run out of stack", () => {
    const deep = parsed(DEEP);
    expect(equal(deep, parsed(DEEP))).toBe(false);
    expect(isWellFormed(deep)).toBe(true);
    expect(wellFormed(deep)).toBe(deep);
    expect(deepFreeze(deep)).toBe(deep);
    expect(Object.isFrozen(deep)).toBe(true);
    expect(parsedJson(nested(DEEP))).toBeUndefined();
    expect(inputObject(nested(DEEP))).toEqual({ unparsed: nested(DEEP) });
    expect(JSON.parse(inputText(nested(DEEP)))).toEqual({ unparsed: nested(DEEP) });
    expect(parsedJson(nested(900))).toEqual(parsed(900));
  });

  test("text that says null, or nothing, is input without members", () => {
    expect(inputObject("null")).toEqual({});
    expect(inputText("null")).toBe("{}");
    expect(inputObject(7)).toEqual({ unparsed: 7 });
  });

  test("text and what it says give the same input, also if it was encoded twice", () => {
    expect(inputObject("[1]")).toEqual(inputObject([1]));
    expect(inputObject('"words"')).toEqual({ unparsed: "words" });
    expect(inputObject(JSON.stringify('{"a":1}'))).toEqual({ a: 1 });
    expect(inputText(JSON.stringify('{"a":1}'))).toBe('{"a":1}');
    expect(inputObject('"  "')).toEqual({});
  });

  test("equality: lists of other lengths, and bytes", () => {
    expect(equal([1], [1, 2])).toBe(false);
    expect(equal([1], { 0: 1 })).toBe(false);
    const bytes = new Uint8Array([1, 2]);
    expect(equal(bytes.buffer, bytes)).toBe(true);
    expect(equal(bytes.buffer, new Uint8Array([1, 3]))).toBe(false);
  });
});

describe.each(voices.map((voice) => [voice.dialect.name, voice] as const))("%s", (name, voice) => {
  const isText = name === "openai-chat" || name === "openai-responses";

  test.each([false, true])(
    "what is nested too deep to be recorded is refused with a code (redacted: %s)",
    async (redact) => {
      const session = await begun(voice, redact);
      const turn = await session.startTurn(voice.user("go"));
      const deep = { ...(voice.user("x") as M), extra: parsed(DEEP) };
      await expect(turn.append(deep)).rejects.toMatchObject({ code: "MESSAGE_NOT_JSON" });
      await expect(session.enqueue(deep)).rejects.toMatchObject({ code: expect.stringMatching(/_NOT_JSON$/) });
      await expect(session.sync([...session.messages, deep])).rejects.toMatchObject({ code: "MESSAGE_NOT_JSON" });
      await expect(session.note("deep", parsed(DEEP))).rejects.toMatchObject({ code: "RECORD_NOT_JSON" });
      expect(session.entries).toHaveLength(1);
      await session.close();
    },
  );

  test("an outcome that is nested too deep is recorded in words", async () => {
    const session = await begun(voice);
    const turn = await session.startTurn(voice.user("go"));
    await turn.append(calling(voice, {}));
    const { value } = await turn.tool("a", () => parsed(DEEP));
    expect(value).toBeDefined();
    expect(session.entries).toHaveLength(3);
    expect(session.messages).toHaveLength(3);
    await session.close();
  });

  test("input that a model nested deep: the call is known, can be interrupted, resumed and sent", async () => {
    const session = await begun(voice);
    const turn = await session.startTurn(voice.user("go"));
    const input = isText ? nested(DEEP) : parsed(900);
    await turn.append(calling(voice, input));
    await turn.abort({ by: "user" });
    expect(session.interruption!.calls[0]).toMatchObject({ id: "a", state: "never-started" });
    if (isText) expect(session.interruption!.calls[0]!.input).toBe(input);
    await session.startTurn(voice.user("and now?"));
    expect(JSON.stringify(session.messages).length).toBeGreaterThan(900);
    await session.close();
  });

  test("a record of another writer's that is nested too deep does not keep the session from being read", () => {
    const book = new Book(voice.dialect);
    book.prompt(voice.user("go"));
    const message = { ...(voice.user("deep") as M), extra: parsed(DEEP) };
    book.write({ kind: "message", id: "deep", turn: 1, step: "deep", message, metadata: parsed(DEEP) });
    const [entry] = book.conversation.items.slice(-1);
    expect(entry!.entry.id).toBe("deep");
    expect(book.still().length).toBeGreaterThan(0);
    expect(book.live().length).toBeGreaterThan(0);
  });

  test("members called __proto__ and the like come back as they were, and pollute nothing", async () => {
    const session = await begun(voice);
    const turn = await session.startTurn(voice.user("go"), { metadata: ODD });
    await turn.append(calling(voice, ODD));
    await turn.tool("a", () => ODD);
    const { id } = session;
    const text = (value: unknown): string => JSON.stringify(value);
    expect(text(session.entries[0]!.metadata)).toBe(text(ODD));
    await session.patch(session.entries[0]!.id, JSON.parse('{"__proto__":{"more":2}}'));
    expect(text(session.entries[0]!.metadata)).toBe(text(ODD).replace('"polluted":1', '"polluted":1,"more":2'));
    const sent = text(session.messages).replaceAll("\\", "");
    // Once in the input, once in the result.
    if (name !== "acp") expect(sent.split('"__proto__":{"polluted":1}').length).toBe(3);
    const before = text(session.messages);
    await session.replace([...session.entries], { reason: "compaction" });
    expect(text(session.messages)).toBe(before);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
    expect(session.id).toBe(id);
    await session.close();
  });
});

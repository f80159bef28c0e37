import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Conversation } from "../../../src/conversation/conversation.ts";
import { storedRecord } from "../../../src/conversation/records/schema.ts";
import { deepFreeze, freezeWellFormed } from "../../../src/conversation/snapshot.ts";
import { aiSdk } from "../../../src/dialects/ai-sdk.ts";
import { openaiChat } from "../../../src/dialects/openai-chat.ts";
import { openaiResponses } from "../../../src/dialects/openai-responses.ts";
import type { JournalRecord } from "../../../src/journal/record.ts";
import { isWellFormed } from "../../../src/text/well-formed.ts";
import { LiveReading } from "../../../src/view/reading.ts";
import { holds, seedOf } from "../../seed.ts";

/** What is done to each message when a session is resumed. */
const seed = seedOf(import.meta.url, "unit");

const odd = fc.constantFrom("plain", "é", "文", "half \ud83d", "\ude00", "\0", "🙂", "");
const anything = fc.anything({ key: odd, values: [odd, fc.integer(), fc.boolean(), fc.constant(null)], maxDepth: 4 });

function isDeepFrozen(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return true;
  return Object.isFrozen(value) && Object.values(value).every(isDeepFrozen);
}

describe("freezing and checking in one pass", () => {
  test("freezes as deepFreeze does, and answers as isWellFormed does", () => {
    holds(
      fc.property(anything, fc.boolean(), (value, isPartlyFrozen) => {
        if (isPartlyFrozen && Array.isArray(value)) deepFreeze(value[0]);
        const expected = isWellFormed(value);
        // The checked value may also be a text on its own.
        if (typeof value !== "string") expect(freezeWellFormed(value)).toBe(expected);
        expect(isDeepFrozen(value)).toBe(true);
      }),
      seed,
      1000,
    );
  });

  test("leaves bytes and URLs as they are", () => {
    const message = { data: new Uint8Array([1]), url: new URL("https://a.example/"), text: "x" };
    expect(freezeWellFormed(message)).toBe(true);
    expect(Object.isFrozen(message)).toBe(true);
    expect(Object.isFrozen(message.url)).toBe(false);
  });
});

describe("the record of a message", () => {
  const whole = { kind: "message", seq: 1, at: "", crc: "", id: "a", turn: 1, step: "a", message: { role: "user" } };
  const optional = ["metadata", "model", "redacted", "carried", "first", "synthetic", "incomplete", "late"];

  test("is used as it is if it has all it needs", () => {
    const record = { ...whole, model: "m" } as unknown as JournalRecord;
    expect(storedRecord(record)).toBe(record);
  });

  test.each([...optional, "replacedBy", "hidden", "call"])("has no %s of the wrong type", (name) => {
    for (const wrong of [null, 5, [], name === "metadata" ? "x" : {}]) {
      const clean = storedRecord({ ...whole, [name]: wrong } as unknown as JournalRecord);
      expect(clean).toEqual(whole);
    }
  });

  test.each(["id", "turn", "step", "message"])("is none without its %s", (name) => {
    expect(storedRecord({ ...whole, [name]: undefined } as unknown as JournalRecord)).toBeNull();
    if (name !== "message") expect(storedRecord({ ...whole, [name]: -1 } as unknown as JournalRecord)).toBeNull();
  });
});

describe("what is handed out", () => {
  function reading(...messages: unknown[]): LiveReading<unknown> {
    const conversation = new Conversation<unknown>(() => aiSdk as never, aiSdk as never);
    for (const [at, message] of messages.entries()) {
      const stored = JSON.parse(JSON.stringify(aiSdk.encode!(message as never)));
      const envelope = { seq: at + 1, at: "2026-11-15T00:00:00.000Z", crc: "" };
      conversation.add({ ...envelope, kind: "message", id: `m${at}`, turn: 1, step: `m${at}`, message: stored });
    }
    return new LiveReading(conversation, () => ({ kind: "idle" }));
  }
  const text = { role: "user", content: "hello" };

  test("is what is shown, if no message can hold bytes", () => {
    const { messages, entries } = reading(text);
    expect(messages[0]).toBe(entries[0]!.message);
  });

  test("R19: bytes are the caller's own, wherever they are", () => {
    const data = new Uint8Array([1, 2, 3]);
    const live = reading(text, { role: "user", content: [{ type: "file", mediaType: "image/png", data }] });
    // biome-ignore lint/suspicious/noExplicitAny: only the bytes matter here.
    const bytesIn = (message: any): Uint8Array => message.content[0].data;
    bytesIn(live.messages[1]).fill(9);
    bytesIn(live.entries[1]!.message).fill(9);
    expect([...bytesIn(live.messages[1])]).toEqual([1, 2, 3]);
    expect([...bytesIn(live.entries[1]!.message)]).toEqual([1, 2, 3]);
  });
});

test("tool input that is JSON text is parsed when it is read, and survives a copy of the call", () => {
  const target = { name: "edit", arguments: '{"path":"a"}' };
  const chat = { role: "assistant", content: null, tool_calls: [{ id: "c1", type: "function", function: target }] };
  const item = { type: "function_call", call_id: "c1", name: "edit", arguments: '{"path":"a"}' };
  for (const [call] of [openaiChat.calls(chat as never), openaiResponses.calls(item)]) {
    expect(call!.input).toEqual({ path: "a" });
    expect({ ...call }).toEqual({ id: "c1", name: "edit", input: { path: "a" }, by: "agent" });
  }
});

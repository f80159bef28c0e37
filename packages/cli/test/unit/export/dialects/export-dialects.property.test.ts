import {
  aiSdkConversation,
  anthropicConversation,
  geminiConversation,
  openaiChatConversation,
  openaiResponsesConversation,
  validateAiSdk,
  validateAnthropic,
} from "@holdfast/testkit/internal/providers";
import fc from "fast-check";
import { type DialectName, dialects, type Entry } from "holdfast";
import { describe, expect, test } from "vitest";
import { pair } from "../../../../../holdfast/src/dialects/order/pairing.ts";
import { inputObject } from "../../../../../holdfast/src/dialects/shape.ts";
import { holds, seedOf } from "../../../../../holdfast/test/seed.ts";
import {
  entry,
  frozen,
  type Happening,
  happenings,
  spoken,
} from "../../../../../holdfast/test/unit/dialects/dialect-conversations.ts";
import { type Voice, voices } from "../../../../../holdfast/test/unit/dialects/dialect-voices.ts";
import { judges } from "../../../../../holdfast/test/unit/dialects/provider-judges.ts";
import { stepsOf } from "../../../../src/export/dialects/steps.ts";
import { toDialect } from "../../../../src/export/dialects/to-dialect.ts";
import { itemsOf } from "../../../../src/transcript/items.ts";
import { saidIn } from "../../../../src/transcript/said.ts";

const seed = seedOf(import.meta.url, "unit");
const names = Object.keys(dialects) as DialectName[];

/**
 * As the sessions layer shows it: repaired, and with a prompt behind it, unless it ends with results and the model is
 * asked as it stands.
 */
function shown({ dialect }: Voice, entries: readonly Entry<unknown>[], prompted: boolean): readonly unknown[] {
  const repaired = [...entries];
  for (const { call, answer } of pair(repaired, dialect).exchanges.at(-1)!.calls) {
    const message = answer || call.by === "provider" ? null : dialect.result(call, { error: "outcome unknown" });
    if (message) repaired.push(entry(message, repaired.length, { synthetic: "outcome-unknown" }));
  }
  const view = (): unknown[] => dialect.arrange(repaired, { changedAt: null, next: "model" });
  if (prompted || !endsWithResult(view(), dialect)) {
    repaired.push(entry(dialect.boundary("and now?"), repaired.length));
  }
  return frozen(view());
}

function endsWithResult(messages: readonly unknown[], dialect: Voice["dialect"]): boolean {
  // An ACP agent may have spoken before that result came.
  return dialect.name !== "acp" && messages.length > 0 && dialect.role(messages.at(-1)) === "tool";
}

/** By the dialect itself: the calls that are in a conversation, those of the provider's only if they were finished. */
function callsBy(messages: readonly unknown[], name: DialectName): string[] {
  const dialect = dialects[name];
  const answered = new Set(messages.flatMap((message) => dialect.results(message).map(({ call }) => call)));
  const made = messages.flatMap((message) => dialect.calls(message));
  return made.filter(({ id, by }) => by === "agent" || answered.has(id)).map(({ name: tool }) => tool);
}

/** What tools said, wherever that stands. */
const resultsTold = (messages: readonly unknown[]): string[] =>
  [...JSON.stringify(messages).matchAll(/result \d+|outcome unknown/g)].map(([words]) => words).sort();

/**
 * What the model did between two results or prompts. What it said after a call may stand before it, and its words may
 * be in one piece or several: an ACP agent that spoke before and after the result of an earlier call spoke once.
 */
function modelSteps(messages: readonly unknown[], dialect: string) {
  const found: { text: string; calls: string[]; after: string }[] = [];
  let after = "";
  for (const { kind, parts } of stepsOf(messages, dialect)) {
    const text = parts.flatMap((part) => (part.type === "text" ? [part.text.replaceAll(/\s/g, "")] : [])).join("");
    const calls = parts.flatMap((part) => (part.type === "call" ? [part.name] : []));
    const last = found.at(-1);
    if (kind !== "model") after += text;
    else if (last?.after === after && last.calls.length === 0) Object.assign(last, { text: last.text + text, calls });
    else if (text !== "" || calls.length > 0) found.push({ text, calls, after });
  }
  return found.map(({ text, calls }) => ({ text, calls }));
}

const read = (messages: readonly unknown[], dialect: string) => ({
  messages,
  attributes: { title: "", dialect, labels: {}, notes: {} },
});
const callsIn = (messages: readonly unknown[], dialect: string) =>
  stepsOf(messages, dialect).flatMap((step) => step.parts.flatMap((part) => (part.type === "call" ? [part] : [])));
const filesIn = (messages: readonly unknown[], dialect: string): unknown[] =>
  stepsOf(messages, dialect).flatMap(({ parts }) => parts.flatMap((part) => (part.type === "file" ? [part.file] : [])));
const userTexts = (messages: readonly unknown[], dialect: string): string =>
  messages
    .filter((message) => saidIn(message, dialect).role !== "assistant")
    .flatMap((message) => saidIn(message, dialect).parts.flatMap((part) => (part.type === "text" ? [part.text] : [])))
    .join("\n");

describe.each(voices.map((voice) => ({ from: voice.dialect.name as DialectName, voice })))(
  "from $from",
  ({ from, voice }) => {
    test.each(names)("any conversation, said in %s, is accepted by its provider, with every call and result", (to) => {
      const property = fc.property(happenings, fc.boolean(), (happened: Happening[], prompted) => {
        const messages = shown(voice, spoken(voice, [{ kind: "user", text: "go" }, ...happened]), prompted);
        const out = toDialect(read(messages, from), to);
        if (from === to) {
          expect(out).toBe(messages);
          return;
        }
        expect(judges[to]!.judge(out)).toEqual([]);
        // Also by models that take no system messages in a conversation.
        if (to === "anthropic") expect(validateAnthropic(out)).toEqual([]);
        if (to === "ai-sdk") expect(validateAiSdk(out)).toEqual([]);
        for (const message of out) expect(dialects[to].check(message)).toBeNull();
        expect(callsBy(out, to)).toEqual(callsBy(messages, from));
        expect(resultsTold(out)).toEqual(resultsTold(messages));
        expect(modelSteps(out, to)).toEqual(modelSteps(messages, from));
        const before = callsIn(messages, from);
        const after = callsIn(out, to);
        const called = (calls: typeof before) => calls.map(({ name, input }) => ({ name, input: inputObject(input) }));
        expect(called(after)).toEqual(called(before));
        for (const [index, { result }] of after.entries()) expect(result.text).toContain(before[index]!.result.text);
        expect(after.map(({ result }) => result.failed)).toEqual(before.map(({ result }) => result.failed));
        expect(filesIn(out, to)).toEqual(filesIn(messages, from));
        const said = userTexts(out, to);
        for (const text of userTexts(messages, from).split("\n")) expect(said).toContain(text.trim());
      });
      holds(property, seed, 60);
    });

    test("items that grew with the entries are those that are made at once", () => {
      const property = fc.property(happenings, fc.nat(), (happened, cut) => {
        const { attributes } = read([], from);
        let turn = 0;
        const entries = spoken(voice, happened).map((one) => {
          if (dialects[from].role(one.message) === "user") turn += 1;
          return { ...one, turn };
        });
        const copies = entries.map((one) => ({ ...one }));
        for (let end = 1; end <= entries.length; end++) {
          // Now and then an entry is replaced, as by a patch.
          if (end % 5 === cut % 5) entries[cut % end] = { ...entries[cut % end]! };
          itemsOf({ entries: entries.slice(0, end), interruption: null, attributes });
        }
        const grown = itemsOf({ entries, interruption: null, attributes });
        expect(grown).toEqual(itemsOf({ entries: copies, interruption: null, attributes }));
      });
      holds(property, seed, 60);
    });

    test("items are made of anything, each call once, and the same again for the same entries", () => {
      const property = fc.property(happenings, (happened) => {
        const entries = frozen(spoken(voice, happened));
        const reading = { entries, interruption: null, attributes: read([], from).attributes };
        const items = itemsOf(reading);
        const again = itemsOf(reading);
        expect(again.length).toBe(items.length);
        for (const [index, item] of items.entries()) expect(again[index]).toBe(item);
        expect(new Set(items.map(({ id }) => id)).size).toBe(items.length);
        const made = entries.flatMap(({ message }) => dialects[from].calls(message)).length;
        expect(items.filter((item) => item.kind === "call" && item.aside !== "its call is not recorded").length).toBe(
          made,
        );
      });
      holds(property, seed, 60);
    });
  },
);

test.each(names)("items of %s are made of messages that are nonsense", (dialect) => {
  const message = fc.oneof(
    fc.jsonValue(),
    fc.record({
      role: fc.constantFrom("user", "assistant", "tool", "model"),
      content: fc.jsonValue(),
      parts: fc.jsonValue(),
    }),
    fc.record({
      type: fc.constantFrom("message", "function_call", "function_call_output", "reasoning"),
      call_id: fc.jsonValue(),
      content: fc.jsonValue(),
    }),
    fc.record({
      sessionUpdate: fc.constantFrom("tool_call", "tool_call_update", "plan"),
      toolCallId: fc.jsonValue(),
      content: fc.jsonValue(),
    }),
  );
  const property = fc.property(fc.array(message), (messages) => {
    const entries = messages.map((one, at) => entry(one, at));
    expect(Array.isArray(itemsOf({ entries, interruption: null, attributes: read([], dialect).attributes }))).toBe(
      true,
    );
  });
  holds(property, seed, 50);
});

/** Made by hand, with all that these APIs have: images in results, custom calls, searches, denials, steering. */
const rich: readonly (readonly [DialectName, readonly unknown[]])[] = [
  ["ai-sdk", aiSdkConversation.messages],
  ["anthropic", anthropicConversation.messages],
  ["openai-chat", openaiChatConversation.messages],
  ["openai-responses", openaiResponsesConversation.input],
  ["gemini", geminiConversation.contents],
];

describe.each(rich)("the rich conversation of %s", (from, messages) => {
  test.each(names.filter((name) => name !== from))("said in %s, is accepted, with every call", (to) => {
    const out = toDialect(read(messages, from), to);
    expect(judges[to]!.judge(out)).toEqual([]);
    expect(callsBy(out, to).length).toBe(callsBy(messages, from).length);
    expect(modelSteps(out, to)).toEqual(modelSteps(messages, from));
    // And back again.
    const back = toDialect(read(out, to), from);
    expect(judges[from]!.judge(back)).toEqual([]);
    expect(modelSteps(back, from)).toEqual(modelSteps(messages, from));
  });
});

test("calls that were left open, and calls of the provider's that were not finished, are said so that others accept them", () => {
  const messages = [
    { role: "user", content: "go" },
    {
      role: "assistant",
      content: [
        { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} },
        { type: "tool_use", id: "toolu_1", name: "read", input: { path: "a" } },
      ],
    },
  ];
  for (const to of names.filter((name) => name !== "anthropic")) {
    const out = toDialect(read(messages, "anthropic"), to);
    expect(judges[to]!.judge(out)).toEqual([]);
    expect(callsBy(out, to)).toEqual(["read"]);
    expect(JSON.stringify(out)).toContain("No result is recorded.");
  }
});

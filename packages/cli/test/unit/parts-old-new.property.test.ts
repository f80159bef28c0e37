import {
  aiSdkConversation,
  anthropicConversation,
  geminiConversation,
  openaiChatConversation,
  openaiResponsesConversation,
} from "@holdfast/testkit";
import fc from "fast-check";
import { type DialectName, dialects, partsOf } from "holdfast";
import { expect, test } from "vitest";
import { holds, seedOf } from "../../../holdfast/test/seed.ts";
import { oddHappenings, spoken } from "../../../holdfast/test/unit/dialect-conversations.ts";
import { nonsense } from "../../../holdfast/test/unit/dialect-nonsense.ts";
import { voices } from "../../../holdfast/test/unit/dialect-voices.ts";
import { saidIn } from "../../src/transcript/parts/index.ts";

const seed = seedOf(import.meta.url, "unit");
const names = Object.keys(dialects) as DialectName[];
const same = (message: unknown, name: DialectName): void => {
  expect(partsOf(message, dialects[name])).toEqual(saidIn(message, name).parts);
};

/** Where the old one missed a call, a result or a decision that the dialect itself finds, or found one more. */
const hasDrifted = (message: unknown, name: DialectName): boolean => {
  const { parts } = saidIn(message, name);
  // It took any value for a call, and passed over the text beside it.
  if (name === "gemini" && /"(?:functionCall|toolCall|executableCode)":[^{]/.test(JSON.stringify(message))) return true;
  const count = (type: string): number => parts.filter((part) => part.type === type).length;
  const { calls, results, approvals } = dialects[name];
  const isDecision = count("approval") === 1 && name === "openai-responses";
  return (
    count("call") !== calls(message).length ||
    (count("result") !== results(message).length && !isDecision) ||
    (name === "ai-sdk" && count("approval") !== approvals!(message).length)
  );
};

test.each(voices.map((voice) => [voice.dialect.name as DialectName, voice] as const))("%s", (name, voice) => {
  holds(
    fc.property(oddHappenings, (happened) => {
      for (const { message } of spoken(voice, happened)) same(message, name);
    }),
    seed,
    300,
  );
});

const rich: readonly (readonly [DialectName, readonly unknown[]])[] = [
  ["ai-sdk", aiSdkConversation.messages],
  ["anthropic", anthropicConversation.messages],
  ["openai-chat", openaiChatConversation.messages],
  ["openai-responses", openaiResponsesConversation.input],
  ["gemini", geminiConversation.contents],
];
test.each(rich)("rich %s", (name, messages) => {
  for (const message of messages) same(message, name);
});

test.each(names)("nonsense in %s", (name) => {
  holds(
    fc.property(nonsense, (one) => {
      if (typeof one === "object" && one !== null && !Array.isArray(one) && !hasDrifted(one, name)) same(one, name);
    }),
    seed,
    3000,
  );
});

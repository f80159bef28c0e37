import { describe, expect, it } from "vitest";
import {
  acpExamples,
  acpRules,
  acpTranscript,
  aiSdkConversation,
  aiSdkExamples,
  aiSdkRules,
  anthropicConversation,
  anthropicExamples,
  anthropicResponses,
  anthropicRules,
  type Example,
  geminiConversation,
  geminiExamples,
  geminiRules,
  openaiChatConversation,
  openaiChatExamples,
  openaiChatRules,
  openaiResponsesConversation,
  openaiResponsesExamples,
  openaiResponsesItems,
  openaiResponsesRules,
  type Violation,
  validateAcp,
  validateAiSdk,
  validateAnthropic,
  validateGemini,
  validateOpenaiChat,
  validateOpenaiResponses,
} from "../../../src/providers/index.ts";
import { rulesOf } from "./providers-mutants.ts";

interface Provider<Options> {
  readonly rules: Readonly<Record<string, string>>;
  readonly examples: readonly Example<Options>[];
  readonly validate: (request: unknown, options?: Options) => Violation[];
}

function keepsItsRules<Options>(name: string, { rules, examples, validate }: Provider<Options>): void {
  describe(name, () => {
    it("every rule has an example", () => {
      expect(examples.map(({ rule }) => rule).sort()).toEqual(Object.keys(rules).sort());
    });
    for (const { rule, accepts, refuses } of examples) {
      it(`${rule} accepts: ${accepts.name}`, () => {
        expect(validate(accepts.request, accepts.options)).toEqual([]);
      });
      for (const { name: what, request, options } of refuses) {
        it(`${rule} refuses: ${what}`, () => {
          expect(rulesOf(validate(request, options))).toEqual([rule]);
        });
      }
    }
    const odd = ["constructor", "__proto__", "toString"].map((name) => [
      { role: name, content: [{ type: name }], parts: [{ [name]: 1 }] },
      { role: "user", content: [{ type: name }], parts: [{ text: "x" }] },
      { role: "assistant", content: [{ type: name }], tool_calls: [{ type: name, id: name }], parts: [{ [name]: 1 }] },
      { role: "tool", content: [{ type: "tool-result", toolCallId: name, toolName: name, output: { type: name } }] },
      { type: name, id: name, call_id: name },
      { sessionUpdate: "agent_message_chunk", content: { type: name } },
    ]);
    for (const value of [...odd, null, undefined, 7, "text", {}, [null], [7], ["text"], [{}]]) {
      it(`refuses ${JSON.stringify(value)}, which is no conversation`, () => {
        expect(validate(value)).not.toEqual([]);
      });
    }
  });
}

keepsItsRules("anthropic", { rules: anthropicRules, examples: anthropicExamples, validate: validateAnthropic });
keepsItsRules("openai-chat", { rules: openaiChatRules, examples: openaiChatExamples, validate: validateOpenaiChat });
keepsItsRules("openai-responses", {
  rules: openaiResponsesRules,
  examples: openaiResponsesExamples,
  validate: validateOpenaiResponses,
});
keepsItsRules("gemini", { rules: geminiRules, examples: geminiExamples, validate: validateGemini });
keepsItsRules("ai-sdk", { rules: aiSdkRules, examples: aiSdkExamples, validate: validateAiSdk });
keepsItsRules("acp", { rules: acpRules, examples: acpExamples, validate: validateAcp });

it("the long conversations are accepted", () => {
  expect(validateAnthropic(anthropicConversation, { responses: anthropicResponses })).toEqual([]);
  expect(validateOpenaiChat(openaiChatConversation)).toEqual([]);
  expect(validateOpenaiResponses(openaiResponsesConversation, { responses: openaiResponsesItems })).toEqual([]);
  expect(validateGemini(geminiConversation)).toEqual([]);
  expect(validateAiSdk(aiSdkConversation)).toEqual([]);
  expect(validateAcp(acpTranscript)).toEqual([]);
});

import {
  acpExamples,
  aiSdkExamples,
  anthropicExamples,
  geminiExamples,
  openaiChatExamples,
  openaiResponsesExamples,
  type RequestExample,
  type Violation,
  validateAcp,
  validateAiSdk,
  validateAnthropic,
  validateGemini,
  validateOpenaiChat,
  validateOpenaiResponses,
} from "@holdfast/testkit/internal/providers";
import { describe, expect, test } from "vitest";
import type { Dialect, Entry } from "../../../src/dialects/dialect.ts";
import { dialects } from "../../../src/dialects/index.ts";
import { pair } from "../../../src/dialects/order/pairing.ts";
import { wellFormed } from "../../../src/text/well-formed.ts";
import { stepsIn } from "../../../src/view/unsent.ts";
import { entry } from "./dialect-conversations.ts";

/**
 * The examples of the validators: what a provider accepts stays accepted, and what it refuses is mended, wherever an
 * arrangement can do that.
 */
interface Bench {
  // biome-ignore lint/suspicious/noExplicitAny: each dialect has messages of its own.
  readonly dialect: Dialect<any>;
  // biome-ignore lint/suspicious/noExplicitAny: each validator has options of its own.
  readonly examples: readonly { rule: string; accepts: RequestExample<any>; refuses: readonly RequestExample<any>[] }[];
  // biome-ignore lint/suspicious/noExplicitAny: each validator has options of its own.
  readonly validate: (request: unknown, options?: any) => Violation[];
  readonly list: string;
  /**
   * What only the application can set right, by its name: it sent something else than it got, or what no message can
   * say.
   */
  readonly beyond: readonly string[];
}

const benches: readonly Bench[] = [
  {
    dialect: dialects.anthropic,
    examples: anthropicExamples,
    validate: validateAnthropic,
    list: "messages",
    beyond: [
      "another system prompt",
      "another tool",
      "an earlier message changed",
      "a thinking block left out of the middle",
      "a foreign signature",
      "a running tool loop without its thinking",
      "manual mode: a running tool loop that does not start with thinking",
      "a result of another tool",
      "a system message",
      "an image of the assistant",
      "an image that is no base64",
    ],
  },
  {
    dialect: dialects["openai-chat"],
    examples: openaiChatExamples,
    validate: validateOpenaiChat,
    list: "messages",
    beyond: ["an image in a tool message"],
  },
  {
    dialect: dialects["openai-responses"],
    examples: openaiResponsesExamples,
    validate: validateOpenaiResponses,
    list: "input",
    beyond: [
      "another item behind the reasoning",
      "a call without its reasoning",
      "the second of two calls without the reasoning",
      "the following item lost its id",
      "items of one response swapped",
      "encrypted content that was changed",
      "a call with a message's id",
      "a prompt between the items of one response",
      "an output behind the next response",
      "an unknown item",
      "input text of the assistant",
      "output text of the user",
      "an output that is a value",
      "reasoning without summary",
    ],
  },
  {
    dialect: dialects.gemini,
    examples: geminiExamples,
    validate: validateGemini,
    list: "contents",
    beyond: ["the signature of another part", "a changed signature"],
  },
  {
    dialect: dialects["ai-sdk"],
    examples: aiSdkExamples,
    validate: validateAiSdk,
    list: "messages",
    beyond: ["a denied call with a result", "a system message", "a call of the user", "a text output that is a value"],
  },
  {
    dialect: dialects.acp,
    examples: acpExamples,
    validate: validateAcp,
    list: "none",
    beyond: [
      "an image without its type",
      "a block of another protocol",
      "bare text as tool content",
      "two messages mixed",
      "one id for the user's and the agent's message",
      "an unknown update",
    ],
  },
];

function entriesOf({ dialect, list }: Bench, request: unknown): Entry<unknown>[] | null {
  const found = Array.isArray(request) ? request : (request as Record<string, unknown>)[list];
  if (!Array.isArray(found)) return null;
  const steps = stepsIn(found, dialect, (at) => `s${at}`);
  return found.map((message, at) => entry(message, at, { step: steps[at]! }));
}

function repaired(dialect: Bench["dialect"], entries: readonly Entry<unknown>[]): Entry<unknown>[] {
  const out = [...entries];
  for (const { call, answer } of pair(entries, dialect).exchanges.at(-1)!.calls) {
    const message = answer || call.by === "provider" ? null : dialect.result(call, { error: "outcome unknown" });
    if (message) out.push(entry(message, out.length));
  }
  return [...out, entry(dialect.boundary("and now?"), out.length)];
}

function told(violations: readonly Violation[]): string {
  return violations.map(({ rule, at, why }) => `${rule} ${at}: ${why}`).join("\n");
}

describe.each(benches.map((bench) => [bench.dialect.name, bench] as const))("%s", (_, bench) => {
  const { dialect, examples, validate, list, beyond } = bench;
  const judged = ({ request, options }: RequestExample<unknown>, entries: readonly Entry<unknown>[]): string => {
    const view = wellFormed(dialect.arrange(entries, { changedAt: null, next: "model" }));
    return told(validate(Array.isArray(request) ? view : { ...(request as object), [list]: view }, options));
  };

  test("what is accepted stays accepted", () => {
    for (const { accepts } of examples) {
      const entries = entriesOf(bench, accepts.request);
      if (entries) expect([accepts.name, judged(accepts, entries)]).toEqual([accepts.name, ""]);
    }
  });

  test("what is refused is accepted once it is repaired, arranged, and followed by a prompt", () => {
    const refused: string[] = [];
    for (const { refuses } of examples) {
      for (const example of refuses) {
        const entries = entriesOf(bench, example.request);
        if (entries && judged(example, repaired(dialect, entries)) !== "") refused.push(example.name);
      }
    }
    expect(refused).toEqual(beyond);
  });
});

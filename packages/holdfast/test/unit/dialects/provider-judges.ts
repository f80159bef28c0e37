import {
  signPart,
  signResponse,
  type Violation,
  validateAcp,
  validateAiSdk,
  validateAnthropic,
  validateGemini,
  validateOpenaiChat,
  validateOpenaiResponses,
} from "@holdfast/testkit/internal/providers";

// biome-ignore lint/suspicious/noExplicitAny: messages have the shapes that their dialect gives them.
type Made = any;

/** What a provider says of a request, by validators that were written from the providers' documents (P4). */
export interface ProviderJudge {
  /** A response as it comes from a model that has seen this view. */
  signed(step: unknown[], view: readonly unknown[]): unknown[];
  /**
   * `steps`: the responses as they came. `paused`: the view may end with a call that the provider has not finished
   * with; `waiting` (the same, if not given): or a person.
   */
  judge(
    view: readonly unknown[],
    steps?: readonly (readonly unknown[])[],
    paused?: boolean,
    waiting?: boolean,
  ): Violation[];
}

const asIs = (step: unknown[]): unknown[] => step;

export const judges: Readonly<Record<string, ProviderJudge>> = {
  anthropic: {
    signed: (step, view) =>
      (step as Made[]).map((message) => ({ ...message, content: signResponse({ messages: view }, message.content) })),
    judge: (view, _, paused = false) => validateAnthropic(view, { systemMessages: true, paused }),
  },
  "openai-chat": { signed: asIs, judge: (view) => validateOpenaiChat(view) },
  "openai-responses": {
    signed: asIs,
    judge: (view, steps = []) => validateOpenaiResponses(view, { responses: steps as Made }),
  },
  gemini: {
    signed: (step) =>
      (step as Made[]).map(({ role, parts }) => ({
        role,
        // Gemini 3 signs the first call of each step.
        parts: parts.map((part: Made, at: number) => {
          const isFirst = part.functionCall && parts.findIndex((other: Made) => other.functionCall) === at;
          return isFirst ? { ...part, thoughtSignature: signPart(part) } : part;
        }),
      })),
    judge: (view) => validateGemini(view, { signatures: "bound" }),
  },
  "ai-sdk": {
    signed: asIs,
    judge: (view, _, paused = false, waiting = paused) => validateAiSdk(view, { systemMessages: true, waiting }),
  },
  acp: { signed: asIs, judge: (view) => validateAcp(view) },
};

export function told(violations: readonly Violation[]): string {
  return violations.map(({ rule, at, why }) => `${rule} ${at}: ${why}`).join("\n");
}

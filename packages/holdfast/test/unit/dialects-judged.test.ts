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
} from "@holdfast/testkit";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Entry, View } from "../../src/dialects/dialect.ts";
import { pair } from "../../src/dialects/pairing.ts";
import { holds, seedOf } from "../seed.ts";
import { entry, type Happening, happenings, spoken } from "./dialect-conversations.ts";
import { type Voice, voices } from "./dialect-voices.ts";

/**
 * What the dialects arrange, judged by validators that others wrote from the providers' documents (P4). Conversations are lived: the model speaks where
 * it can be asked, and signs what it has seen. Then they are cut anywhere, repaired as the sessions layer repairs, and go on with a prompt.
 */
const seed = seedOf(import.meta.url, "unit");

interface Judge {
  /** A step as it comes from a model that has seen this view. */
  signed(step: unknown[], view: readonly unknown[]): unknown[];
  judge(view: readonly unknown[], steps: readonly (readonly unknown[])[], open: boolean): Violation[];
}

// biome-ignore lint/suspicious/noExplicitAny: messages have the shapes that their voice gives them.
type Made = any;

const asIs = (step: unknown[]): unknown[] => step;

const judges: Record<string, Judge> = {
  anthropic: {
    signed: (step, view) =>
      (step as Made[]).map((message) => ({
        ...message,
        content: signResponse({ messages: view }, message.content),
      })),
    judge: (view, _, open) => validateAnthropic(view, { systemMessages: true, paused: open }),
  },
  "openai-chat": { signed: asIs, judge: (view) => validateOpenaiChat(view) },
  "openai-responses": {
    signed: asIs,
    judge: (view, steps) => validateOpenaiResponses(view, { responses: steps as Made }),
  },
  gemini: {
    signed: (step) =>
      (step as Made[]).map(({ role, parts }) => ({
        role,
        parts: parts.map((part: Made) =>
          part.thoughtSignature === undefined ? part : { ...part, thoughtSignature: signPart(part) },
        ),
      })),
    judge: (view) => validateGemini(view, { signatures: "bound" }),
  },
  "ai-sdk": { signed: asIs, judge: (view) => validateAiSdk(view, { systemMessages: true }) },
  acp: { signed: asIs, judge: (view) => validateAcp(view) },
};

/** As the sessions layer does it before it goes on: every open call of the last section gets a result. */
function repair({ dialect }: Voice, entries: Entry<unknown>[]): void {
  for (const { call, answer } of pair(entries, dialect).sections.at(-1)!.calls) {
    if (answer || call.by === "provider") continue;
    const message = dialect.result(call, { error: "started, then the process died: outcome unknown" });
    if (message) entries.push(entry(message, entries.length, { synthetic: "repair" }));
  }
}

/** The conversation as it was lived: recorded entries, and the steps as they came. */
function lived(
  voice: Voice,
  conversation: readonly Happening[],
  judge: Judge,
): { entries: Entry<unknown>[]; steps: unknown[][] } {
  const entries: Entry<unknown>[] = [];
  const steps: unknown[][] = [];
  const said: Happening[] = [];
  for (const happening of [{ kind: "user", text: "go" } as const, ...conversation]) {
    const before = spoken(voice, said).length;
    said.push(happening);
    const fresh = spoken(voice, said).slice(before);
    if (happening.kind === "step") {
      repair(voice, entries);
      // What the provider has not finished, it would finish now, if nobody else had spoken.
      const isOpen = pair(entries, voice.dialect)
        .sections.at(-1)!
        .calls.some(({ answer }) => answer === null);
      if (isOpen || voice.dialect.role(entries.at(-1)!.message) === "assistant")
        entries.push(entry(voice.dialect.boundary("go on"), entries.length));
      const view = voice.dialect.arrange(entries, { changedAt: null, next: "model" });
      const step = judge.signed(
        fresh.map(({ message }) => message),
        view,
      );
      steps.push(step);
      for (const [index, message] of step.entries()) {
        entries.push(
          entry(message, entries.length, {
            step: fresh[index]!.step.startsWith("step") ? `step ${steps.length}` : `s${entries.length}`,
          }),
        );
      }
    } else {
      for (const { message } of fresh) entries.push(entry(message, entries.length));
    }
  }
  return { entries, steps };
}

function told(violations: Violation[]): string {
  return violations.map(({ rule, at, why }) => `${rule} ${at}: ${why}`).join("\n");
}

describe.each(voices.map((voice) => [voice.dialect.name, voice] as const))("%s", (name, voice) => {
  const judge = judges[name]!;
  const { dialect } = voice;
  const prompt = (entries: Entry<unknown>[]): Entry<unknown>[] => [
    ...entries,
    entry(voice.user("and now?"), entries.length),
  ];

  test("P4: cut anywhere, repaired, and with a prompt behind it, the provider accepts it", () => {
    holds(
      fc.property(happenings, fc.nat(), fc.boolean(), (conversation, where, repairs) => {
        const { entries, steps } = lived(voice, conversation, judge);
        let cut = 1 + (where % entries.length);
        while (entries[cut]?.step === entries[cut - 1]!.step) cut += 1;
        const some = entries.slice(0, cut);
        if (repairs || name === "acp") repair(voice, some);
        const view: View = { changedAt: null, next: "model" };
        expect(told(judge.judge(dialect.arrange(prompt(some), view), steps, false))).toBe("");
      }),
      seed,
      500,
    );
  });
});

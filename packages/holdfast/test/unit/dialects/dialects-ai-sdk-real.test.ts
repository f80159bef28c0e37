import type { Violation } from "@holdfast/testkit";
import { streamText } from "ai";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { aiSdk } from "../../../src/dialects/ai-sdk.ts";
import type { Entry, View } from "../../../src/dialects/dialect.ts";
import { pair } from "../../../src/dialects/order/pairing.ts";
import { seedOf } from "../../seed.ts";
import { bodyOf, type Known, type Provider, providers, response } from "./dialect-ai-sdk-providers.ts";
import { entry, type Happening, happenings, spoken } from "./dialect-conversations.ts";

/**
 * The `ai-sdk` dialect, judged by what the real packages send (P4): its messages go through `generateText` into each
 * provider's package, and the request that comes out is judged by the validator of that provider's API. The SDK lets
 * much pass that a provider then refuses, and throws at some things that no provider would see.
 *
 * Stated exceptions, each the package's own doing:
 * - A system message that is not at the beginning: @ai-sdk/google throws, and @ai-sdk/anthropic moves the first one to
 *   the top, which changes what signatures are bound to. It is not judged there. The SDK itself refuses system messages
 *   by default, and Holdfast makes none (R2).
 * - A pending approval: `ai` throws MissingToolResultsError, whatever its documentation says. The session closes such a
 *   call when a prompt follows (R7); without one there is nothing to ask the model.
 * - With `store: true`, @ai-sdk/openai sends references to what its server has (R4): not judged.
 */
const seed = seedOf(import.meta.url, "unit");

// biome-ignore lint/suspicious/noExplicitAny: messages have the shapes that their voice gives them.
type Made = any;

interface Life {
  readonly entries: Entry<Made>[];
  /** The content of each response as it came. */
  readonly responses: Made[][];
}

/** As the session does it before it goes on: every open call gets a result. */
function repaired(entries: readonly Entry<Made>[]): Entry<Made>[] {
  const out = [...entries];
  for (const { call, answer } of pair(entries, aiSdk).exchanges.at(-1)!.calls) {
    if (answer || call.by === "provider") continue;
    const message = aiSdk.result(call, { error: "started, then the process died: outcome unknown" });
    out.push(entry(message, out.length, { synthetic: "repair" }));
  }
  return out;
}

/** Repaired, and with a boundary where the assistant has the last word, or the provider runs a tool (R2). */
function askable(entries: readonly Entry<Made>[]): Entry<Made>[] {
  const out = repaired(entries);
  const isOpen = pair(out, aiSdk)
    .exchanges.at(-1)!
    .calls.some(({ answer }) => answer === null);
  const last = aiSdk.arrange(out, { changedAt: null, next: "model" }).at(-1);
  if (isOpen || aiSdk.role(last!) === "assistant") out.push(entry(aiSdk.boundary("go on"), out.length));
  return out;
}

function prompted(entries: readonly Entry<Made>[], voice: Provider["voice"]): Entry<Made>[] {
  return [...entries, entry(voice.user("and now?"), entries.length)];
}

/** The conversation as it was lived: the model speaks where it can be asked, and signs what its provider was sent. */
async function lived(provider: Provider, conversation: readonly Happening[], past?: Life, view = {}): Promise<Life> {
  const { voice, name: model } = provider;
  let entries = [...(past?.entries ?? [])];
  const responses = [...(past?.responses ?? [])];
  // Serial numbers go on: no server gives an id twice.
  const said: Happening[] = Array.from({ length: past ? 20 : 0 }, () => ({ kind: "orphan" }));
  for (const happening of [{ kind: "user", text: "go" } as const, ...conversation]) {
    if (happening.kind === "system" && !provider.systemAnywhere) continue;
    const before = spoken(voice, said).length;
    said.push(happening);
    const fresh = spoken(voice, said).slice(before);
    if (happening.kind !== "step") {
      for (const { message } of fresh) entries.push(entry(message, entries.length));
      continue;
    }
    entries = askable(entries);
    const body = await bodyOf(provider, aiSdk.arrange(entries, { changedAt: null, next: "model", model, ...view }));
    const { message } = fresh[0]! as Made;
    const content = provider.signed(message.content, body);
    responses.push(content);
    entries.push(entry({ ...message, content }, entries.length, { model }));
  }
  return { entries, responses };
}

/** No id twice, and none missing: only then can it be told which response a call came from. */
function withOwnIds(conversation: readonly Happening[]): Happening[] {
  let count = 0;
  return conversation.map((happening) => {
    if (happening.kind !== "step") return happening;
    const calls = happening.step.calls.map((call) => ({ ...call, id: `own_${count++}` }));
    return { ...happening, step: { ...happening.step, calls } };
  });
}

function told(violations: readonly Violation[], messages: readonly unknown[], body: unknown): string {
  if (violations.length === 0) return "";
  const lines = violations.map(({ rule, at, why }) => `${rule} ${at}: ${why}`);
  return [...lines, JSON.stringify(messages), JSON.stringify(body)].join("\n");
}

async function judged(
  provider: Provider,
  entries: readonly Entry<Made>[],
  view: Partial<View> = {},
  known: Known = {},
): Promise<string> {
  const messages = aiSdk.arrange(entries, { changedAt: null, next: "model", model: provider.name, ...view });
  const body = await bodyOf(provider, messages);
  return told(provider.judge(body, known), messages, body);
}

async function holds<Ts>(property: fc.IAsyncProperty<Ts>, runs: number): Promise<void> {
  await fc.assert(property, { seed, numRuns: runs * Number(process.env["HOLDFAST_EFFORT"] ?? 1) });
}

describe.each(providers.map((provider) => [provider.name, provider] as const))("%s", (_, provider) => {
  const { voice } = provider;

  test("P4: every beginning, repaired or not, and with a prompt behind it", async () => {
    await holds(
      fc.asyncProperty(happenings, fc.boolean(), async (conversation, repairs) => {
        const { entries } = await lived(provider, conversation);
        for (let n = 1; n <= entries.length; n++) {
          const some = entries.slice(0, n);
          expect(await judged(provider, prompted(repairs ? repaired(some) : some, voice))).toBe("");
        }
      }),
      60,
    );
  });

  test("P4: every beginning of what no model would have said: anything in any order", async () => {
    await holds(
      fc.asyncProperty(happenings, fc.boolean(), async (conversation, repairs) => {
        const said = conversation.filter(({ kind }) => provider.systemAnywhere || kind !== "system");
        const entries: Entry<Made>[] = spoken(voice, said);
        for (let n = 0; n <= entries.length; n++) {
          const some = entries.slice(0, n);
          const whole = prompted(repairs ? repaired(some) : some, voice);
          expect(await judged(provider, whole, {}, { unsigned: true })).toBe("");
        }
      }),
      60,
    );
  });

  test("P4, R1: every beginning of a tool loop that goes on; what the model signed goes back complete", async () => {
    await holds(
      fc.asyncProperty(happenings, async (conversation) => {
        const { entries, responses } = await lived(provider, withOwnIds(conversation));
        for (let n = 1; n <= entries.length; n++) {
          expect(await judged(provider, askable(entries.slice(0, n)), {}, { responses })).toBe("");
        }
      }),
      60,
    );
  });

  test("R1: the past was changed, and the model went on from there", async () => {
    await holds(
      fc.asyncProperty(happenings, happenings, fc.nat(), async (first, second, where) => {
        const past = await lived(provider, first);
        const before = repaired(past.entries);
        const spots = before.filter(({ message }) => aiSdk.role(message) === "user");
        const { id } = spots[where % spots.length]!;
        const entries = before.map((old) => (old.id === id ? { ...old, message: voice.user("something else") } : old));
        const view = { changedAt: id, changedUntil: entries.at(-1)!.id };
        expect(await judged(provider, prompted(entries, voice), view)).toBe("");
        const life = await lived(provider, second, { ...past, entries }, view);
        expect(await judged(provider, prompted(repaired(life.entries), voice), view)).toBe("");
      }),
      30,
    );
  });

  test.each(providers.filter((other) => other !== provider).map((other) => [other.name, other] as const))(
    "R4: what a model of %s said, sent to this one",
    async (_, other) => {
      await holds(
        fc.asyncProperty(happenings, async (conversation) => {
          const heard = conversation.filter(({ kind }) => provider.systemAnywhere || kind !== "system");
          const { entries } = await lived(other, heard);
          expect(await judged(provider, prompted(repaired(entries), voice))).toBe("");
        }),
        40,
      );
    },
  );
});

describe("approvals", () => {
  const provider = providers[0]!;
  const call = (toolCallId: string): Made => ({ type: "tool-call", toolCallId, toolName: "write", input: {} });
  const request = (toolCallId: string): Made => ({
    type: "tool-approval-request",
    approvalId: `approval of ${toolCallId}`,
    toolCallId,
  });
  const result = (toolCallId: string): Made => ({
    type: "tool-result",
    toolCallId,
    toolName: "write",
    output: { type: "text", value: "done before" },
  });
  const user = { role: "user", content: "go" };
  const asks = (...ids: string[]): Made => ({ role: "assistant", content: [...ids.map(call), ...ids.map(request)] });
  const tool = (...content: Made[]): Made => ({ role: "tool", content });
  const sent = async (messages: Made[]): Promise<{ ran: string[]; broken: string; body: Made }> => {
    const ran: string[] = [];
    const arranged = aiSdk.arrange(
      messages.map((message, at) => entry(message, at) as Entry<Made>),
      { changedAt: null, next: "model" },
    );
    const body = await bodyOf(provider, arranged, (id) => ran.push(id));
    return { ran, broken: told(provider.judge(body), arranged, body), body };
  };

  test("R7: given in another process, the tool runs once, and one result is sent", async () => {
    const { ran, broken, body } = await sent([user, asks("a"), tool(response("a", true))]);
    expect({ ran, broken }).toEqual({ ran: ["a"], broken: "" });
    expect(body.messages.at(-1).content).toMatchObject([{ type: "tool_result", tool_use_id: "a", content: "done" }]);
  });

  test("R7: what has run already does not run again, wherever its result stands", async () => {
    for (const results of [
      [tool(response("a", true)), tool(result("a"))],
      [tool(response("a", true), result("a"))],
      [tool(result("a")), tool(response("a", true))],
    ]) {
      expect(await sent([user, asks("a"), ...results])).toMatchObject({ ran: [], broken: "" });
    }
  });

  test("R7: of two, one has run and one was refused", async () => {
    const messages = [user, asks("a", "b"), tool(response("a", true), result("a")), tool(response("b", false))];
    const { ran, broken, body } = await sent(messages);
    expect({ ran, broken }).toEqual({ ran: [], broken: "" });
    expect(body.messages.at(-1).content).toHaveLength(2);
  });

  test("R7, R9: of two calls with one id, the one that was approved now runs", async () => {
    const messages = [user, asks("a"), tool(response("a", true), result("a")), asks("a"), tool(response("a", true))];
    expect(await sent(messages)).toMatchObject({ ran: ["a_2"], broken: "" });
  });

  test("one that is pending cannot be sent: the SDK says so, and the session closes it first", async () => {
    await expect(sent([user, asks("a")])).rejects.toThrow("Tool result is missing for tool call a");
    const closed = aiSdk.result({ id: "a", name: "write" }, { error: "was not approved, did not run" });
    expect(await sent([user, asks("a"), closed, user])).toMatchObject({ ran: [], broken: "" });
  });
});

test("streamText sends what generateText sends", async () => {
  for (const provider of providers) {
    const { entries } = await lived(provider, [
      { kind: "image" },
      {
        kind: "step",
        oneByOne: false,
        step: {
          reasoning: "signed",
          text: "hello",
          calls: [{ id: "a", name: "read", input: "whole" }],
          after: null,
          provider: "none",
        },
      },
      { kind: "user", text: "wait" },
      { kind: "result", back: 0, failed: true, synthetic: false },
    ]);
    const messages = aiSdk.arrange(entries, { changedAt: null, next: "model", model: provider.name });
    const streamed = await bodyOf(provider, messages, undefined, async (call) => {
      let failed: unknown;
      const onError = ({ error }: { error: unknown }): void => {
        failed = error;
      };
      await streamText({ ...call, onError }).consumeStream();
      throw failed;
    });
    // All else in it is for the stream.
    const conversation = ({ messages: list, input, contents }: Made): Made => list ?? input ?? contents;
    expect(JSON.stringify(conversation(streamed))).toContain("wait");
    expect(conversation(streamed)).toEqual(conversation(await bodyOf(provider, messages)));
  }
});

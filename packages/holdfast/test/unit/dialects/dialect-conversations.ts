import fc from "fast-check";
import type { Entry, View } from "../../../src/dialects/dialect.ts";
import type { MadeCall, MadeStep, Voice } from "./dialect-voices.ts";

/** What happens in a conversation, before it is said in a dialect. */
export type Happening =
  | { readonly kind: "user" | "system"; readonly text: string }
  | { readonly kind: "image" }
  | { readonly kind: "step"; readonly step: MadeStep; readonly oneByOne: boolean }
  /** The index among the calls of the last steps, so that some come twice, some never, and some late. */
  | { readonly kind: "result"; readonly back: number; readonly failed: boolean; readonly synthetic: boolean }
  | { readonly kind: "orphan" };

const plainText = fc.constantFrom("hello", "", "  \n", "more");
const plainCall: fc.Arbitrary<MadeCall> = fc.record({
  id: fc.constantFrom("call_0", "call_0", "call_1", "call_2", "call_3", null),
  name: fc.constantFrom("read", "write"),
  input: fc.constantFrom("whole", "whole", "cut", "null"),
});

/**
 * Text that is not Unicode; ids and names that no provider takes, that a model made up, or that are members of every
 * object.
 */
const oddText = fc.oneof(plainText, fc.constantFrom("half \ud83d", "\ude00", "\0"));
const oddCall: fc.Arbitrary<MadeCall> = fc.record({
  id: fc.constantFrom("call_0", "call_1", "__proto__", "constructor", "a b", "half \ud83d", "half \ude00", null),
  name: fc.constantFrom("read", "git diff", "", "constructor", "__proto__", "\ud83d", "x".repeat(300)),
  input: fc.constantFrom("whole", "whole", "cut", "null"),
});

function anything(text: fc.Arbitrary<string>, call: fc.Arbitrary<MadeCall>): fc.Arbitrary<Happening[]> {
  const step: fc.Arbitrary<MadeStep> = fc.record({
    reasoning: fc.constantFrom("none", "signed", "unsigned"),
    text: fc.oneof(fc.constant(null), text),
    calls: fc.array(call, { maxLength: 3 }),
    after: fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: text }),
    provider: fc.constantFrom("none", "none", "none", "none", "finished", "unfinished"),
  });
  return fc.array(
    fc.oneof(
      { weight: 3, arbitrary: fc.record({ kind: fc.constant("user" as const), text }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant("system" as const), text }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant("image" as const) }) },
      { weight: 4, arbitrary: fc.record({ kind: fc.constant("step" as const), step, oneByOne: fc.boolean() }) },
      {
        weight: 8,
        arbitrary: fc.record({
          kind: fc.constant("result" as const),
          back: fc.nat(4),
          failed: fc.boolean(),
          synthetic: fc.boolean(),
        }),
      },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant("orphan" as const) }) },
    ),
    { maxLength: 14 },
  );
}

/** Anything in any order. */
export const happenings = anything(plainText, plainCall);

/** The same, now and then with texts, ids and names that no provider takes. */
export const oddHappenings = fc.oneof(happenings, anything(oddText, oddCall));

export const views: fc.Arbitrary<View> = fc.record({
  changedAt: fc.oneof(
    { weight: 3, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: fc.constantFrom("e0", "e2", "e5", "gone") },
  ),
  changedUntil: fc.constantFrom(null, null, "e1", "e3", "e7", "gone"),
  next: fc.constantFrom("prompt", "model"),
});

export function entry(message: unknown, at: number, rest: Partial<Entry<unknown>> = {}): Entry<unknown> {
  return {
    id: `e${at}`,
    seq: at + 1,
    at: "2026-11-15T00:00:00.000Z",
    turn: 1,
    step: `s${at}`,
    message,
    metadata: {},
    ...rest,
  };
}

export function spoken(voice: Voice, conversation: readonly Happening[]): Entry<unknown>[] {
  const entries: Entry<unknown>[] = [];
  const calls: { call: MadeCall; id: string; name: string }[] = [];
  const add = (message: unknown, rest: Partial<Entry<unknown>> = {}): void => {
    entries.push(entry(message, entries.length, rest));
  };
  for (const [serial, happening] of conversation.entries()) {
    switch (happening.kind) {
      case "user":
        add(voice.user(happening.text));
        break;
      case "system":
        add(voice.system(happening.text));
        break;
      case "image":
        add(voice.image());
        break;
      case "step": {
        const messages = voice.step(happening.step, serial);
        for (const message of messages) add(message, happening.oneByOne ? {} : { step: `step ${serial}` });
        const found = messages.flatMap((message) => voice.dialect.calls(message)).filter(({ by }) => by === "agent");
        for (const [index, made] of happening.step.calls.entries()) {
          calls.push({ call: made, id: found[index]!.id, name: made.name });
        }
        break;
      }
      case "result": {
        const target = calls.at(-1 - happening.back);
        if (!target) break;
        const outcome = happening.failed ? { error: new Error("no") } : { value: `result ${serial}` };
        if (happening.synthetic) add(voice.dialect.result(target, outcome), { synthetic: "test" });
        else add(voice.result(target.call, `result ${serial}`, happening.failed));
        break;
      }
      case "orphan":
        add(voice.result({ id: "nobody", name: "nobody", input: "whole" }, "lost", false));
    }
  }
  return entries;
}

/** Whoever changes it now throws. Bytes cannot be frozen. */
export function frozen<T>(value: T): T {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const member of Object.values(value)) frozen(member);
  return value;
}

import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Entry, View } from "../../../src/dialects/dialect.ts";
import { pair } from "../../../src/dialects/order/pairing.ts";
import { stepsIn } from "../../../src/view/unsent.ts";
import { holds, seedOf } from "../../seed.ts";
import { entry, frozen, oddHappenings, spoken, views } from "./dialect-conversations.ts";
import { modelVoices, type Voice, voices } from "./dialect-voices.ts";

const seed = seedOf(import.meta.url, "unit");
const named = (list: readonly Voice[]) => list.map((voice) => [voice.dialect.name, voice] as const);

/** As an application would give it back. */
function again({ dialect }: Voice, view: readonly unknown[]): Entry<unknown>[] {
  const steps = stepsIn(view, dialect, (at) => `s${at}`);
  return view.map((message, at) => entry(message, at, { step: steps[at]! }));
}

/** Through its text, since JSON does not know minus zero. */
const json = fc.json().map((text) => JSON.parse(text) as unknown);

/** A message of the dialect's with something else in one of its places. */
function broken(voice: Voice): fc.Arbitrary<unknown> {
  return fc
    .tuple(oddHappenings, fc.nat(), fc.array(fc.nat(), { maxLength: 5 }), json)
    .map(([conversation, which, path, value]) => {
      const entries = spoken(voice, conversation);
      const message = structuredClone(entries[which % Math.max(1, entries.length)]?.message);
      let at = message as Record<string, unknown>;
      for (const turn of path) {
        const names = typeof at === "object" && at !== null && !ArrayBuffer.isView(at) ? Object.keys(at) : [];
        if (names.length === 0) break;
        const name = names[turn % names.length]!;
        if (turn % 3 === 0) {
          at[name] = value;
          break;
        }
        at = at[name] as Record<string, unknown>;
      }
      return message;
    });
}

describe.each(named(voices))("%s", (_, voice) => {
  const { dialect } = voice;
  const arrange = (entries: readonly Entry<unknown>[], view: View): unknown[] => dialect.arrange(entries, view);

  test("every function answers, whatever it is given, and changes nothing (C30)", () => {
    const anything = fc.oneof(json, broken(voice), fc.constant(undefined));
    expect(dialect.check({ role: 1n, type: 1n, sessionUpdate: 1n, content: "", parts: [] })).toEqual(
      expect.any(String),
    );
    const outcome = fc.oneof(fc.anything(), fc.record({ value: fc.anything() }), fc.record({ error: fc.anything() }));
    holds(
      fc.property(fc.array(anything, { maxLength: 6 }), outcome, views, (messages, came, view) => {
        for (const message of messages.map(frozen)) {
          expect([null, "string"]).toContain(dialect.check(message) === null ? null : typeof dialect.check(message));
          expect(typeof dialect.text(message)).toBe("string");
          expect(["system", "user", "assistant", "tool", "other"]).toContain(dialect.role(message));
          for (const { id, name } of dialect.calls(message)) {
            expect(typeof id + typeof name).toBe("stringstring");
            dialect.result({ id, name }, came as never);
          }
          for (const { call } of dialect.results(message)) expect(typeof call).toBe("string");
          expect(dialect.same(message, structuredClone(message))).toBe(true);
          if (dialect.encode) {
            const stored = dialect.encode(message);
            expect(dialect.decode!(JSON.parse(JSON.stringify(stored ?? null)))).toEqual(message ?? null);
          }
          dialect.decode?.(message as never);
        }
        expect(Array.isArray(arrange(frozen(messages.map((message, at) => entry(message, at))), view))).toBe(true);
      }),
      seed,
      300,
    );
  });

  test("C29: arranging what is arranged changes nothing", () => {
    holds(
      fc.property(oddHappenings, views, (conversation, view) => {
        const entries = frozen(spoken(voice, conversation));
        // Of calls without an id, a view cannot say which one waits. It is not sent before that one has its result.
        if (waits(voice, entries) && hasCallWithoutId(voice, entries)) return;
        const once = arrange(entries, view);
        const twice = arrange(frozen(again(voice, once)), { ...view, changedAt: null });
        expect(twice).toEqual(once);
      }),
      seed,
      600,
    );
  });

  test("C35, R1: more entries only add at the end of a view in which no call waits", () => {
    holds(
      fc.property(oddHappenings, views, (conversation, view) => {
        const entries = frozen(spoken(voice, conversation));
        const whole = voice.atoms(arrange(entries, view));
        for (let n = 0; n < entries.length; n++) {
          const some = entries.slice(0, n);
          if (view.changedAt !== null && !some.some(({ id }) => id === view.changedAt)) continue;
          // A step is stored as one unit: there is no half of it.
          if (entries[n - 1]?.step === entries[n]!.step || waits(voice, some)) continue;
          const beginning = voice.atoms(arrange(some, view));
          expect(whole.slice(0, beginning.length)).toEqual(beginning);
        }
      }),
      seed,
      600,
    );
  });

  test("nothing that it was given is changed, and the same is answered to the same", () => {
    holds(
      fc.property(oddHappenings, views, (conversation, view) => {
        const entries = frozen(spoken(voice, conversation));
        const copy = structuredClone(entries);
        expect(arrange(entries, frozen({ ...view }))).toEqual(arrange(copy, view));
        expect(isDeepStrictEqual(copy, entries)).toBe(true);
      }),
      seed,
      200,
    );
  });
});

function hasCallWithoutId({ dialect }: Voice, entries: readonly Entry<unknown>[]): boolean {
  return entries.some(({ message }) => dialect.calls(message).some((call) => "idless" in call));
}

function waits({ dialect }: Voice, entries: readonly Entry<unknown>[]): boolean {
  const { exchanges } = pair(entries, dialect);
  const isOpen = ({ call, answer, exchange }: (typeof exchanges)[number]["calls"][number]): boolean =>
    answer === null && (call.by === "provider" || exchange === exchanges.length - 1);
  return exchanges.some(({ calls }) => calls.some(isOpen));
}

describe.each(named(modelVoices))("%s", (_, voice) => {
  const { dialect } = voice;

  test("C29, P4: every call is answered once, in call order, before anything else is said", () => {
    holds(
      fc.property(oddHappenings, views, (conversation, view) => {
        const shown = dialect.arrange(frozen(spoken(voice, conversation)), view);
        const ids: string[] = [];
        for (let at = 0; at < shown.length; ) {
          const calls: string[] = [];
          for (; at < shown.length && dialect.role(shown[at]) === "assistant"; at++) {
            for (const { id, by } of dialect.calls(shown[at])) if (by === "agent") calls.push(id);
            // A message with calls is followed by their results, not by the next message of the assistant's.
            if (dialect.name !== "openai-responses" && calls.length > 0 && ++at) break;
          }
          const results: string[] = [];
          let isSaid = false;
          for (; at < shown.length && dialect.role(shown[at]) !== "assistant"; at++) {
            const found = dialect.results(shown[at]).map(({ call }) => call);
            if (found.length > 0) expect(isSaid).toBe(false);
            else isSaid = true;
            results.push(...found);
          }
          ids.push(...calls);
          if (at < shown.length || isSaid || view.next === "prompt") expect(results).toEqual(calls);
          else if (dialect.name === "gemini") expect(results.length).toBeLessThanOrEqual(calls.length);
          else expect(calls.filter((id) => results.includes(id))).toEqual(results);
        }
        if (dialect.name !== "gemini") expect(new Set(ids).size).toBe(ids.length);
      }),
      seed,
      800,
    );
  });

  test("P4: nothing that is shown is empty, and every result that was first in its place is there", () => {
    holds(
      fc.property(oddHappenings, fc.constantFrom("prompt" as const, "model" as const), (conversation, next) => {
        const entries = frozen(spoken(voice, conversation));
        const shown = dialect.arrange(entries, { changedAt: null, next });
        // Beside calls, openai-chat has empty content as the server sent it.
        const texts = shown.map((message) => (message.tool_calls ? { ...message, content: null } : message));
        expect(JSON.stringify(texts)).not.toMatch(/"(?:text|content)":"(?:\s|\\n)*"/);
        expect(JSON.stringify(shown)).not.toMatch(/"(?:parts|content|tool_calls)":\[\]/);
        for (const message of shown) expect(dialect.check(message)).toBeNull();
      }),
      seed,
      300,
    );
  });
});

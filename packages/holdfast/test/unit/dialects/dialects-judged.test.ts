import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Entry, View } from "../../../src/dialects/dialect.ts";
import { pair } from "../../../src/dialects/order/pairing.ts";
import { wellFormed } from "../../../src/text/well-formed.ts";
import { holds, seedOf } from "../../seed.ts";
import { entry, type Happening, oddHappenings, spoken } from "./dialect-conversations.ts";
import { type Voice, voices } from "./dialect-voices.ts";
import { judges, type ProviderJudge, told } from "./provider-judges.ts";

/**
 * What the dialects arrange, judged by validators that others wrote from the providers' documents (P4). Conversations
 * are lived: the model speaks where it can be asked, and signs what it has seen. Then they are cut anywhere, repaired
 * as the sessions layer repairs, and go on with a prompt.
 */
const seed = seedOf(import.meta.url, "unit");

/** As the sessions layer does it before it goes on: every open call of the last exchange gets a result. */
function repair({ dialect }: Voice, entries: Entry<unknown>[]): void {
  for (const { call, answer } of pair(entries, dialect).exchanges.at(-1)!.calls) {
    if (answer || call.by === "provider") continue;
    const message = dialect.result(call, { error: "started, then the process died: outcome unknown" });
    if (message) entries.push(entry(message, entries.length, { synthetic: "repair" }));
  }
}

interface Life {
  readonly entries: Entry<unknown>[];
  /** The steps as they came. */
  readonly steps: unknown[][];
}

/** The conversation as it was lived, at first with one model, and from some step on with another. */
function lived(
  voice: Voice,
  conversation: readonly Happening[],
  judge: ProviderJudge,
  newFrom = 0,
  before: Life = { entries: [], steps: [] },
  changed: Partial<View> = {},
): Life {
  const { dialect } = voice;
  const entries = [...before.entries];
  const steps = [...before.steps];
  // Serial numbers go on: no server gives an id twice.
  const said: Happening[] = Array.from({ length: 20 * steps.length }, () => ({ kind: "orphan" }));
  for (const happening of [{ kind: "user", text: "go" } as const, ...conversation]) {
    const before = spoken(voice, said).length;
    said.push(happening);
    const fresh = spoken(voice, said).slice(before);
    if (happening.kind !== "step") {
      for (const { message } of fresh) entries.push(entry(message, entries.length));
      continue;
    }
    repair(voice, entries);
    // What the provider has not finished, it would finish now, if nobody else had spoken.
    const isOpen = pair(entries, dialect)
      .exchanges.at(-1)!
      .calls.some(({ answer }) => answer === null);
    if (isOpen || dialect.role(entries.at(-1)!.message) === "assistant") {
      entries.push(entry(dialect.boundary("go on"), entries.length));
    }
    const model = steps.length < newFrom ? "old" : "new";
    const view = wellFormed(dialect.arrange(entries, { changedAt: null, ...changed, model, next: "model" }));
    const step = judge.signed(
      fresh.map(({ message }) => message),
      view,
    );
    steps.push(step);
    for (const [index, message] of step.entries()) {
      const isOne = fresh[index]!.step.startsWith("step");
      entries.push(
        entry(message, entries.length, { model, step: isOne ? `step ${steps.length}` : `s${entries.length}` }),
      );
    }
  }
  return { entries, steps };
}

/** The first of them, without half a step at the end. */
function cut(entries: readonly Entry<unknown>[], where: number): Entry<unknown>[] {
  let end = 1 + (where % entries.length);
  while (end < entries.length && entries[end]!.step === entries[end - 1]!.step) end += 1;
  return entries.slice(0, end);
}

describe.each(voices.map((voice) => [voice.dialect.name, voice] as const))("%s", (name, voice) => {
  const judge = judges[name]!;
  const { dialect } = voice;
  const prompt = (entries: Entry<unknown>[]): Entry<unknown>[] => [
    ...entries,
    entry(voice.user("and now?"), entries.length),
  ];

  const judged = (entries: Entry<unknown>[], view: Partial<View>, { steps }: Life, open = false): string => {
    const shown = wellFormed(dialect.arrange(entries, { changedAt: null, next: "model", ...view }));
    return told(judge.judge(shown, steps, open, false));
  };

  test("P4: cut anywhere, repaired, and with a prompt behind it, the provider accepts it", () => {
    holds(
      fc.property(oddHappenings, fc.nat(), fc.boolean(), (conversation, where, repairs) => {
        const life = lived(voice, conversation, judge);
        const some = cut(life.entries, where);
        // Without a repair, steps that cannot be sent are left out. A client is shown them.
        if (repairs || name === "acp") repair(voice, some);
        expect(judged(prompt(some), {}, life)).toBe("");
      }),
      seed,
      500,
    );
  });

  test("P4: repaired and asked to go on without a prompt", () => {
    holds(
      fc.property(oddHappenings, fc.nat(), (conversation, where) => {
        const life = lived(voice, conversation, judge);
        const some = cut(life.entries, where);
        repair(voice, some);
        const shown = dialect.arrange(some, { changedAt: null, next: "model" });
        if (dialect.role(shown.at(-1)) === "assistant") some.push(entry(dialect.boundary("go on"), some.length));
        expect(judged(some, {}, life, true)).toBe("");
      }),
      seed,
      300,
    );
  });

  test("R4: with another model than before, and back to the beginning with it", () => {
    holds(
      fc.property(oddHappenings, fc.nat(4), fc.nat(), (conversation, newFrom, where) => {
        const life = lived(voice, conversation, judge, newFrom);
        const some = cut(life.entries, where);
        repair(voice, some);
        expect(judged(prompt(some), { model: "new" }, life)).toBe("");
        expect(judged(prompt(some), { model: "third" }, life)).toBe("");
      }),
      seed,
      300,
    );
  });

  test("R1: where the application changed the past", () => {
    holds(
      fc.property(oddHappenings, fc.nat(), (conversation, where) => {
        const life = lived(voice, conversation, judge);
        const some = [...life.entries];
        repair(voice, some);
        const spots = some.filter(({ message }) => dialect.role(message) === "user");
        const { id } = spots[where % spots.length]!;
        const changed = some.map((old) => (old.id === id ? { ...old, message: voice.user("something else") } : old));
        expect(judged(prompt(changed), { changedAt: id }, life)).toBe("");
      }),
      seed,
      300,
    );
  });

  test("R1: where the application changed the past, and the model went on from there", () => {
    holds(
      fc.property(oddHappenings, oddHappenings, fc.nat(), (first, second, where) => {
        const before = lived(voice, first, judge);
        repair(voice, before.entries);
        const spots = before.entries.filter(({ message }) => dialect.role(message) === "user");
        const { id } = spots[where % spots.length]!;
        const entries = before.entries.map((old) =>
          old.id === id ? { ...old, message: voice.user("something else") } : old,
        );
        const view = { changedAt: id, changedUntil: entries.at(-1)!.id };
        const life = lived(voice, second, judge, 0, { entries, steps: before.steps }, view);
        repair(voice, life.entries);
        expect(judged(prompt(life.entries), view, life)).toBe("");
      }),
      seed,
      300,
    );
  });
});

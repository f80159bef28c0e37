import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isShown } from "../../../src/conversation/item.ts";
import { pair } from "../../../src/dialects/order/pairing.ts";
import { HoldfastError } from "../../../src/errors.ts";
import { editRecord } from "../../../src/replace/edit.ts";
import { forkRecords } from "../../../src/replace/fork.ts";
import { messagesOf } from "../../../src/view/messages.ts";
import { holds, seedOf } from "../../seed.ts";
import { type Happening, happenings } from "../dialects/dialect-conversations.ts";
import { modelVoices, voices } from "../dialects/dialect-voices.ts";
import { LIVE, Life, lived, STILL } from "./epoch-lives.ts";

const seed = seedOf(import.meta.url, "unit");

/** How many entries may be kept from the beginning without cutting anything apart. */
function wholePrefixes({ conversation, entries }: Life): number[] {
  const { items, dialect } = conversation;
  const shown = items.filter(isShown);
  const { calls } = pair(
    shown.map(({ entry }) => entry),
    dialect,
  );
  const place = (at: number): number => items.indexOf(shown[at]!);
  const spans = calls.flat().flatMap((one) => (one?.answer ? [[place(one.entry), place(one.answer.entry)]] : []));
  for (const [at, { step }] of entries.entries()) spans.push([at, entries.findLastIndex((one) => one.step === step)]);
  return Array.from({ length: entries.length + 1 }, (_, at) => at).filter((at) =>
    spans.every(([from, to]) => to! < at || from! >= at),
  );
}

/** What an application may do to a conversation, at any time. */
type Change =
  | Happening
  | { readonly kind: "rewind" | "tail" | "drop" | "edit" | "hide"; readonly where: number; readonly now: boolean }
  | { readonly kind: "undo" | "fork" };

const changes: fc.Arbitrary<Change[]> = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: happenings.filter(({ length }) => length > 0).map(([first]) => first!) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constantFrom("rewind" as const, "tail" as const, "drop" as const, "edit" as const, "hide" as const),
        where: fc.nat(20),
        now: fc.boolean(),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("undo" as const, "fork" as const) }) },
  ),
  { maxLength: 20 },
);

const REFUSALS = ["STEP_SPLIT", "CALLS_OPEN", "UNDO_TOO_LATE", "MESSAGE_UNKNOWN"];

/** Does it, or is refused. Answers the life that goes on. */
function change(life: Life, one: Change): Life {
  const { entries, voice, conversation } = life;
  switch (one.kind) {
    case "rewind":
      life.replace(entries.slice(0, one.where), { reason: "rewind", activity: one.now ? LIVE : STILL });
      return life;
    case "tail":
      life.replace([voice.user("summary"), ...entries.slice(-one.where)]);
      return life;
    case "drop":
      life.replace(entries.filter((_, at) => at !== one.where));
      return life;
    case "edit": {
      const { step } = entries[one.where % entries.length] ?? { step: "none" };
      const ids = entries.filter((entry) => entry.step === step).map(({ id }) => id);
      const { now } = one;
      const shown = one.where % 2 ? [] : [life.stored(voice.user("in other words"))];
      life.write(editRecord(conversation, ids, shown, { reason: "shorter", now }, () => life.newId()));
      return life;
    }
    case "hide": {
      const { id } = entries[one.where % entries.length] ?? { id: "nobody" };
      life.write({ kind: "patch", id, metadata: { hiddenFromModel: one.now } });
      return life;
    }
    case "undo":
      life.undo();
      return life;
    case "fork": {
      const fork = new Life(voice, { begun: false, name: `${life.newId()}f` });
      fork.begin(forkRecords(conversation, { from: "source" }));
      fork.steps.push(...life.steps);
      fork.prompt("go");
      return fork;
    }
    default:
      // Reasoning that is recorded apart from what follows it is no step, and can be cut off from it.
      life.happens(one.kind === "step" ? { ...one, oneByOne: false } : one);
      return life;
  }
}

describe.each(modelVoices.map((voice) => [voice.dialect.name, voice] as const))("%s", (_name, voice) => {
  test("P4: whatever is replaced, undone, edited, hidden and forked, in whatever order, the provider accepts it", () => {
    holds(
      fc.property(changes, (all) => {
        let life = lived(voice, []);
        for (const one of all) {
          const before = life.records.length;
          try {
            life = change(life, one);
          } catch (error) {
            if (!(error instanceof HoldfastError) || !REFUSALS.includes(error.code)) throw error;
            expect(life.records, "what is refused leaves nothing behind").toHaveLength(before);
          }
        }
        expect(messagesOf(life.reopened(), STILL)).toEqual(life.view(STILL));
        expect(life.accepted()).toBe("");
      }),
      seed,
      300,
    );
  });
});

describe.each(voices.map((voice) => [voice.dialect.name, voice] as const))("%s", (_name, voice) => {
  test("R11: replaced by all of its entries, it is the conversation that it was", () => {
    holds(
      fc.property(happenings, (conversation) => {
        const life = lived(voice, conversation);
        const { entries } = life;
        const [live, still] = [life.view(LIVE), life.view(STILL)];
        life.replace(entries);
        expect(life.view(LIVE)).toEqual(live);
        expect(life.view(STILL)).toEqual(still);
        const found = life.reopened();
        expect(messagesOf(found, STILL)).toEqual(still);
        const plain = ({ seq: _, ...entry }: (typeof entries)[number]) => entry;
        expect(found.items.map(({ entry }) => plain(entry))).toEqual(entries.map(plain));
        expect(life.accepted()).toBe("");
      }),
      seed,
      200,
    );
  });

  test("C32: rewound to any whole step, the provider accepts it", () => {
    holds(
      fc.property(happenings, fc.nat(), (conversation, where) => {
        const life = lived(voice, conversation);
        const prefixes = wholePrefixes(life);
        const kept = life.entries.slice(0, prefixes[where % prefixes.length]!);
        life.replace(kept, { reason: "rewind", activity: STILL });
        expect(life.entries.map(({ id }) => id)).toEqual(kept.map(({ id }) => id));
        expect(life.conversation.changed.saved(), "nothing of what is left was signed over another past").toBeNull();
        expect(messagesOf(life.reopened(), STILL)).toEqual(life.view(STILL));
        expect(life.accepted()).toBe("");
      }),
      seed,
      200,
    );
  });

  test("R11: a summary and the last entries, however many: nobody has to count", () => {
    holds(
      fc.property(happenings, fc.nat(30), (conversation, count) => {
        // News of a call that stand alone belong to it by their id alone, which only acp knows.
        const isWhole = voice.dialect.name !== "acp";
        const happened = conversation.map((one) =>
          one.kind === "step" && !isWhole ? { ...one, oneByOne: false } : one,
        );
        const life = lived(voice, happened);
        const tail = life.entries.slice(-count);
        life.replace([voice.user("all that was before"), ...tail]);
        const ids = life.entries.map(({ id }) => id);
        expect(ids).toEqual(expect.arrayContaining(tail.map(({ id }) => id)));
        expect(messagesOf(life.reopened(), STILL)).toEqual(life.view(STILL));
        expect(life.accepted()).toBe("");
      }),
      seed,
      200,
    );
  });

  test("C32: undone, also when the turn went on meanwhile, it is what it was and what was recorded since", () => {
    holds(
      fc.property(happenings, happenings, fc.nat(30), (first, second, count) => {
        const life = lived(voice, first);
        const twin = lived(voice, first);
        life.replace([voice.user("all that was before"), ...life.entries.slice(-count)]);
        const since = second.filter((one) => one.kind !== "user" || one.text !== "hello");
        const known = life.entries.length;
        for (const happening of since) life.happens(happening);
        const added = life.conversation.items.slice(known).filter(({ from }) => from !== "result");
        life.undo();
        const ids = life.entries.map(({ id }) => id);
        // Results that a message has come to hold are in that (R6).
        const lasting = twin.conversation.items.filter(({ from }) => from !== "result").map(({ entry }) => entry.id);
        expect(ids.filter((id) => lasting.includes(id))).toEqual(lasting);
        expect(ids).toEqual(expect.arrayContaining(added.map(({ entry }) => entry.id)));
        if (since.length === 0) expect(life.view()).toEqual(twin.view());
        expect(messagesOf(life.reopened(), STILL)).toEqual(life.view(STILL));
        expect(life.accepted()).toBe("");
      }),
      seed,
      200,
    );
  });

  test("C33, C34: forked at any message, it has the same beginning, whole, and the provider accepts it", () => {
    holds(
      fc.property(happenings, fc.nat(), (conversation, where) => {
        const life = lived(voice, conversation);
        const { id: at } = life.entries[where % life.entries.length]!;
        const fork = new Life(voice, { begun: false, name: "fork" });
        fork.begin(forkRecords(life.conversation, { at, from: "source" }));
        fork.steps.push(...life.steps);
        const ids = fork.entries.filter(({ synthetic }) => synthetic !== "forked").map(({ id }) => id);
        expect(ids).toContain(at);
        const end = life.entries.findIndex(({ id }) => id === at);
        expect(ids.slice(0, end + 1)).toEqual(life.entries.slice(0, end + 1).map(({ id }) => id));
        expect(messagesOf(fork.reopened(), STILL)).toEqual(fork.view(STILL));
        expect(fork.accepted()).toBe("");
      }),
      seed,
      200,
    );
  });
});

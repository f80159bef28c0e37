import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Conversation } from "../../../src/conversation/conversation.ts";
import { isShown } from "../../../src/conversation/item.ts";
import { pair } from "../../../src/dialects/order/pairing.ts";
import { interruptionOf, openCalls } from "../../../src/view/interruption.ts";
import { messagesOf } from "../../../src/view/messages.ts";
import { planResume, repairForPrompt } from "../../../src/view/repairs.ts";
import { holds, seedOf } from "../../seed.ts";
import { voices } from "../dialects/dialect-voices.ts";
import { call, step } from "../replace/epoch-lives.ts";
import { anyRecords } from "./fold-arbitraries.ts";
import { Book, type Written } from "./fold-book.ts";

/** C29, C30: whatever the records are, the fold takes them, and what is repaired stays so. */
const seed = seedOf(import.meta.url, "unit");

/** All that anybody can ask of it. */
function asked(conversation: Conversation<unknown>): unknown {
  const { items, usage, usageByTurn, queue, attributes, draft, turns, undo, epochSeq, head, at } = conversation;
  const { turn } = conversation;
  return {
    items,
    usage,
    usageByTurn,
    queue,
    state: conversation.appState.saved(),
    keys: conversation.promptKeys.saved(),
    attributes,
    turns,
    undo,
    epochSeq,
    head,
    at,
    draft: draft?.content,
    turn: turn && { ...turn, writers: [...turn.writers] },
    saved: draft?.checkpoint(),
    runs: conversation.toolStarts.saved(),
    changed: conversation.changed.saved(),
    interruption: interruptionOf(conversation),
    still: messagesOf(conversation, { kind: "idle" }),
    live: messagesOf(conversation, { kind: "active", since: 3 }),
    repair: repairForPrompt(conversation),
    plans: [
      planResume(conversation, {}),
      planResume(conversation, { calls: "rerun", draft: "keep" }),
      planResume(conversation, { calls: () => "keep" }),
    ],
  };
}

describe.each(voices.map((voice) => [voice.dialect.name, voice] as const))("%s", (name, voice) => {
  const { dialect } = voice;

  test("C30: it takes any records, and is the same at once and one by one, whoever looks in between", () => {
    holds(
      fc.property(anyRecords(voice), fc.nat(5), (records, skipped) => {
        const book = new Book(dialect);
        for (const [at, record] of records.entries()) {
          if (at === skipped + 3) book.lose();
          book.write(record);
          asked(book.conversation);
        }
        expect(asked(book.again())).toEqual(asked(book.conversation));
      }),
      seed,
      400,
    );
  });

  test("C29: once it is repaired and a prompt is there, nothing is left to repair; and repairing twice changes nothing", () => {
    holds(
      fc.property(anyRecords(voice), (any) => {
        // What the application changes at the start of a turn is its own to keep whole: edit.ts sees to that.
        const isPending = ({ kind, checkpoint }: Written): boolean =>
          kind === "edit" || kind === "patch" || checkpoint?.pending === true;
        const records = any.filter((record) => !isPending(record));
        const book = new Book(dialect);
        book.write(...records);
        const entries = repairForPrompt(book.conversation);
        const twice = new Book(dialect);
        twice.write(...records, { kind: "repair", turn: 1, entries });
        const once = asked(twice.conversation) as { items: unknown; still: unknown };
        twice.write({ kind: "repair", turn: 1, entries: repairForPrompt(twice.conversation) });
        const after = asked(twice.conversation) as { items: unknown; still: unknown };
        expect(after.still).toEqual(once.still);
        expect(after.items).toEqual(once.items);

        const { conversation } = book;
        book.prompt(voice.user("and now?"));
        for (const call of openCalls(conversation)) {
          expect(call.state !== "provider" && dialect.result(call, { error: "x" }) !== null).toBe(false);
        }
        const { synthetic, message } = repairForPrompt(conversation).at(-1)!;
        expect([synthetic, dialect.role(message)]).toEqual(["boundary", "user"]);
      }),
      seed,
      400,
    );
  });

  test("C29: a repair that stands before the call that it names, and answers nothing, does not leave that call open", () => {
    const book = new Book(dialect);
    const [made] = voice.step(step({ calls: [call("c")] }), 1);
    const place = { message: "a", index: 0 };
    const entries = [
      { id: "a~0", message: voice.user("by somebody else") as never, synthetic: "unrecorded", call: place },
      { id: "a", message: made as never, synthetic: "unrecorded" },
    ];
    book.write({ kind: "repair", turn: 1, entries });
    book.write({ kind: "repair", turn: 1, entries: repairForPrompt(book.conversation) });
    expect(openCalls(book.conversation)).toEqual([]);
  });

  test("R9: the live end pairs as the view does", () => {
    holds(
      fc.property(anyRecords(voice), (records) => {
        const { conversation } = writtenTo(new Book(dialect), records);
        const shown = conversation.items.filter(isShown);
        const last = pair(
          shown.map(({ entry }) => entry),
          dialect,
        ).exchanges.at(-1)!;
        const expected = last.calls
          .filter(({ answer }) => !answer)
          .map(({ entry, index, call }) => [shown[entry]!.entry.id, index, call.id]);
        expect(openCalls(conversation).map(({ message, index, id }) => [message, index, id])).toEqual(expected);
      }),
      seed,
      600,
    );
  });

  test("what it hands out cannot be changed, and what it was given is not", () => {
    holds(
      fc.property(anyRecords(voice), (records) => {
        const given = JSON.stringify(records);
        const { conversation } = writtenTo(new Book(dialect), records);
        for (const message of messagesOf(conversation, { kind: "idle" })) expect(isDeepFrozen(message)).toBe(true);
        for (const { entry } of conversation.items) expect(isDeepFrozen(entry)).toBe(true);
        expect(JSON.stringify(records)).toBe(given);
      }),
      seed,
      100,
    );
  });

  test(`${name}: of a kind that must not be passed over, it says so`, () => {
    const book = new Book(dialect);
    expect(() => book.write({ kind: "of-tomorrow", must: true })).toThrow(
      expect.objectContaining({ code: "FORMAT_NEWER" }),
    );
    book.write({ kind: "of-tomorrow" });
  });
});

function writtenTo(book: Book, records: Parameters<Book["write"]>): Book {
  book.write(...records);
  return book;
}

/** Bytes and URLs cannot be frozen. */
function isDeepFrozen(value: unknown): boolean {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || value instanceof URL) return true;
  return Object.isFrozen(value) && Object.values(value).every(isDeepFrozen);
}

import fc from "fast-check";
import { expect, test } from "vitest";
import { isShown } from "../../../src/conversation/item.ts";
import { defined } from "../../../src/defined.ts";
import { howOf, interruptionOf, openCalls } from "../../../src/view/interruption.ts";
import { SessionReader } from "../../corpus/independent-sessions.ts";
import { holds, seedOf } from "../../seed.ts";
import { voices } from "../dialects/dialect-voices.ts";
import { anyRecords } from "./fold-arbitraries.ts";
import { Book, type Written } from "./fold-book.ts";

/**
 * P10: FORMAT.md, section 10, says all that the fold does about entries, open calls, drafts and turns. The other reader
 * follows that page, and imports nothing of ours.
 */

const seed = seedOf(import.meta.url, "unit");
const voice = voices.find(({ dialect }) => dialect.name === "anthropic")!;

/** `shown` of a tool is a result, or nothing. */
function isRead({ kind, shown }: Written): boolean {
  return kind !== "tool.ended" || !shown || voice.dialect.role(shown) === "tool";
}

test("a reader that follows FORMAT.md finds the same entries, open calls, drafts and ends of turns", () => {
  holds(
    fc.property(anyRecords(voice), fc.nat(20), (records, skipped) => {
      const book = new Book(voice.dialect);
      for (const [at, record] of records.filter(isRead).entries()) {
        if (at === skipped) book.lose();
        book.write(record);
      }
      const reader = new SessionReader();
      for (const record of book.records) reader.add(record);
      const { conversation } = book;
      const { items, draft, turn } = conversation;

      expect(reader.items.map(({ id }) => id)).toEqual(items.map(({ entry }) => entry.id));
      for (const [at, { from, hidden, message, ...entry }] of reader.items.entries()) {
        const { at: _at, model: _model, message: said, ...other } = items[at]!.entry;
        expect(entry).toEqual(other);
        if (from !== "result") expect(message).toEqual(said);
        expect(!hidden && entry.late !== true, `${entry.id} is shown`).toBe(isShown(items[at]!));
      }
      const how = turn ? howOf(turn).kind : "completed";
      expect(reader.how ?? "completed").toBe(how);
      expect(reader.turn?.tries ?? 0).toBe(turn?.attempts ?? 0);
      const open = interruptionOf(conversation)?.calls ?? openCalls(conversation);
      const found = open.map(({ id, message, state, process, key, probe, before, unstarted, steps }) =>
        defined({ id, message, state, process, key, probe, before, unstarted, steps }),
      );
      const strays = how === "completed" ? [] : found.filter(({ message }) => message === null);
      const mine = reader.open.filter(({ message }) => message !== null || how !== "completed");
      expect(mine.map((call) => defined(call))).toEqual([
        ...found.filter(({ message }) => message !== null),
        ...strays,
      ]);
      const parts = [...(reader.draft?.parts ?? [])].sort(([a], [b]) => a - b).map(([, part]) => part);
      expect(draft && { ...draft.content, calls: undefined }).toEqual(
        reader.draft && {
          id: reader.draft.id,
          text: parts.map(({ text }) => text).join(""),
          reasoning: parts.map(({ reasoning }) => reasoning).join(""),
          calls: undefined,
          gap: reader.draft.gap,
        },
      );
      const { accepted } = conversation;
      expect(accepted && { ...accepted, calls: accepted.calls === true }).toEqual(
        reader.accepted && expect.objectContaining(reader.accepted),
      );
      expect(conversation.queue.map(({ id }) => id)).toEqual([...reader.queue.keys()]);
      expect(conversation.attributes.notes).toEqual(reader.notes);
      for (const key of ["k1", "k2"]) expect(conversation.promptKeys.find(key)).toEqual(reader.keys.get(key) ?? null);
      expect(conversation.appState.current).toEqual(Object.fromEntries(reader.state));
      expect(conversation.turns).toBe(reader.turns);
      // Where the message of a prompt came before its turn, or never, or was changed since, nobody has to know of it.
      const { prompt } = reader.turn ?? {};
      const isChanged = book.records.some(({ kind }) => kind === "edit" || kind === "patch" || kind === "repair");
      if (prompt && prompt.message !== null && !isChanged)
        expect(prompt).toMatchObject({ id: turn!.prompt.id, message: turn!.prompt.message });
    }),
    seed,
    500,
  );
});

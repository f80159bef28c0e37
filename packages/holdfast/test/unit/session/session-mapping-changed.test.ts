import { dialects, type HoldfastError, mapDialect, type OpenAIChatMessage } from "holdfast";
import { Memory, openMemoryStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { describe, expect, test } from "vitest";

interface Note {
  readonly who: "user" | "assistant";
  readonly said: string;
  readonly mood?: string;
}

type To = (note: Note) => OpenAIChatMessage;

const plain: To = ({ who, said }) => ({ role: who, content: said });
const notes = (to: To) =>
  mapDialect<Note, OpenAIChatMessage>(dialects["openai-chat"], {
    name: "notes",
    to,
    from: ({ role, content }) => ({ who: role as "user", said: content as string }),
  });

/** Later versions of the application's `to`, which no longer know a mood. */
const later: Readonly<Record<string, To>> = {
  throws: (note) => {
    if (note.mood !== undefined) throw new Error("a note has no mood");
    return plain(note);
  },
  "returns something unfit": (note) => (note.mood === undefined ? plain(note) : ({ role: "mood" } as never)),
  "returns nothing": (note) => (note.mood === undefined ? plain(note) : (undefined as never)),
};

const told: Note[] = [
  { who: "user", said: "How are you?" },
  { who: "assistant", said: "Well.", mood: "good" },
];

describe.each(Object.entries(later))("a later version of `to` %s for a recorded message", (_, to) => {
  const memory = new Memory();
  const opened = (mapping: To) =>
    openStoreWith((options) => openMemoryStore({ ...options, memory }), { dialects: [notes(mapping)] });

  async function recorded(isEnded: boolean, [prompt, ...others] = told): Promise<string> {
    const store = await opened(plain);
    const session = await store.create<Note>({ dialect: "notes" as never });
    const turn = await session.startTurn(prompt!);
    for (const note of others) await turn.append(note);
    if (isEnded) await turn.end();
    memory.crash(session.id);
    return session.id;
  }

  test("no request is made without it: the error names it, and it stays recorded", async () => {
    const id = await recorded(true);
    await using store = await opened(to);
    await using session = await store.resume<Note>(id);
    const { id: message, seq } = session.entries[1]!;
    const unfit = { code: "MESSAGE_UNFIT", facts: { dialect: "notes", message, seq, turn: 1 } };
    expect(() => session.messages).toThrow(expect.objectContaining({ message: expect.stringContaining(message) }));
    expect(errorOf(() => session.messages)).toMatchObject(unfit);
    // What a person says is recorded all the same.
    const turn = await session.startTurn({ who: "user", said: "And now?" });
    expect(errorOf(() => turn.request())).toMatchObject(unfit);
    expect(session.entries.map((entry) => entry.message)).toEqual([...told, { who: "user", said: "And now?" }]);
    expect((await store.read<Note>(id)).entries).toHaveLength(3);
  });

  test("the session goes on after the message was hidden, or edited, or `to` accepts it again", async () => {
    const [hidden, edited] = [await recorded(true), await recorded(true)];
    const next: Note = { who: "user", said: "And now?" };
    await using store = await opened(to);
    {
      await using session = await store.resume<Note>(hidden);
      await session.patch(session.entries[1]!.id, { hiddenFromModel: true });
      await session.startTurn(next);
      expect(session.messages).toEqual([told[0], next]);
    }
    {
      await using session = await store.resume<Note>(edited);
      const shown: Note = { who: "assistant", said: "Well." };
      await session.edit([session.entries[1]!.id], [shown], { reason: "moods are gone", now: true });
      expect(session.messages).toEqual([told[0], shown]);
    }
    await using fixed = await opened(plain);
    expect((await fixed.read<Note>(hidden)).entries.map(({ message }) => message)).toEqual([...told, next]);
  });

  const said = (who: Note["who"], words: string): Note => ({ who, said: words });
  test.each([
    ["an answer", told],
    ["a prompt", [{ ...said("user", "hello"), mood: "good" }]],
    ["a prompt before an empty answer", [{ ...said("user", "hello"), mood: "good" }, said("assistant", "")]],
    [
      "a message after the answer",
      [...told.map(({ mood: _, ...note }) => note), { ...said("user", "no"), mood: "bad" }],
    ],
  ])("an interrupted session can be looked at, listed and resumed: it is %s", async (_, notes) => {
    const id = await recorded(false, notes);
    await using store = await opened(to);
    expect((await store.read<Note>(id)).interruption).toMatchObject({ turn: 1, answered: false });
    expect((await store.list()).sessions.find((one) => one.id === id)).toMatchObject({ status: "interrupted" });
    await using session = await store.resume<Note>(id);
    expect(session.interruption).toMatchObject({ turn: 1, answered: false });
    const turn = await session.resumeTurn();
    expect(errorOf(() => turn.request())).toMatchObject({ code: "MESSAGE_UNFIT" });
  });
});

function errorOf(act: () => unknown): HoldfastError | null {
  try {
    act();
    return null;
  } catch (error) {
    return error as HoldfastError;
  }
}

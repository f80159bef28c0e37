import { type Entry, type OpenAIChatMessage, openStore } from "holdfast";
import { expect, test } from "vitest";
import { place } from "../../place.ts";

type M = OpenAIChatMessage;

test("S16: entries of another session keep their marks when they replace a conversation", async () => {
  using here = place();
  await using store = await openStore(here.path);
  const session = await store.create<M>({ dialect: "openai-chat" });
  const entry = (id: string, message: M, marks: Partial<Entry<M>>): Entry<M> => {
    return { id, seq: 7, at: "2026-11-15T00:00:00.000Z", turn: 0, step: id, message, metadata: { n: id }, ...marks };
  };
  const given = [
    entry("e1", { role: "user", content: "question" }, {}),
    entry("e2", { role: "assistant", content: "half an ans" }, { incomplete: true, synthetic: "draft" }),
    entry("e3", { role: "user", content: "again" }, { late: true }),
    entry("e4", { role: "assistant", content: "long" }, { model: "m", replacedBy: "e5" }),
    entry("e5", { role: "assistant", content: "short" }, {}),
  ];
  await session.replace(given, { reason: "import" });
  const plain = ({ seq: _, ...rest }: Entry<M>) => rest;
  expect(session.entries.map(plain)).toEqual(given.map(plain));
  const read = await store.read<M>(session.id);
  expect(read.entries.map(plain)).toEqual(given.map(plain));
});

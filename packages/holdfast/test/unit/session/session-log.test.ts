import { newId } from "holdfast";
import { openMemoryStore } from "holdfast/internal";
import { expect, test } from "vitest";
import { Conversation } from "../../../src/conversation/conversation.ts";
import type { MessageRecord, SessionRecord } from "../../../src/conversation/records/records.ts";
import { type AnthropicMessage, anthropic } from "../../../src/dialects/anthropic.ts";
import type { JournalRecord, Json } from "../../../src/journal/record.ts";
import { Log } from "../../../src/session/writing/log.ts";

test("R19: what is folded is a copy: changes that the caller makes later are not shown, and nothing of its is frozen", async () => {
  await using store = await openMemoryStore();
  const journal = await store.create(newId(), []);
  const conversation = new Conversation(() => anthropic, anthropic);
  const log = new Log(journal, conversation, {});
  const value = { list: ["as given"] };
  await log.append([{ kind: "note", name: "plan", value }]);
  value.list.push("changed later");
  expect(conversation.attributes.notes).toEqual({ plan: { list: ["as given"] } });
  await journal.close();
});

test("R19: a message that is folded without a copy of its record shows what was given, not what the caller changed later", async () => {
  await using store = await openMemoryStore();
  const journal = await store.create(newId(), []);
  const conversation = new Conversation(() => anthropic, anthropic);
  const log = new Log(journal, conversation, {});
  const message = { role: "user" as const, content: [{ type: "text", text: "as given" }] };
  const record: MessageRecord = { kind: "message", id: "m", turn: 1, step: "m", model: "one", message };
  await log.append([record]);
  record.model = "another";
  message.content.push({ type: "text", text: "changed later" });
  const { entry } = conversation.find("m")!;
  expect(entry.message).toEqual({ role: "user", content: [{ type: "text", text: "as given" }] });
  expect(entry.model).toBe("one");
  expect(Object.isFrozen(entry.message)).toBe(true);
  await journal.close();
});

test("a message is folded alike with a copy of its record and without: its members, the turn, the draft, the usage", async () => {
  const told: JournalRecord[] = [];
  await using store = await openMemoryStore();
  const journal = await store.create(newId(), []);
  const here = new Conversation(() => anthropic, anthropic);
  const log = new Log(journal, here, {});
  const copied = new Conversation(() => anthropic, anthropic);
  journal.onWritten(({ records, seq, at }) => {
    for (const [i, record] of records.entries()) {
      told.push({ ...record, seq: seq + i, at } as JournalRecord);
      copied.add(told.at(-1)!);
    }
  });
  const say = (id: string, turn: number, message: Json, more: object = {}): SessionRecord => ({
    ...{ kind: "message", id, turn, step: id, message },
    ...more,
  });
  const call = { type: "tool_use", id: "c", name: "look", input: {} };
  await log.append([{ kind: "turn.started", turn: 1, prompt: "p" }, say("p", 1, { role: "user", content: "go" })]);
  await log.append([{ kind: "draft", id: "a", turn: 1, n: 0, parts: [{ part: 0, text: "Well" }] }]);
  await log.append([say("a", 1, { role: "assistant", content: [call] }, { model: "one" })]);
  await log.append([say("a", 1, { role: "assistant", content: "an id that is known" })]);
  await log.append([
    say("r", 1, { role: "user", content: [{ type: "tool_result", tool_use_id: "c", content: "x" }] }),
    say("h", 1, { role: "user", content: "hidden" }, { metadata: { hiddenFromModel: true } }),
    say("b", 2, { role: "assistant", content: "its turn was lost" }),
  ]);
  expect(told.length).toBeGreaterThan(6);
  const seen = (of: Conversation<AnthropicMessage>): unknown => ({
    ...{ items: of.items, turn: of.turn, turns: of.turns, draft: of.draft, head: of.head, at: of.at },
    ...{ version: of.version, calls: of.exchange.calls.map(({ answer }) => answer?.entry.id) },
  });
  expect(seen(here)).toEqual(seen(copied));
  await journal.close();
});

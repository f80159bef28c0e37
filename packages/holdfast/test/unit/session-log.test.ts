import { newId } from "holdfast";
import { openMemoryStore } from "holdfast/store";
import { expect, test } from "vitest";
import { Conversation } from "../../src/conversation/conversation.ts";
import { anthropic } from "../../src/dialects/anthropic.ts";
import { Log } from "../../src/session/log.ts";

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

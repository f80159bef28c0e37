import { openMemoryStore } from "holdfast/internal";
import { openStoreWith } from "holdfast/store";
import { expect, test } from "vitest";

const call = { type: "tool_use", id: "c1", name: "read", input: {} };

async function turnWithCall() {
  const store = await openStoreWith(openMemoryStore);
  const session = await store.create({ dialect: "anthropic" });
  const turn = await session.startTurn({ role: "user", content: "read it" });
  await turn.append({ role: "assistant", content: [call] });
  return { session, turn };
}

test("run returns the tool's value, and its outcome is recorded", async () => {
  const { session, turn } = await turnWithCall();
  expect(await turn.run("c1", () => "the file")).toBe("the file");
  expect(session.messages.at(-1)).toMatchObject({ content: [{ tool_use_id: "c1", content: "the file" }] });
});

test("run throws the very error that the tool threw, and it is recorded as the outcome", async () => {
  const { session, turn } = await turnWithCall();
  const error = new Error("no such file");
  await expect(turn.run("c1", () => Promise.reject(error))).rejects.toBe(error);
  expect(session.messages.at(-1)).toMatchObject({ content: [{ tool_use_id: "c1", is_error: true }] });
});

test("run after an abort calls no tool and throws the reason", async () => {
  const { turn } = await turnWithCall();
  await turn.abort({ by: "user" });
  await expect(turn.run("c1", () => expect.unreachable())).rejects.toThrow("stopped by user");
});

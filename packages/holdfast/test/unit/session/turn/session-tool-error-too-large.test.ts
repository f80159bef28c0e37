import { validateAnthropic } from "@holdfast/testkit";
import { openStore } from "holdfast";
import { expect, test } from "vitest";
import { place } from "../../../place.ts";
import { calls, type M, user } from "../session-failures-life.ts";

test("R5: a tool whose error is too large to be recorded is recorded as failed, and the session goes on", async () => {
  using here = place();
  await using store = await openStore(here.path, { recordsToolStarts: true });
  const session = await store.create<M>({ dialect: "anthropic" });
  const turn = await session.startTurn(user("go"));
  await turn.append(calls("a"));
  await turn.tool("a", () => {
    throw new Error("x".repeat(70 * 1024 * 1024));
  });
  expect(turn.open).toEqual([]);
  const { message } = session.entries.at(-1)!;
  expect(message.content).toMatchObject([{ type: "tool_result", tool_use_id: "a", is_error: true }]);
  expect(JSON.stringify(message)).toMatch(/too large to be recorded: \d+ bytes/);
  expect(validateAnthropic(session.messages as never)).toEqual([]);
  const read = await store.read<M>(session.id);
  expect(read.entries).toEqual(session.entries);
});

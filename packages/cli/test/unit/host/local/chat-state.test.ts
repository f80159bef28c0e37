import type { ChatState } from "@holdfast/server/contract";
import { expect, test } from "vitest";
import { applyState } from "../../../../../server/src/client/chat-mirror.ts";
import { withOutput } from "../../../../src/host/local/chat-state.ts";

test("a command's output is cut between characters, here and in a client: an editor may refuse half a character", () => {
  const empty = { items: [], outputs: {} } as unknown as ChatState;
  let [state, mirror] = [empty, empty];
  for (const text of ["x", "🚀".repeat(9000), "end"]) {
    state = withOutput(state, "c1", text);
    const event = { type: "tool.output", call: "c1", text } as const;
    mirror = applyState(mirror, { state: {}, event, whole: false, version: "v.1" } as never).state;
  }
  expect(state.outputs["c1"]).toMatch(/^🚀[\s\S]*🚀end$/u);
  expect(state.outputs["c1"]!.isWellFormed()).toBe(true);
  expect(mirror.outputs).toEqual(state.outputs);
});

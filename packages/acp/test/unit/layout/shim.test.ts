import { expect, test } from "vitest";
import type { ShownChange } from "../../../src/wrap/shown-change.ts";
import { changeBy } from "../../../src/wrap/shown-change.ts";
import { shimmed } from "../../shimmed.ts";

// biome-ignore lint/suspicious/noExplicitAny: messages as they are on the wire.
type Any = any;

const linesIn = (text: string): Any[] =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
const prompt = (id: number, sessionId: string): string =>
  `${JSON.stringify({ jsonrpc: "2.0", id, method: "session/prompt", params: { sessionId, prompt: [] } })}\n`;

test.skipIf(process.platform === "win32")(
  "the supervisor dies: open calls are shown as failed and questions withdrawn, then the prompt is answered",
  async () => {
    await using shim = await shimmed();
    const show = (change: Partial<ShownChange>): void =>
      shim.control({ type: "shown", change: { session: "s", open: [], ended: [], ...change } });
    shim.input.write(prompt(1, "s") + prompt(2, "other"));
    show({ open: ["a", "b", "c"] });
    show({ ended: ["b"] });
    show({ open: ["d"], request: 7 });
    show({ request: 8 });
    show({ session: "other", open: ["e"] });
    // Its turn has ended, so the editor knows that its call has too.
    shim.control({ type: "answered", id: 2 });
    shim.input.write('{"jsonrpc":"2.0","id":8,"result":{}}\n');
    shim.say('{"half":');
    await expect.poll(shim.shown).toBe('{"half":');
    await expect.poll(shim.received).toContain('"id":8');
    shim.kill();
    await expect.poll(shim.shown).toContain("has died. What was said");
    const [half, ...rest] = shim.shown().split("\n");
    expect(half).toBe('{"half":');
    const content = [{ type: "content", content: { type: "text", text: expect.stringContaining("outcome unknown") } }];
    const failed = (toolCallId: string) => ({
      method: "session/update",
      params: { sessionId: "s", update: { sessionUpdate: "tool_call_update", toolCallId, status: "failed", content } },
    });
    expect(linesIn(rest.join("\n"))).toMatchObject([
      { method: "$/cancel_request", params: { requestId: 7 } },
      ...["a", "c", "d"].map(failed),
      { id: 1, error: { data: { interrupted: true } } },
    ]);
  },
);

test("what updates change in an editor: calls that run or have ended, and nothing else", () => {
  const call = (toolCallId: string, status?: string) => ({ sessionUpdate: "tool_call_update", toolCallId, status });
  expect(changeBy("s", [{ sessionUpdate: "agent_message_chunk" }, { sessionUpdate: "tool_call" }])).toBeNull();
  expect(
    changeBy("s", [call("a"), call("b", "pending"), call("c", "failed"), call("b", "completed"), call("c", "pending")]),
  ).toEqual({ session: "s", open: ["a", "c"], ended: ["b"] });
  // It would not fit into a frame.
  expect(changeBy("s", [call("x".repeat(2000))])).toBeNull();
});

import { readUIMessageStream, type UIMessage, type UIMessageChunk } from "ai";
import { expect, test } from "vitest";
import { uiChanges } from "../../../../src/ai-sdk/chat/ui-changes.ts";
import { plain } from "../../../page.ts";

type Part = UIMessage["parts"][number];

/** What a page shows after these chunks. */
async function shownAfter(before: readonly Part[], chunks: UIMessageChunk[]): Promise<unknown[]> {
  const message: UIMessage = { id: "m", role: "assistant", parts: structuredClone([...before]) };
  const stream = ReadableStream.from([{ type: "start", messageId: "m" } as UIMessageChunk, ...chunks]);
  let last = message;
  for await (const one of readUIMessageStream({ message, stream, terminateOnError: true })) last = one;
  return (plain([last])[0] as UIMessage).parts;
}

const step: Part = { type: "step-start" };
const says = (text: string): Part => ({ type: "text", text, state: "done" });
const thinks = (text: string): Part => ({ type: "reasoning", text, state: "done" });
const tool = (toolCallId: string, more: object): Part =>
  ({ type: "tool-send", toolCallId, input: {}, state: "input-available", ...more }) as never;
const asked = { state: "approval-requested", approval: { id: "a" } };
const approved = { state: "approval-responded", approval: { id: "a", approved: true } };
const ran = { state: "output-available", output: "Sent.", approval: { id: "a", approved: true } };

/** The lives of a message: each of its states is one that a page can have when it asks for the next. */
const LIVES: Record<string, Part[][]> = {
  text: [[], [step, says("One.")], [step, says("One."), step, says("Two.")]],
  "a tool": [
    [step, says("May I?"), tool("c", {})],
    [step, says("May I?"), tool("c", { state: "output-available", output: "Sent." })],
    [step, says("May I?"), tool("c", { state: "output-available", output: "Sent." }), step, says("Done.")],
  ],
  "an approval": [
    [step, thinks("Hm."), tool("c", asked), tool("d", {})],
    [step, thinks("Hm."), tool("c", approved), tool("d", { state: "output-error", errorText: "No." })],
    [step, thinks("Hm."), tool("c", ran), tool("d", { state: "output-error", errorText: "No." }), step, says("Done.")],
  ],
  "text that was streamed again": [
    [step, says("One."), step, says("Tw")],
    [step, says("One."), step, says("Another.")],
  ],
};

test.each(Object.entries(LIVES))("from any state of a page to any later one: %s", async (_, states) => {
  for (const [from, before] of states.entries())
    for (const after of states.slice(from)) {
      const chunks = uiChanges(before, after, "p");
      expect(await shownAfter(before, chunks), JSON.stringify(chunks)).toEqual(JSON.parse(JSON.stringify(after)));
    }
});

test("a complete input is not sent to a page that has it: the page would run its tool again", () => {
  const [before, , after] = LIVES["a tool"]!;
  expect(uiChanges(before!, after!, "p").map(({ type }) => type)).not.toContain("tool-input-available");
});

test("a step that is gone is cleared", async () => {
  const before = [step, says("One."), step, says("Tw")];
  const shown = await shownAfter(before, uiChanges(before, [step, says("One.")], "p"));
  expect(shown).toEqual([step, says("One."), step]);
});

import { stripVTControlCharacters } from "node:util";
import { expect, onTestFinished, test, vi } from "vitest";
import type { ChatEvent } from "../../../src/host/host.ts";
import { printerFor } from "../../../src/run/print.ts";
import { lineText } from "../../../src/screen/lines/line.ts";
import { markdownLines } from "../../../src/screen/lines/markdown.ts";

/** What the printer writes to a terminal of 40 columns, without its colours. */
async function printed(events: readonly ChatEvent[]): Promise<{ readonly out: string; readonly err: string }> {
  const said = { out: "", err: "" };
  for (const [stream, name] of [
    [process.stdout, "out"],
    [process.stderr, "err"],
  ] as const) {
    const { isTTY, columns } = stream;
    Object.assign(stream, { isTTY: true, columns: 40 });
    const write = vi.spyOn(stream, "write").mockImplementation((text) => {
      said[name] += String(text);
      return true;
    });
    onTestFinished(() => {
      write.mockRestore();
      Object.assign(stream, { isTTY, columns });
    });
  }
  vi.stubEnv("TERM", "xterm");
  onTestFinished(() => void vi.unstubAllEnvs());
  const printer = await printerFor({});
  for (const event of events) printer.event(event);
  printer.end("0199aaaa-0001-7aaa-8000-0123456789ab");
  // None of the model's own escapes gets through.
  expect(said.out).not.toContain("\x1b[2J");
  return { out: stripVTControlCharacters(said.out), err: stripVTControlCharacters(said.err) };
}

const ANSWER = [
  "# A heading",
  "A paragraph with **bold** words that is longer than a row of this terminal, and goes on.",
  "- one\n- two\n- three",
  "```ts\nconst a = 1;\nconst b = 2;\n```",
  "| a | b |\n|---|---|\n| 1 | 2 |",
  "The end, with half a pair: \ud83d and an escape: \x1b[2J.",
].join("\n\n");

test.each([1, 7, 1000])("an answer in pieces of %i characters is laid out like the whole", async (size) => {
  const events: ChatEvent[] = [];
  for (let at = 0; at < ANSWER.length; at += size)
    events.push({ type: "text", text: ANSWER.slice(at, at + size) } as ChatEvent);
  const { out } = await printed(events);
  const whole = markdownLines(ANSWER, 40).map(lineText);
  expect(out.split("\n").slice(0, -1)).toEqual(whole);
});

test("what is said in between comes after what the model has said so far", async () => {
  const { out, err } = await printed([
    { type: "text", text: "First **words**" } as ChatEvent,
    { type: "tool.started", call: "c1", name: "edit", input: { path: "a", old: "x", new: "y" } } as ChatEvent,
    { type: "tool.ended", call: "c1", name: "edit", failed: false, output: "done" } as ChatEvent,
    { type: "text", text: "Last words" } as ChatEvent,
  ]);
  expect(out).toBe("First words\nLast words\n");
  expect(err).toBe("· edit a\n  - x\n  + y\nsession 456789ab\n");
});

test("a failed edit shows no change, and errors wrap between words", async () => {
  const { err } = await printed([
    { type: "tool.started", call: "c1", name: "edit", input: { path: "a", old: "x", new: "y" } } as ChatEvent,
    {
      type: "tool.ended",
      call: "c1",
      name: "edit",
      failed: true,
      output: "The old text is not in the file a at all.",
    } as ChatEvent,
  ]);
  expect(err.split("\n").slice(0, 3)).toEqual([
    "· edit a",
    "edit failed: The old text is not in the",
    "file a at all.",
  ]);
});

test("one endless line costs each piece as much as the first", async () => {
  const slice = vi.spyOn(String.prototype, "slice");
  const piece: ChatEvent = { type: "text", text: "word ".repeat(20) } as ChatEvent;
  const { out } = await printed(Array.from({ length: 400 }, () => piece));
  const longest = Math.max(...slice.mock.contexts.map((text) => String(text).length));
  slice.mockRestore();
  expect(out.match(/word/g)).toHaveLength(8_000);
  expect(longest).toBeLessThan(20_000);
});

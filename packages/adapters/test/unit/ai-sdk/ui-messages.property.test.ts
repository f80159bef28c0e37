import { type ModelMessage, readUIMessageStream, type UIMessage, type UIMessageChunk } from "ai";
import fc from "fast-check";
import type { Reading } from "holdfast";
import { expect, test } from "vitest";
import { interruptionOf } from "../../../../holdfast/src/view/interruption.ts";
import { seedOf } from "../../../../holdfast/test/seed.ts";
import { anyRecords } from "../../../../holdfast/test/unit/conversation/fold-arbitraries.ts";
import { Book } from "../../../../holdfast/test/unit/conversation/fold-book.ts";
import { voices } from "../../../../holdfast/test/unit/dialects/dialect-voices.ts";
import { uiChunks, uiMessages } from "../../../src/ai-sdk/index.ts";

const seed = seedOf(import.meta.url, "unit");
const voice = voices.find(({ dialect }) => dialect.name === "ai-sdk")!;

const STATES = [
  "input-available",
  "approval-requested",
  "approval-responded",
  "output-available",
  "output-error",
  "output-denied",
];

/** What a browser makes of the chunks. */
async function replayed(message: UIMessage): Promise<UIMessage | undefined> {
  let last: UIMessage | undefined;
  const stream = ReadableStream.from(JSON.parse(JSON.stringify(uiChunks(message))) as UIMessageChunk[]);
  const onError = (error: unknown): never => {
    throw error;
  };
  for await (const now of readUIMessageStream({ stream, onError, terminateOnError: true })) last = now;
  return last;
}

/** Without members that are undefined, which do not cross the wire, and with every text at its end. */
function done({ id, role, parts }: UIMessage): unknown {
  const shown = parts.map((part) => {
    if (part.type === "text") return { ...part, state: "done" };
    if (part.type !== "reasoning") return part;
    const { id: _id, ...reasoning } = part;
    return reasoning;
  });
  return JSON.parse(JSON.stringify({ id, role, parts: shown }));
}

test("whatever the journal holds, a page gets messages that it can show, each with an id of its own, and can be sent again", async () => {
  await fc.assert(
    fc.asyncProperty(anyRecords(voice), async (records) => {
      const book = new Book(voice.dialect);
      for (const record of records) book.write(record);
      const { conversation } = book;
      const reading = {
        id: "session",
        entries: conversation.items.map(({ entry }) => entry),
        interruption: interruptionOf(conversation),
      } as unknown as Reading<ModelMessage>;
      const messages = uiMessages(reading);
      expect(new Set(messages.map(({ id }) => id)).size).toBe(messages.length);
      for (const message of messages) {
        expect(["user", "assistant"]).toContain(message.role);
        for (const part of message.parts) {
          expect(typeof part.type).toBe("string");
          if ("toolCallId" in part) expect(STATES).toContain(part.state);
        }
      }
      const answer = messages.findLast(({ role }) => role === "assistant");
      if (!answer) return;
      const shown = await replayed(answer);
      const calls = answer.parts.flatMap((part) => ("toolCallId" in part ? [part.toolCallId] : []));
      // The SDK tells calls apart by their ids; the adapter sees to it that they differ within a response.
      if (new Set(calls).size === calls.length) expect(done(shown!)).toEqual(done(answer));
    }),
    { seed, numRuns: 300 * Number(process.env["HOLDFAST_EFFORT"] ?? 1) },
  );
});

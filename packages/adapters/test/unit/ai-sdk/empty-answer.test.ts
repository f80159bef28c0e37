import type { LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { jsonSchema, tool } from "ai";
import { expect, test } from "vitest";
import { durable } from "../../../src/ai-sdk/index.ts";
import { begun, recordsOf, streamingWays } from "../../agents.ts";
import { finished, scripted } from "../../scripted-model.ts";

test.each(streamingWays)(
  "C36: %s: of an answer that comes to nothing, what was streamed is discarded",
  async (_, start) => {
    await using here = await begun();
    const { session } = here;
    const agent = durable(session);
    const free = tool({ inputSchema: jsonSchema({ type: "object" }), execute: () => "done" });
    // A call that is begun and never made.
    const parts: LanguageModelV4StreamPart[] = [
      { type: "stream-start", warnings: [] },
      { type: "tool-input-start", id: "a", toolName: "free" },
      { type: "tool-input-delta", id: "a", delta: '{"a"' },
    ];
    const stream = new ReadableStream<LanguageModelV4StreamPart>({
      async pull(controller) {
        const part = parts.shift();
        if (part) return controller.enqueue(part);
        await session.flush();
        controller.enqueue(finished("stop"));
        controller.close();
      },
    });
    await agent.finish(start(agent, { model: scripted({ stream }), tools: { free } }).run);
    const drafts = (await recordsOf(session)).filter(({ kind }) => kind === "draft");
    expect(drafts.map(({ discarded }) => discarded)).toEqual([undefined, "it was empty"]);
    expect(session.usage).toMatchObject({ inputTokens: 7, outputTokens: 5 });
  },
);

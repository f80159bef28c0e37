import { jsonSchema, tool } from "ai";
import { expect, test } from "vitest";
import { durable } from "../../../src/ai-sdk/index.ts";
import { begun, everyWay, recordsOf } from "../../agents.ts";
import { call, scripted, text } from "../../scripted-model.ts";

/** Half of 😀, as a tool leaves it that cuts its output. */
const HALF = "\ud83d";

test.each(everyWay)("%s: half a character in the output of a tool is not sent, and is recorded", async (_, run) => {
  await using at = await begun();
  const anything = jsonSchema<{ text: string }>({ type: "object" });
  const tools = {
    cut: tool({ inputSchema: anything, execute: async () => `cut ${HALF}` }),
    nested: tool({ inputSchema: anything, execute: async () => ({ [`key ${HALF}`]: [`deep ${HALF}\0`] }) }),
  };
  const model = scripted([call("a", "cut", { text: "x" }), call("b", "nested", { text: HALF })], [text("Done.")]);
  const { run: started, added } = run(durable(at.session), { model, tools });
  await added();
  await started;
  const sent = JSON.stringify(model.prompts[1]);
  expect(sent).toContain("cut \ufffd");
  expect(sent).toContain('"key \ufffd":["deep \ufffd\ufffd"]');
  expect(sent).toContain('"input":{"text":"\ufffd"}');
  expect(sent).not.toMatch(/\\ud83d|\\u0000/);
  const recorded = JSON.stringify(await recordsOf(at.session));
  expect(recorded).toContain("cut \\ud83d");
  expect(recorded).toContain('"key \\ud83d":["deep \\ud83d\\u0000"]');
});

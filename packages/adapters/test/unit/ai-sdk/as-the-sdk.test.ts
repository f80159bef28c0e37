import { validateAiSdk } from "@holdfast/testkit";
import type { ModelMessage } from "ai";
import { describe, expect, test } from "vitest";
import { durable } from "../../../src/ai-sdk/index.ts";
import { begun, everyWay, outline, PROMPT, recordsOf } from "../../agents.ts";
import { add, fails, say, scenarios } from "../../scenarios.ts";
import { promptOf, scripted } from "../../scripted-model.ts";

/**
 * What is recorded is what the SDK itself would send next: for each thing that a response can hold, in all ways to run.
 */

describe.each(everyWay)("%s", (name, start) => {
  test.each(Object.entries(scenarios))(
    "%s",
    async (_, { steps, tools = () => ({ add, say, fails }), settings, ran }) => {
      const extra = (): Record<string, unknown> => ({ ...settings?.(), tools: tools() });
      const alone = scripted(...steps());
      const undisturbed = start(null, { model: alone, ...extra() }, [PROMPT]);
      const added = await undisturbed.added();

      await using place = await begun();
      const { session } = place;
      const model = scripted(...steps());
      const agent = durable(session);
      const { run } = start(agent, { model, ...extra() });
      expect(await agent.finish(run)).toEqual({ kind: "completed" });

      expect(model.prompts, "the recorder changes nothing that the model is sent").toEqual(alone.prompts);
      const next: ModelMessage = { role: "user", content: "And now?" };
      const sent = await promptOf([...session.messages, next]);
      expect(wire(sent), name).toEqual(wire(await promptOf([PROMPT, ...added, next])));
      expect(validateAiSdk([...session.messages, next])).toEqual([]);
      const lines = outline(await recordsOf(session));
      for (const id of ran ?? []) {
        expect(lines.indexOf(`tool.started ${id}`)).toBeGreaterThan(lines.indexOf("message assistant"));
      }
      expect(lines.filter((line) => line.startsWith("tool.started")).sort()).toEqual(
        (ran ?? []).map((id) => `tool.started ${id}`),
      );
      expect(lines.filter((line) => line.startsWith("tool.ended")).length).toBe((ran ?? []).length);
      expect(lines.at(-1)).toBe("turn.ended");
    },
  );
});

/** What a provider's package makes of it. */
function wire(prompt: unknown): unknown {
  return JSON.parse(JSON.stringify(prompt));
}

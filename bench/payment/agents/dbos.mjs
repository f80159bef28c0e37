// DBOS with `@dbos-inc/vercel-ai`, as its README shows: the model is wrapped, and the tool's work is a step.
import { DBOS } from "@dbos-inc/dbos-sdk";
import { durableCalls } from "@dbos-inc/vercel-ai";
import { generateText, isStepCount, tool, wrapLanguageModel } from "ai";
import { z } from "zod";
import { model } from "./ai-sdk-model.mjs";
import { charge, ended, PROMPT } from "./world.mjs";

const [, variant] = process.argv.slice(2);

const agent = DBOS.registerWorkflow(
  async (prompt) => {
    const { text } = await generateText({
      model: wrapLanguageModel({ model, middleware: durableCalls() }),
      maxRetries: 0,
      prompt,
      tools: {
        charge: tool({
          description: "Pays",
          inputSchema: z.object({ amount: z.number(), to: z.string() }),
          execute: (input) =>
            DBOS.runStep(() => charge(input, variant === "key" ? `${DBOS.workflowID}-${DBOS.stepID}` : null), {
              name: "charge",
            }),
        }),
      },
      stopWhen: isStepCount(5),
    });
    return text;
  },
  { name: "agent" },
);

DBOS.setConfig({
  name: "payment",
  systemDatabaseUrl: process.env.DATABASE_URL,
  applicationVersion: "1",
  logLevel: "error",
});
// Recovers the workflows of this executor that were running.
await DBOS.launch();
const handle = await DBOS.startWorkflow(agent, { workflowID: "payment-7" })(PROMPT);
await handle.getResult().then(
  (text) => ended({ text }),
  (error) => ended({ error: String(error) }),
);
await DBOS.shutdown();

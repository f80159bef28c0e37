// Restate with `@restatedev/vercel-ai-middleware`: the model is wrapped, and the tool's work is in `ctx.run`.
import * as restate from "@restatedev/restate-sdk";
import { durableCalls } from "@restatedev/vercel-ai-middleware";
import { generateText, isStepCount, tool, wrapLanguageModel } from "ai";
import { z } from "zod";
import { model } from "./ai-sdk-model.mjs";
import { charge, ended, PROMPT } from "./world.mjs";

async function run(ctx, variant) {
  const { text } = await generateText({
    model: wrapLanguageModel({ model, middleware: durableCalls(ctx) }),
    maxRetries: 0,
    prompt: PROMPT,
    tools: {
      charge: tool({
        description: "Pays",
        inputSchema: z.object({ amount: z.number(), to: z.string() }),
        execute: (input) => {
          // The same on every replay of this invocation.
          const key = variant === "key" ? ctx.rand.uuidv4() : null;
          return ctx.run("charge", () => charge(input, key));
        },
      }),
    },
    stopWhen: isStepCount(5),
  });
  await ctx.run("ended", () => ended({ text }));
  return text;
}

await restate.serve({
  services: [restate.service({ name: "agent", handlers: { run } })],
  port: Number(process.env.AGENT_PORT),
});

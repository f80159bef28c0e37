// Durable Objects of the Cloudflare Agents SDK: its Think harness, and a loop of one's own in a Task.
import { DurableObject } from "cloudflare:workers";
import { ThinkHarness } from "agents/harness/think";
import { Lifecycle } from "agents/lifecycle";
import { Tasks } from "agents/tasks";
import { tool } from "ai";
import { z } from "zod";
import { model } from "./ai-sdk-model.mjs";
import { ask, askModel, charge, ended, PROMPT, reachAt } from "./world.mjs";

export class Think extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    reachAt(env.PAYMENT_URL);
    const withKey = env.VARIANT === "think-rerun-key";
    this.harness = new ThinkHarness({
      model,
      tools: {
        charge: {
          ...tool({
            description: "Pays",
            inputSchema: z.object({ amount: z.number(), to: z.string() }),
            execute: (input, { toolCallId }) => charge(input, withKey ? toolCallId : null),
          }),
          ...(env.VARIANT === "think" ? {} : { recovery: "rerun" }),
        },
      },
      hooks: { onTurnEnd: () => ended({ text: "settled" }) },
    });
    this.lifecycle = Lifecycle.install(this).use(this.harness);
  }

  async begin() {
    await this.harness.session().submit(PROMPT, { operationId: "payment-7" });
  }

  async wake() {
    return this.harness.session().inspect("payment-7");
  }
}

export class Task extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    reachAt(env.PAYMENT_URL);
    this.tasks = new Tasks({ definitions: { "agent@v1": (_input, step) => agent(step, env.VARIANT) } });
    this.lifecycle = Lifecycle.install(this).use(this.tasks);
  }

  async begin() {
    await this.tasks.run("agent@v1", {}, { runId: "payment-7" });
  }

  async wake() {
    return this.tasks.get("payment-7");
  }
}

async function agent(step, variant) {
  const messages = [{ role: "user", content: PROMPT }];
  for (let i = 0; ; i++) {
    const { call, text } = await step.do(`answer ${i}`, () => askModel(messages));
    if (!call) {
      await step.do("ended", () => ended({ text }));
      return text;
    }
    const name = `call ${i}`;
    const wasInterrupted = step.interrupted?.name === name;
    const result = await step.do(name, async ({ idempotencyKey }) => {
      if (variant === "task") return charge(call.input, null);
      const known = variant === "task-interrupted" && wasInterrupted ? await ask(idempotencyKey) : null;
      return known ?? charge(call.input, idempotencyKey);
    });
    messages.push({ role: "assistant", call }, { role: "tool", id: call.id, result });
  }
}

export default {
  async fetch(request, env) {
    const objects = env.VARIANT.startsWith("think") ? env.THINK : env.TASK;
    const object = objects.get(objects.idFromName("payment"));
    const state = new URL(request.url).pathname === "/begin" ? await object.begin() : await object.wake();
    return Response.json(state ?? {});
  },
};

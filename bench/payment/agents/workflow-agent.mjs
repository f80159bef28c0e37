// `WorkflowAgent` of the AI SDK: it makes each request to the model a step, and the tool is one.
import { WorkflowAgent } from "@ai-sdk/workflow";
import { WORKFLOW_DESERIALIZE, WORKFLOW_SERIALIZE } from "@workflow/serde";
import { getStepMetadata } from "workflow";
import { z } from "zod";
import { model } from "./ai-sdk-model.mjs";
import { charge, ended, PROMPT } from "./world.mjs";

/** Models cross from the workflow into its steps. */
class Scripted {
  constructor() {
    Object.assign(this, model);
  }

  static [WORKFLOW_SERIALIZE]() {
    return {};
  }

  static [WORKFLOW_DESERIALIZE]() {
    return new Scripted();
  }
}

async function pay(input) {
  "use step";
  return charge(input, null);
}

async function payWithKey(input) {
  "use step";
  return charge(input, getStepMetadata().stepId);
}

async function end() {
  "use step";
  await ended({ text: "done" });
}

export async function agent(variant) {
  "use workflow";
  const execute = variant === "agent-key" ? payWithKey : pay;
  const inputSchema = z.object({ amount: z.number(), to: z.string() });
  const worker = new WorkflowAgent({
    model: new Scripted(),
    tools: { charge: { description: "Pays", inputSchema, execute } },
  });
  await worker.stream({ messages: [{ role: "user", content: PROMPT }] });
  await end();
}

// The Workflow SDK: a loop in which every request to the model and every tool call is a step.
import { getStepMetadata } from "workflow";
import { askModel, charge, ended, PROMPT } from "./world.mjs";

async function answer(messages) {
  "use step";
  return askModel(messages);
}

async function pay(input, variant) {
  "use step";
  return charge(input, variant === "key" ? getStepMetadata().stepId : null);
}

async function end(text) {
  "use step";
  await ended({ text });
}

export async function agent(variant) {
  "use workflow";
  const messages = [{ role: "user", content: PROMPT }];
  for (;;) {
    const { call, text } = await answer(messages);
    if (!call) {
      await end(text);
      return text;
    }
    messages.push({ role: "assistant", call });
    messages.push({ role: "tool", id: call.id, result: await pay(call.input, variant) });
  }
}

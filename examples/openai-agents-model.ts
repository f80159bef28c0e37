import { setTimeout as sleep } from "node:timers/promises";
import type { AgentInputItem, AgentOutputItem, Model, ModelRequest, ModelResponse, StreamEvent } from "@openai/agents";
import { Usage } from "@openai/agents";

const PLAN = ["read_notes", "send_mail", "post_summary"];
const USAGE = { requests: 1, inputTokens: 10, outputTokens: 42, totalTokens: 52 };

/**
 * A stand-in for a model of OpenAI, so that the example needs no key and no network. It reads what it is told of calls
 * that were cut off, as a real model would.
 */
export const planner: Model = {
  getResponse: async (request): Promise<ModelResponse> => ({ usage: new Usage(USAGE), output: plan(request) }),
  async *getStreamedResponse(request): AsyncGenerator<StreamEvent> {
    const output = plan(request);
    yield { type: "response_started" };
    for (const item of output) {
      if (item.type !== "message" || item.role !== "assistant") continue;
      for (const part of item.content) {
        if (part.type !== "output_text") continue;
        for (const delta of part.text.split(/(?<= )/)) {
          await sleep(30, undefined, request.signal && { signal: request.signal });
          yield { type: "output_text_delta", delta };
        }
      }
    }
    yield { type: "response_done", response: { id: "response", usage: USAGE, output } } as StreamEvent;
  },
};

function plan({ input, handoffs }: ModelRequest): AgentOutputItem[] {
  const items = input as AgentInputItem[];
  // The first agent hands the task on.
  const [handoff] = handoffs;
  if (handoff) return [say("This is for the office."), call("call_office", handoff.toolName)];
  const results = items.flatMap((item) =>
    item.type === "function_call_result" && PLAN.includes(item.name) ? [item] : [],
  );
  if (results.length === 0)
    return [
      say("I will read the notes, send the mail and post the summary."),
      ...PLAN.map((name) => call(`call_${name}`, name)),
    ];
  const unknown = results
    .filter(({ output }) => JSON.stringify(output).includes("heck before"))
    .map(({ name }) => name);
  const doubt =
    unknown.length > 0 ? `, but I do not know whether ${unknown.join(" and ")} took effect: please check` : "";
  return [say(`That is all done${doubt}.`)];
}

function say(text: string): AgentOutputItem {
  return { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text }] };
}

function call(callId: string, name: string): AgentOutputItem {
  return { type: "function_call", callId, name, arguments: "{}", status: "completed" };
}

import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { ChatResult } from "@langchain/core/outputs";

const PLAN = ["read_notes", "send_mail", "post_summary"];

/**
 * A stand-in for a chat model of LangChain, so that the examples need no key and no network. It takes one step of its
 * plan after the other, and reads what it is told of calls that were cut off, as a real model would.
 */
export class Planner extends BaseChatModel {
  constructor() {
    super({});
  }

  override _llmType(): string {
    return "planner";
  }

  override bindTools(): this {
    return this;
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    const message = plan(messages);
    return { generations: [{ text: message.text, message }] };
  }
}

function plan(messages: readonly BaseMessage[]): AIMessage {
  const results = messages.filter((message): message is ToolMessage => ToolMessage.isInstance(message));
  const next = PLAN[results.length];
  if (next) {
    const call = { type: "tool_call" as const, id: `call_${next}`, name: next, args: {} };
    return new AIMessage({ content: `I call ${next}.`, tool_calls: [call] });
  }
  const unknown = results.filter(({ text }) => text.includes("heck before")).map(({ tool_call_id }) => tool_call_id);
  const doubt = unknown.map((id) => `, but I do not know whether ${id.replace("call_", "")} took effect: please check`);
  return new AIMessage(`That is all done${doubt.join("")}.`);
}

import type { CallbackManagerForLLMRun } from "@langchain/core/callbacks/manager";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { type AIMessage, AIMessageChunk, type BaseMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";

/** A chat model whose answer is a function of the messages. It streams word by word. */
export class ScriptedChatModel extends BaseChatModel {
  readonly #answer: (messages: BaseMessage[]) => AIMessage;
  /** What it was asked with. */
  readonly asked: BaseMessage[][] = [];
  /** Awaited after each word. */
  onToken: (() => Promise<void>) | undefined;

  constructor(answer: (messages: BaseMessage[]) => AIMessage) {
    super({});
    this.#answer = answer;
  }

  override _llmType(): string {
    return "scripted";
  }

  override bindTools(): this {
    return this;
  }

  override async _generate(messages: BaseMessage[]): Promise<ChatResult> {
    this.asked.push(messages);
    const message = this.#answer(messages);
    return { generations: [{ text: message.text, message }] };
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    _options: this["ParsedCallOptions"],
    run?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    this.asked.push(messages);
    const { text, id, tool_calls = [] } = this.#answer(messages);
    for (const word of text.split(/(?<= )/)) {
      const message = new AIMessageChunk({ content: word, ...(id ? { id } : {}) });
      yield new ChatGenerationChunk({ text: word, message });
      await run?.handleLLMNewToken(word, undefined, undefined, undefined, undefined, {
        chunk: new ChatGenerationChunk({ text: word, message }),
      });
      await this.onToken?.();
    }
    const chunks = tool_calls.map(({ id = "", name, args }, index) => {
      return { type: "tool_call_chunk" as const, id, name, args: JSON.stringify(args), index };
    });
    if (chunks.length > 0)
      yield new ChatGenerationChunk({
        text: "",
        message: new AIMessageChunk({ content: "", tool_call_chunks: chunks }),
      });
  }
}

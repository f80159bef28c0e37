import {
  AbstractChat,
  type ChatInit,
  type ChatState,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type UIMessage,
} from "ai";

type Fetch = typeof globalThis.fetch;

/** What `useChat` has, without React. */
export class Page extends AbstractChat<UIMessage> {
  constructor(id: string, messages: UIMessage[], init: Partial<ChatInit<UIMessage>>) {
    const state: ChatState<UIMessage> = {
      status: "ready",
      error: undefined,
      messages,
      pushMessage: (message) => {
        state.messages = [...state.messages, message];
      },
      popMessage: () => {
        state.messages = state.messages.slice(0, -1);
      },
      replaceMessage: (at, message) => {
        state.messages = state.messages.with(at, structuredClone(message));
      },
      snapshot: (thing) => structuredClone(thing),
    };
    super({
      id,
      state,
      sendAutomaticallyWhen: (options) =>
        lastAssistantMessageIsCompleteWithApprovalResponses(options) ||
        lastAssistantMessageIsCompleteWithToolCalls(options),
      ...init,
    });
  }

  get shown(): unknown[] {
    return plain(this.messages);
  }

  get text(): string {
    return this.messages.length === 0 ? "" : textOf(this.messages.at(-1)!);
  }
}

/** The SDK's own transport, with its own addresses, in front of a handler or of a server. */
export function transportOf(to: string | ((request: Request) => Promise<Response>)): DefaultChatTransport<UIMessage> {
  if (typeof to === "string") return new DefaultChatTransport({ api: `${to}/api/chat` });
  const fetch: Fetch = (input, init) => to(new Request(input, init));
  return new DefaultChatTransport({ api: "http://localhost/api/chat", fetch });
}

/** As JSON carries it, without what only the stream or only the journal knows. */
export function plain(messages: readonly UIMessage[]): unknown[] {
  return (JSON.parse(JSON.stringify(messages)) as UIMessage[]).map(({ metadata: _, ...message }) => ({
    ...message,
    parts: message.parts.map((part) => {
      if (part.type !== "reasoning") return part;
      const { id: _id, ...reasoning } = part;
      return reasoning;
    }),
  }));
}

export const textOf = ({ parts }: UIMessage): string =>
  parts.map((part) => (part.type === "text" ? part.text : "")).join("");

// The page holds nothing that matters: what it shows comes from the server, and it sends only its newest message.
import { useChat } from "@ai-sdk/react";
import type { ChatState } from "@holdfast/adapters/ai-sdk";
import {
  DefaultChatTransport,
  getToolName,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  type UIMessage,
} from "ai";
import { type ReactNode, useCallback, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";

const transport = new DefaultChatTransport<UIMessage>({
  prepareSendMessagesRequest: ({ id, messages }) => ({ body: { id, message: messages.at(-1) } }),
});

/** The server may be restarting: ask until it answers. */
async function load(id: string): Promise<ChatState> {
  for (;;) {
    const response = await fetch(`/api/chat/${id}`).catch(() => null);
    if (response?.ok) return (await response.json()) as ChatState;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

function App({ id }: { readonly id: string }): ReactNode {
  const [loaded, setLoaded] = useState<{ readonly state: ChatState; readonly times: number } | null>(null);
  const reload = useCallback(async () => {
    const state = await load(id);
    setLoaded((before) => ({ state, times: (before?.times ?? 0) + 1 }));
  }, [id]);
  useEffect(() => void reload(), [reload]);
  if (!loaded) return <p>Connecting …</p>;
  return <Chat key={loaded.times} id={id} state={loaded.state} reload={reload} />;
}

function Chat({
  id,
  state,
  reload,
}: {
  readonly id: string;
  readonly state: ChatState;
  reload(): Promise<void>;
}): ReactNode {
  const [input, setInput] = useState("");
  const { messages, status, error, sendMessage, addToolApprovalResponse, addToolOutput } = useChat({
    id,
    transport,
    messages: state.messages,
    resume: state.status === "running",
    // The connection broke: the server is restarting, or this device was asleep.
    onError: (error) => {
      if (error instanceof TypeError) void reload();
    },
    sendAutomaticallyWhen: (options) =>
      lastAssistantMessageIsCompleteWithApprovalResponses(options) ||
      lastAssistantMessageIsCompleteWithToolCalls(options),
  });
  const isBusy = status === "submitted" || status === "streaming";
  const goOn = async (): Promise<void> => {
    const headers = { "content-type": "application/json" };
    await fetch(`/api/chat/${id}`, { method: "POST", headers, body: JSON.stringify({ trigger: "continue" }) });
    await reload();
  };
  return (
    <main>
      {messages.map((message) => (
        <article key={message.id} id={message.id} className={message.role}>
          {message.parts.map((part, at) => {
            const key = `${message.id}.${at}`;
            if (part.type === "text") return <p key={key}>{part.text}</p>;
            if (!isToolUIPart(part)) return null;
            const { toolCallId, state: how, approval } = part;
            const answer = (approved: boolean) => () => void addToolApprovalResponse({ id: approval!.id, approved });
            const tellTime = (): void =>
              void addToolOutput({ tool: getToolName(part), toolCallId, output: new Date().toString() } as never);
            return (
              <div key={key} className="tool">
                {getToolName(part)}: {how}
                {how === "output-available" && ` ${JSON.stringify(part.output)}`}
                {how === "approval-requested" && (
                  <>
                    {" "}
                    <button type="button" onClick={answer(true)}>
                      Approve
                    </button>{" "}
                    <button type="button" onClick={answer(false)}>
                      Deny
                    </button>
                  </>
                )}
                {how === "input-available" && getToolName(part) === "local_time" && (
                  <>
                    {" "}
                    <button type="button" onClick={tellTime}>
                      Tell the time
                    </button>
                  </>
                )}
              </div>
            );
          })}
        </article>
      ))}
      {state.interrupted && status === "ready" && (
        <div className="banner" role="alert">
          The answer broke off.
          {state.interrupted.tools.map(({ toolCallId, toolName, state: how }) => (
            <p key={toolCallId}>
              {toolName}: {how === "outcome-unknown" ? "was running, and may have taken effect" : "did not run"}
            </p>
          ))}{" "}
          {state.status === "interrupted" && (
            <button type="button" onClick={() => void goOn()}>
              Go on
            </button>
          )}
        </div>
      )}
      {error && (
        <div className="banner" role="alert">
          {error.message}{" "}
          <button type="button" onClick={() => void reload()}>
            Reconnect
          </button>
        </div>
      )}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (input !== "") void sendMessage({ text: input });
          setInput("");
        }}
      >
        <input aria-label="Message" value={input} onChange={(event) => setInput(event.target.value)} />
        {isBusy ? (
          <button type="button" onClick={() => void fetch(`/api/chat/${id}`, { method: "DELETE" })}>
            Stop
          </button>
        ) : (
          <button type="submit">Send</button>
        )}
      </form>
    </main>
  );
}

// The chat's id is in the address, so that a reload, another tab or another device finds it.
location.hash ||= crypto.randomUUID();
createRoot(document.getElementById("root")!).render(<App id={location.hash.slice(1)} />);

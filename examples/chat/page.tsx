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
import { type ReactNode, useCallback, useEffect, useRef, useState } from "react";
import { createRoot } from "react-dom/client";

/**
 * The server may be restarting: ask until it answers. Any request can be sent again, because the server records it
 * once: so what a user typed or decided meanwhile is not lost.
 */
async function reach(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  for (;;) {
    try {
      return await fetch(input, init);
    } catch (error) {
      if (init?.signal?.aborted) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}

const transport = new DefaultChatTransport<UIMessage>({
  prepareSendMessagesRequest: ({ id, messages, trigger }) => ({ body: { id, trigger, message: messages.at(-1) } }),
  fetch: async (input, init) => {
    const response = await reach(input, init);
    // There was an answer to follow when the page was told so. What became of it is in the state.
    if (response.status === 204) throw new TypeError("The answer is over.");
    return response;
  },
});

async function load(id: string): Promise<ChatState> {
  for (;;) {
    const response = await reach(`/api/chat/${id}`);
    // Null if the server was killed in the middle of it.
    const state = response.ok ? await response.json().catch(() => null) : null;
    if (state) return state as ChatState;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

function App({ id }: { readonly id: string }): ReactNode {
  const [state, setState] = useState<ChatState | null>(null);
  const asked = useRef(0);
  const shown = useRef(0);
  const reload = useCallback(async () => {
    const mine = ++asked.current;
    const loaded = await load(id);
    // A request that was sent earlier may be answered later, with what was true before.
    if (mine < shown.current) return;
    shown.current = mine;
    setState(loaded);
  }, [id]);
  useEffect(() => void reload(), [reload]);
  return state ? <Chat id={id} state={state} reload={reload} /> : <p>Connecting …</p>;
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
  const [refusal, setRefusal] = useState("");
  const chat = useChat({
    id,
    transport,
    messages: state.messages,
    // However a stream ends, the journal says what is true now. A stream that could not be taken up never finishes.
    onFinish: () => void reload(),
    onError: () => void reload(),
    sendAutomaticallyWhen: (options) =>
      lastAssistantMessageIsCompleteWithApprovalResponses(options) ||
      lastAssistantMessageIsCompleteWithToolCalls(options),
  });
  const { messages, status, error, sendMessage, addToolApprovalResponse, addToolOutput, clearError } = chat;
  const isBusy = status === "submitted" || status === "streaming";
  // Only when the state was loaded again: a request that is under way loads it again when it ends.
  const shown = useRef<ChatState>(null);
  useEffect(() => {
    if (shown.current === state) return;
    shown.current = state;
    if (isBusy) return;
    chat.setMessages(state.messages);
    // The connection broke: the server restarted, or this device was asleep. Other errors are the user's to read.
    const isBroken = error instanceof TypeError;
    if (isBroken) clearError();
    if (state.status === "running" && (!error || isBroken)) void chat.resumeStream();
  });
  /** What the server refuses is shown. */
  const ask = async (init: RequestInit): Promise<void> => {
    const response = await reach(`/api/chat/${id}`, init);
    setRefusal(response.ok ? "" : await response.text());
    await reload();
  };
  const goOn = (): Promise<void> => {
    const headers = { "content-type": "application/json" };
    return ask({ method: "POST", headers, body: JSON.stringify({ trigger: "continue" }) });
  };
  const problem = error?.message ?? refusal;
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
      {state.interrupted && !isBusy && (
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
      {problem && !isBusy && (
        <div className="banner" role="alert">
          {problem}{" "}
          <button
            type="button"
            onClick={() => {
              clearError();
              setRefusal("");
              void reload();
            }}
          >
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
          <button type="button" onClick={() => void ask({ method: "DELETE" })}>
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

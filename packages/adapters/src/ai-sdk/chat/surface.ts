import type { IncomingMessage, ServerResponse } from "node:http";
import type { ModelMessage, streamText, ToolSet, UIMessage } from "ai";
import type { CallState, CloseOptions, Session } from "holdfast";
import type { DurableOptions } from "../surface.ts";

/** The settings of `streamText`; messages and signal come from the session. `stopWhen` is 20 steps by default. */
export type ChatSettings = Omit<
  Parameters<typeof streamText>[0],
  "prompt" | "messages" | "abortSignal" | "tools" | "onError"
> & { readonly tools?: ToolSet };

export interface DurableChatOptions extends DurableOptions {
  /**
   * Where the handlers are mounted. Default: "/api/chat", like `DefaultChatTransport`. A base path before it, of the
   * framework or of a proxy, needs no setting.
   */
  readonly path?: string;
  /**
   * Whether this request may use this chat. A chat id comes from the browser and is no secret: anyone who knows it can
   * read and continue the chat unless you refuse it here. A refused request gets 404, whether there is such a chat or
   * not.
   */
  readonly authorize?: (chat: { readonly id: string; readonly request: Request }) => boolean | Promise<boolean>;
  /**
   * Whether a file at this web address may be part of a prompt, for example in your own upload storage. The address is
   * recorded, and read again for each request of the chat: a file that is gone makes them all fail. Default: files
   * must be in the message itself (data URLs).
   */
  readonly acceptsFileAt?: (url: URL) => boolean | Promise<boolean>;
  /**
   * Called with each new session, before its first turn: for its title, or an index of your own. If it fails, so does
   * the request, and the next one calls it again: also after the death of the server that created the session.
   */
  readonly onCreate?: (chat: { readonly id: string; readonly session: Session<ModelMessage> }) => void | Promise<void>;
  /** What the browser sees of an error, also of a tool's. Default: "An error occurred." */
  readonly onError?: (error: unknown) => string;
  /** Called once with each failure of the model, the store, or a function of yours. Default: `console.error`. */
  readonly onFailure?: (error: unknown) => void;
  /** Default: true. */
  readonly sendReasoning?: boolean;
  /** The largest accepted request, in bytes. Default: 20 MB. */
  readonly bodyBytesMax?: number;
  /** How often a silent stream gets a comment, so that proxies keep it open, in milliseconds. Default: 15,000. */
  readonly keepAliveMs?: number;
}

/** A call that has no outcome, and how far it got. */
export interface UnfinishedTool {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
  /**
   * "outcome-unknown": it was running, and may have taken effect. "never-started": it did not run, and runs if the turn
   * goes on. "unrecorded": the store does not record starts, so it may have run.
   */
  readonly state: CallState;
  /** The same for people. */
  readonly words: string;
}

/** What a page needs when it loads: `GET <path>/<chat id>`. */
export interface ChatState {
  readonly messages: UIMessage[];
  /**
   * "running": request the stream, which continues the answer if its server handed it over. "waiting": calls wait for
   * an approval or for an output of the page. "interrupted": the answer broke off; offer to go on (`POST` with `{
   * trigger: "continue" }`).
   */
  readonly status: "ready" | "running" | "waiting" | "interrupted";
  /**
   * Why the answer broke off, and which tools have no outcome. Null if it did not. "paused": it continues by itself, or
   * workers have given up on it. If calls are waiting as well, the answer goes on when the page has answered them.
   */
  readonly interrupted: {
    readonly reason: "killed" | "failed" | "stopped" | "paused";
    readonly tools: readonly UnfinishedTool[];
  } | null;
}

type Handler = (request: Request) => Promise<Response>;

/** The handlers of a `useChat` page. Each works in Next.js route handlers, Hono, and whatever passes a `Request`. */
export interface DurableChat {
  /**
   * `<path>` or `<path>/<chat id>`: takes the newest message of the body, and streams the answer.
   *
   * - A user's message starts a turn. It is on disk before the response begins. The same message again (by id) starts
   *   no second one: it joins the running answer or gets the finished one.
   * - From an assistant's message, only decisions about pending approvals and outputs of client-side tools are taken.
   *   Each is recorded once; a different second answer gets 409.
   * - `{ trigger: "continue" }` goes on with an interrupted turn (202). Then call `resumeStream()`.
   */
  readonly POST: Handler;
  /**
   * `<path>/<chat id>/stream`: the running answer, from its beginning or after the chunk named by `Last-Event-ID` (or
   * `?after=`); 204 if nothing runs. An answer that its server handed over is continued here. If the last
   * `ChatState` that this server gave out said "running", less than a minute ago, it is that answer, even if it is
   * over. `<path>/<chat id>`: a `ChatState`.
   */
  readonly GET: Handler;
  /**
   * `<path>/<chat id>`: stops the running answer, or gives up one that waits for the page or broke off. It is on disk
   * before the response. 204, also if there is nothing to stop; 409 if another server is answering.
   */
  readonly DELETE: Handler;
  /** All three, by the method. */
  readonly handle: Handler;
  /** The same for Express and `node:http`: `app.use("/api/chat", chat.listener)`. */
  readonly listener: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  /** The id of the chat's session in the store. */
  sessionId(chatId: string): string;
  /** What the page would get. */
  state(chatId: string): Promise<ChatState>;
  /** Resolves when no answer is running in this process. */
  idle(): Promise<void>;
  /**
   * Before the process ends: requests that would begin something get 503, and the sessions of running answers are
   * closed with these options. With `handOver`, the pages see their streams end, ask the next server for the state, and
   * it continues the answers. Close the store after this.
   */
  close(options?: CloseOptions): Promise<void>;
}

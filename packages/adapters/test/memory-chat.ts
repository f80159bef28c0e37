import { jsonSchema, type ToolSet, type UIMessageChunk } from "ai";
import { newId, openStore, type Store } from "holdfast";
import { type ChatState, type DurableChat, type DurableChatOptions, durableChat } from "../src/ai-sdk/index.ts";
import { Page, transportOf } from "./page.ts";
import { finished, type Step, scripted } from "./scripted-model.ts";

export const nothing = jsonSchema<object>({ type: "object", properties: {} });
export const BASE = "http://localhost/api/chat";

/** A server with its store in memory. Another one on the same store is the same server, restarted. */
export class Server implements AsyncDisposable {
  readonly store: Store;
  readonly model: ReturnType<typeof scripted>;
  readonly chat: DurableChat;
  readonly ran: string[] = [];
  readonly id = newId();

  constructor(store: Store, steps: Step[], tools: ToolSet = {}, options: DurableChatOptions = {}) {
    this.store = store;
    this.model = scripted(...steps);
    this.chat = durableChat(store, { model: this.model, tools, maxRetries: 0 }, options);
  }

  static async with(steps: Step[], tools: ToolSet = {}, options: DurableChatOptions = {}): Promise<Server> {
    return new Server(await openStore("memory:", { recordsToolStarts: true }), steps, tools, options);
  }

  async page(id = this.id): Promise<Page> {
    return new Page(id, (await this.state(id)).messages, { transport: transportOf(this.chat.handle) });
  }

  async state(id = this.id): Promise<ChatState> {
    return (await (await this.chat.GET(new Request(`${BASE}/${id}`))).json()) as ChatState;
  }

  post(body: object, headers: Record<string, string> = {}): Promise<Response> {
    const all = { "content-type": "application/json", ...headers };
    return this.chat.POST(
      new Request(BASE, { method: "POST", headers: all, body: JSON.stringify({ id: this.id, ...body }) }),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.store.close();
  }
}

export const says = (id: string, words: string): object => ({
  message: { id, role: "user", parts: [{ type: "text", text: words }] },
});

export async function chunksOf(response: Response): Promise<UIMessageChunk[]> {
  const lines = (await response.text()).split("\n").filter((line) => line.startsWith("data: {"));
  return lines.map((line) => JSON.parse(line.slice(6)) as UIMessageChunk);
}

export const wordsIn = (chunks: readonly UIMessageChunk[]): string =>
  chunks.map((chunk) => (chunk.type === "text-delta" ? chunk.delta : "")).join("");

/** A step that says its first words, and the rest when it is released. */
export function held(
  first: string,
  rest: string,
): { readonly step: Step; readonly said: Promise<void>; release(): void } {
  const { promise: said, resolve } = Promise.withResolvers<void>();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const step: Step = () => ({
    stream: ReadableStream.from(
      (async function* () {
        yield { type: "stream-start" as const, warnings: [] };
        yield { type: "text-start" as const, id: "t" };
        yield { type: "text-delta" as const, id: "t", delta: first };
        resolve();
        await released;
        yield { type: "text-delta" as const, id: "t", delta: rest };
        yield { type: "text-end" as const, id: "t" };
        yield finished("stop");
      })(),
    ),
  });
  return { step, said, release };
}

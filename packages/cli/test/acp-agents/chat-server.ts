import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as passed } from "node:timers/promises";

/** What the model does with a prompt. Text is `answer`; a call runs `command` in the agent's shell. */
export type Script = { readonly answer: string } | { readonly command: string } | { readonly endless: string };

/** A model on the loopback interface, with OpenAI's chat completions. The user's last prompt selects the script. */
export class ChatServer implements AsyncDisposable {
  readonly #server: Server;
  readonly #script: (prompt: string) => Script;

  private constructor(script: (prompt: string) => Script) {
    this.#script = script;
    this.#server = createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy());
    });
  }

  static async start(script: (prompt: string) => Script): Promise<ChatServer> {
    const one = new ChatServer(script);
    one.#server.listen(0, "127.0.0.1");
    await once(one.#server, "listening");
    return one;
  }

  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { messages, tools } = JSON.parse(await bodyOf(request)) as {
      readonly messages: readonly { readonly role: string; readonly content: unknown }[];
      readonly tools?: readonly unknown[];
    };
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (delta: object, finish: string | null = null): void => {
      const chunk = { index: 0, delta, finish_reason: finish };
      const usage = finish === null ? {} : { usage: { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 } };
      const common = { id: "chat-1", object: "chat.completion.chunk", created: 1, model: "fake" };
      response.write(`data: ${JSON.stringify({ ...common, choices: [chunk], ...usage })}\n\n`);
    };
    const last = messages.findLast(({ role }) => role === "user");
    // A request without tools is one for a title.
    const script = tools === undefined ? { answer: "A title" } : this.#script(textOf(last?.content));
    const isResult = messages.at(-1)?.role === "tool";
    if ("endless" in script) {
      while (!response.destroyed) {
        send({ role: "assistant", content: script.endless });
        await passed(10);
      }
    } else if ("command" in script && !isResult) {
      const args = JSON.stringify({ command: script.command, description: "Runs a command" });
      const call = { index: 0, id: "call-1", type: "function", function: { name: "bash", arguments: args } };
      send({ role: "assistant", tool_calls: [call] });
      send({}, "tool_calls");
    } else {
      const text = "answer" in script ? script.answer : "The command has ended.";
      for (const word of text.split(/(?<= )/)) send({ role: "assistant", content: word });
      send({}, "stop");
    }
    response.end("data: [DONE]\n\n");
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) body += chunk;
  return body;
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  const blocks = content as readonly { readonly text?: string }[] | undefined;
  return blocks?.map(({ text = "" }) => text).join("") ?? "";
}

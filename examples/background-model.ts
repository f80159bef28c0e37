// Stands for OpenAI in background.ts: a server on this machine that answers in the background, as the Responses API
// does, and counts the answers that you would pay for.
// Start it: node --conditions=holdfast-source examples/background-model.ts
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ResponseCreateParams, ResponseOutputItem } from "openai/resources/responses/responses";

interface Stored {
  readonly response: object;
  readonly output: unknown[];
  /** How often it was asked for. */
  asked: number;
}

export interface BackgroundModel extends AsyncDisposable {
  readonly url: string;
  /** Ids of the answers that were paid for, in order. */
  readonly paid: readonly string[];
  /** The API keeps an answer only for so long. */
  forget(): void;
}

/** Listens on a free port, or on this one. */
export async function startBackgroundModel(port = 0): Promise<BackgroundModel> {
  const stored = new Map<string, Stored>();
  const paid: string[] = [];

  function create({ model = "gpt-5.2", input, background, store }: ResponseCreateParams): [number, object] {
    if (background !== true || store === false) return refusal(400, "This server only answers in the background.");
    const id = `resp_${paid.length + 1}`;
    paid.push(id);
    const response = {
      id,
      object: "response",
      created_at: 1_700_000_000,
      model,
      status: "queued",
      output: [],
    } as const;
    stored.set(id, { response, output: answerTo(JSON.stringify(input), id), asked: 0 });
    return [200, { ...response, output: [] }];
  }

  function retrieve(id: string): [number, object] {
    const found = stored.get(id);
    if (!found) return refusal(404, `Response with id '${id}' not found.`);
    found.asked += 1;
    if (found.asked === 1) return [200, { ...found.response, status: "in_progress", output: [] }];
    const usage = { input_tokens: 900, output_tokens: 120, total_tokens: 1020 };
    return [200, { ...found.response, status: "completed", output: found.output, usage }];
  }

  const server = createServer((request, response) => {
    void handle(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const id = /^\/v1\/responses\/(\w+)/.exec(request.url ?? "")?.[1];
    const [status, body] = id ? retrieve(id) : create(JSON.parse(await textOf(request)) as ResponseCreateParams);
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  }
  await new Promise<void>((listening) => server.listen(port, "127.0.0.1", listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    paid,
    forget: () => stored.clear(),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

/** Looks first, then answers. */
function answerTo(input: string, id: string): unknown[] {
  const reasoning = { type: "reasoning", id: `rs_${id}`, summary: [], encrypted_content: `encrypted-${id}` };
  if (!input.includes("function_call_output")) {
    const call = { type: "function_call", id: `fc_${id}`, call_id: `call_${id}`, name: "look", arguments: "{}" };
    return [reasoning, { ...call, status: "completed" }];
  }
  const content = [{ type: "output_text", text: "There are many stars.", annotations: [] }];
  const message: Partial<ResponseOutputItem> = { type: "message", id: `msg_${id}`, role: "assistant" };
  return [reasoning, { ...message, status: "completed", content }];
}

function refusal(status: number, message: string): [number, object] {
  return [status, { error: { message, type: "invalid_request_error", param: null, code: null } }];
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

if (import.meta.main) {
  const { url } = await startBackgroundModel(4010);
  console.log(`listening: OPENAI_BASE_URL=${url} OPENAI_API_KEY=none`);
}

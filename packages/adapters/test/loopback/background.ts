import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { openaiResponses } from "./openai-responses.ts";
import type { Answer, Body } from "./server.ts";

export interface BackgroundServer extends AsyncDisposable {
  readonly url: string;
  /** Ids of the responses that were paid for, in order. */
  readonly paid: readonly string[];
  readonly requests: readonly Body[];
  /** What was asked for, after `/v1/responses`. */
  readonly fetched: readonly string[];
  /** The responses made so far have failed, */
  fail(): void;
  /** or are not kept any longer. */
  forget(): void;
}

/** The Responses API with answers in the background: `POST`, `GET` by id, and the events of a stream once more. */
export async function backgroundServer(reply: (body: Body) => Answer): Promise<BackgroundServer> {
  const stored = new Map<string, { readonly body: Body; readonly whole: Body; polls: number; failed?: true }>();
  const paid: string[] = [];
  const requests: Body[] = [];
  const fetched: string[] = [];
  const server = createServer((request, response) => {
    void answer(request, response).catch((error: unknown) => response.destroy(error as Error));
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const at = new URL(request.url!, "http://127.0.0.1");
    const id = at.pathname.replace(/^\/v1\/responses\/?/, "");
    if (request.method === "GET") {
      fetched.push(`${id}${at.search}`);
      const found = stored.get(id);
      if (!found) return send(response, 404, openaiResponses.refusal("not found"));
      const wantsStream = at.searchParams.get("stream") === "true";
      if (wantsStream && found.body["stream"] !== true)
        return send(response, 400, openaiResponses.refusal("no stream"));
      return wantsStream ? stream(response, id) : send(response, 200, { ...found.whole, ...stateOf(found) });
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString("utf8")) as Body;
    requests.push(body);
    const n = String(paid.length + 1);
    const whole = openaiResponses.whole!(reply(body), body, n);
    paid.push(`resp_${n}`);
    if (body["background"] !== true) return send(response, 200, whole);
    stored.set(`resp_${n}`, { body, whole, polls: 0 });
    if (body["stream"] === true) return stream(response, `resp_${n}`);
    send(response, 200, { ...whole, status: "queued", output: [] });
  }

  function stateOf(found: { polls: number; failed?: true }): Body {
    const error = { code: "server_error", message: "no" };
    if (found.failed) return { status: "failed", output: [], error };
    found.polls += 1;
    return found.polls === 1 ? { status: "in_progress", output: [] } : { status: "completed" };
  }

  function stream(response: ServerResponse, id: string): void {
    const { body } = stored.get(id)!;
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of openaiResponses.events(reply(body), body, id.slice(5))) response.write(event);
    response.end();
  }

  function send(response: ServerResponse, status: number, body: Body): void {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  }

  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    paid,
    requests,
    fetched,
    fail: () => {
      for (const one of stored.values()) one.failed = true;
    },
    forget: () => stored.clear(),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

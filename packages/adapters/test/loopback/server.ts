import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate as turnOfLoop } from "node:timers/promises";
import type { Violation } from "@holdfast/testkit";

export type Body = Readonly<Record<string, unknown>>;

/** What a model answers. */
export interface Answer {
  readonly reasoning?: string;
  /** What the provider looked up by itself before it speaks; for those that can here. */
  readonly searched?: string;
  readonly text?: string;
  readonly calls?: readonly { readonly id: string; readonly name: string; readonly input: unknown }[];
}

/** What the server does with one request. */
export type Reply =
  | Answer
  /** Refused before anything is streamed. */
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly message?: string }
  /**
   * The answer, of which only so many events are sent: then the connection is cut, or an event comes that is no JSON,
   * or an error of the provider's, or nothing for as long as the client waits. "garbled": the next event is no JSON,
   * and the rest follows.
   */
  | {
      readonly answer: Answer;
      readonly after: number;
      readonly end: "cut" | "malformed" | "garbled" | "error" | "silence";
    };

/** How a provider speaks: made for its real package, which is the judge of it. */
export interface Speech {
  /** What its package is given as `baseURL`. */
  readonly base: string;
  /**
   * Server-sent events, one text for each. `id`: one for this answer to this request, for the provider to make its own
   * of.
   */
  events(answer: Answer, body: Body, id: string): string[];
  /** The answer to a request that does not ask for a stream; for those that can here. */
  whole?(answer: Answer, body: Body, id: string): Body;
  /** The event by which it tells of a failure in mid-stream. */
  failure(): string;
  /** What it says to a refused request. */
  refusal(message: string): Body;
  /** What its API would object to in a request. */
  judge(body: Body): Violation[];
}

export interface Loopback extends AsyncDisposable {
  /** For the package's `baseURL`. */
  readonly url: string;
  readonly requests: readonly Body[];
  /** What the provider would have refused, over all requests. */
  readonly violations: readonly Violation[];
}

/** A provider on 127.0.0.1: answers by the script, or as the function says for each request. */
export async function loopback(speech: Speech, script: readonly Reply[] | ((body: Body) => Reply)): Promise<Loopback> {
  const requests: Body[] = [];
  const violations: Violation[] = [];
  const server = createServer((request, response) => {
    void answer(request, response).catch((error: unknown) => response.destroy(error as Error));
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString("utf8")) as Body;
    const n = requests.push(body) - 1;
    violations.push(...speech.judge(body));
    const reply = typeof script === "function" ? script(body) : script[n];
    if (!reply) return refuse(response, 400, {}, "the script is over");
    if ("status" in reply) return refuse(response, reply.status, reply.headers ?? {}, reply.message ?? "no");
    const given = "answer" in reply ? reply.answer : reply;
    const id = createHash("sha256")
      .update(JSON.stringify([body, given]))
      .digest("hex")
      .slice(0, 12);
    if (speech.whole && body["stream"] !== true) {
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify(speech.whole(given, body, id)));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const events = speech.events(given, body, id);
    const sent = "answer" in reply ? events.slice(0, reply.after) : events;
    if ("answer" in reply && reply.end === "garbled") sent.push("data: {no\n\n", ...events.slice(reply.after + 1));
    // Each event in a packet of its own, as they come from a model.
    for (const event of sent) {
      response.write(event);
      await turnOfLoop();
    }
    if (!("answer" in reply) || reply.end === "garbled") response.end();
    else if (reply.end === "cut") response.destroy();
    else if (reply.end === "malformed") response.end("data: {no\n\n");
    else if (reply.end === "error") response.end(speech.failure());
  }

  function refuse(
    response: ServerResponse,
    status: number,
    headers: Readonly<Record<string, string>>,
    message: string,
  ): void {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(speech.refusal(message)));
  }

  // A client on a busy machine may reuse a connection at the moment at which the server would close it as idle.
  server.keepAliveTimeout = 0;
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}${speech.base}`,
    requests,
    violations,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

/** Text in pieces of a few characters, as models stream it. */
export function pieces(text: string): string[] {
  return text.match(/[\s\S]{1,7}/gu) ?? [];
}

export function event(data: unknown, name?: string): string {
  return `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;
}

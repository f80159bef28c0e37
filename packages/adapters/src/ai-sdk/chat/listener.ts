import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";

/** Express keeps the whole path, and what a parser made of the body. */
type Incoming = IncomingMessage & { readonly originalUrl?: string; readonly body?: unknown };

/** Calls a web-standard handler for a request of `node:http`. Never rejects: a server would end its process. */
export async function listen(
  handle: (request: Request) => Promise<Response>,
  incoming: Incoming,
  outgoing: ServerResponse,
  onFailure: (error: unknown) => void,
): Promise<void> {
  const request = requestOf(incoming);
  if (!request) {
    outgoing.writeHead(400).end();
    return;
  }
  try {
    await respond(await handle(request), outgoing);
  } catch (error) {
    onFailure(error);
    outgoing.destroy();
  }
}

async function respond(response: Response, outgoing: ServerResponse): Promise<void> {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (!response.body) {
    outgoing.end();
    return;
  }
  const reader = response.body.getReader();
  outgoing.once("close", () => void reader.cancel().catch(() => undefined));
  outgoing.flushHeaders();
  for (;;) {
    const { done, value } = await reader.read();
    if (outgoing.destroyed) return;
    if (done) break;
    if (!outgoing.write(value)) await drained(outgoing);
  }
  outgoing.end();
}

/** Null for a request that the web's `Request` does not know, such as TRACE. */
function requestOf(incoming: Incoming): Request | null {
  const { method = "GET", originalUrl, url = "/", body } = incoming;
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers))
    for (const one of value === undefined || name.startsWith(":") ? [] : [value].flat()) headers.append(name, one);
  const at = URL.parse(originalUrl ?? url, "http://localhost") ?? new URL("http://localhost/");
  if (/^(?:TRACE|TRACK|CONNECT)$/i.test(method)) return null;
  if (/^(?:GET|HEAD|DELETE|OPTIONS)$/.test(method)) return new Request(at, { method, headers });
  const isParsed = body !== undefined && typeof body !== "string" && !(body instanceof Uint8Array);
  const given = body === undefined ? Readable.toWeb(incoming) : isParsed ? JSON.stringify(body) : body;
  return new Request(at, { method, headers, body: given as never, duplex: "half" } as RequestInit);
}

async function drained(outgoing: ServerResponse): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  outgoing.once("drain", resolve).once("close", resolve);
  await promise;
  outgoing.off("drain", resolve).off("close", resolve);
}

import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { ServerTransport } from "./stdio-transport.ts";

/** The body of one response. */
const BODY_BYTES_MAX = 64 * 1024 * 1024;

/** A server elsewhere. The SDK follows redirects only within the server's origin, so headers stay there. */
export function httpTransport(url: string, headers: Readonly<Record<string, string>>): ServerTransport {
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { ...headers } },
    fetch: fetchBounded,
  });
  return Object.assign(transport as unknown as ServerTransport, { why: null, said: "" });
}

/** A response without end would fill the memory. */
async function fetchBounded(url: string | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  if (!response.body) return response;
  let bytes = 0;
  const bounded = response.body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        bytes += chunk.byteLength;
        if (bytes > BODY_BYTES_MAX) controller.error(new Error("the server's response is too large"));
        else controller.enqueue(chunk);
      },
    }),
  );
  const { status, statusText } = response;
  const same = new Response(bounded, { status, statusText, headers: response.headers });
  Object.defineProperty(same, "url", { value: response.url });
  Object.defineProperty(same, "redirected", { value: response.redirected });
  return same;
}

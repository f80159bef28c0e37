import { STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { problemOf } from "../access/problem-of.ts";
import { type RequestError, refuse } from "../access/request-error.ts";

/** Answers to what does not reach the application, in the same form as its own. */

export function malformed(): RequestError {
  return refuse("REQUEST_INVALID", "This is not an HTTP request that the server understands. Nothing was touched.");
}

export function asResponse(error: RequestError): Response {
  const { problem } = problemOf(error);
  const headers = { "content-type": "application/problem+json", "cache-control": "no-store", connection: "close" };
  return new Response(JSON.stringify(problem), { status: problem.status, headers });
}

/** Time for the answer to arrive. A client that does not close its side then would keep the connection for ever. */
const LINGER_MS = 2000;

/** For `clientError` of Node's server: the connection is closed after the answer. */
export function refuseConnection(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const { problem } = problemOf(reasonFor(error.code));
  const body = JSON.stringify(problem);
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    "Content-Type: application/problem+json",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Cache-Control: no-store",
    "Connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
  const linger = setTimeout(() => socket.destroy(), LINGER_MS).unref();
  socket.once("close", () => clearTimeout(linger));
}

function reasonFor(code: string | undefined): RequestError {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return refuse("HEADERS_TOO_LARGE", "The headers are too large. Nothing was touched. Send fewer or shorter ones.");
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return refuse("REQUEST_TOO_SLOW", "The request did not arrive in time. Nothing was touched. Send it again.");
    default:
      return malformed();
  }
}

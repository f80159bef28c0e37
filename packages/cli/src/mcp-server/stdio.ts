import { finished } from "node:stream/promises";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import type { JSONRPCMessage, RequestId } from "@modelcontextprotocol/sdk/types.js";
import { plainLine } from "../terminal/plain.ts";
import type { CleanOptions } from "./clean.ts";
import { makeServer, type SessionSource } from "./tools.ts";

/** How long calls may take after the client has closed our input. */
const LAST_ANSWERS_MS = 30_000;

/** Serves the program that started this one until it closes our input. Calls it made before that are still answered. */
export async function serveStdio(source: SessionSource, cleaning: CleanOptions): Promise<void> {
  const server = makeServer(source, cleaning);
  const transport = new AnsweringTransport();
  const closed = new Promise<void>((resolve) => {
    server.server.onclose = resolve;
  });
  server.server.onerror = (error) => process.stderr.write(`holdfast: ${plainLine(error.message)}\n`);
  await server.connect(transport);
  transport.countRequests();
  // Also ends if the client sends a line that is too long to be a request: the transport has then closed itself.
  await Promise.race([closed, inputEnded()]);
  await transport.answered(LAST_ANSWERS_MS);
  await server.close();
  process.stdin.destroy();
}

async function inputEnded(): Promise<void> {
  try {
    await finished(process.stdin, { writable: false });
  } catch (error) {
    // The client is gone, in whichever way.
    if (!(error instanceof Error)) throw error;
  }
}

/** Knows which requests have no answer yet. */
class AnsweringTransport extends StdioServerTransport {
  readonly #open = new Set<RequestId>();
  #onIdle: (() => void) | null = null;

  /** Call it once the server listens. */
  countRequests(): void {
    const deliver = this.onmessage;
    this.onmessage = (message) => {
      if ("method" in message && "id" in message) this.#open.add(message.id);
      if ("method" in message && message.method === "notifications/cancelled")
        this.#settle(message.params?.["requestId"] as RequestId);
      deliver?.(message);
    };
  }

  override async send(message: JSONRPCMessage): Promise<void> {
    await super.send(message);
    if (!("method" in message) && message.id !== undefined) this.#settle(message.id);
  }

  async answered(patienceMs: number): Promise<void> {
    if (this.#open.size === 0) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
      timer = setTimeout(resolve, patienceMs);
    });
    clearTimeout(timer);
  }

  #settle(id: RequestId): void {
    this.#open.delete(id);
    if (this.#open.size === 0) this.#onIdle?.();
  }
}

import type { ServerResponse } from "node:http";
import type { EventName } from "../schemas/events.ts";

/** A client that does not read costs at most this much memory, and one record. */
export const WAITING_BYTES_MAX = 256 * 1024;
const HEARTBEAT_MS = 15_000;
/** A client that has read nothing for this long is gone, even if its connection does not say so. */
const STUCK_MS = 60_000;
/** How long a browser waits before it connects again. */
const RETRY_MS = 500;

export interface StreamPace {
  readonly heartbeatMs?: number;
  readonly stuckMs?: number;
}

/** An event as it is sent. */
export function eventText(name: EventName, id: string | null, json: string): string {
  return `${id === null ? "" : `id: ${id}\n`}event: ${name}\ndata: ${json}\n\n`;
}

/**
 * One connection that receives server-sent events. Nobody waits for it except the reader of the journal that works for
 * it alone.
 */
export class EventStream {
  readonly #response: ServerResponse;
  readonly #ended = new AbortController();
  readonly #heartbeat: NodeJS.Timeout;
  #drained: PromiseWithResolvers<void> | null = null;
  #onDrain: (() => void) | null = null;
  #stuckSince: number | null = null;

  constructor(response: ServerResponse, headers: Readonly<Record<string, string>>, pace: StreamPace = {}) {
    this.#response = response;
    const { heartbeatMs = HEARTBEAT_MS, stuckMs = STUCK_MS } = pace;
    response.writeHead(200, {
      ...headers,
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      // Proxies that buffer would hold events back.
      "x-accel-buffering": "no",
    });
    response.write(`retry: ${RETRY_MS}\n\n`);
    response.on("drain", () => this.#drain());
    response.on("close", () => this.#end());
    response.on("error", () => this.#end());
    this.#heartbeat = setInterval(() => this.#beat(stuckMs), heartbeatMs).unref();
  }

  /** Fires when the connection has ended, for whatever reason. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  /** False if the client has so much to read that nothing more should be sent to it. */
  get hasRoom(): boolean {
    return this.waitingBytes < WAITING_BYTES_MAX;
  }

  get waitingBytes(): number {
    return this.#response.writableLength;
  }

  /** `id`: what the client sends as Last-Event-ID; null leaves it as it is. `json` is one line. */
  send(name: EventName, id: string | null, json: string): void {
    this.sendText(eventText(name, id, json));
  }

  /** Sends an event that `eventText` made. */
  sendText(text: string): void {
    if (!this.#ended.signal.aborted) this.#response.write(text);
  }

  /** Resolves when the client has read what was sent, or is gone. */
  async room(): Promise<void> {
    if (this.hasRoom || this.#ended.signal.aborted) return;
    this.#drained ??= Promise.withResolvers();
    await this.#drained.promise;
  }

  /** Calls the listener once, when the client has read what was sent. */
  onDrain(listener: () => void): void {
    this.#onDrain = listener;
  }

  end(): void {
    if (!this.#ended.signal.aborted) this.#response.end();
    this.#end();
  }

  #drain(): void {
    this.#stuckSince = null;
    this.#drained?.resolve();
    this.#drained = null;
    const listener = this.#onDrain;
    this.#onDrain = null;
    listener?.();
  }

  #beat(stuckMs: number): void {
    if (this.#response.writableLength === 0) {
      this.#response.write(":\n\n");
      this.#stuckSince = null;
      return;
    }
    const now = performance.now();
    const sent = this.#response.socket?.bytesWritten ?? 0;
    if (sent !== this.#sent) this.#stuckSince = null;
    this.#sent = sent;
    this.#stuckSince ??= now;
    if (now - this.#stuckSince >= stuckMs) this.#response.destroy();
  }
  #sent = 0;

  #end(): void {
    if (this.#ended.signal.aborted) return;
    clearInterval(this.#heartbeat);
    this.#ended.abort();
    this.#drained?.resolve();
    this.#drained = null;
  }
}

import type { Socket } from "node:net";
import type { Caller } from "../access/credentials.ts";

type Access = Caller["access"] | "none";

interface Connection {
  readonly address: string;
  access: Access;
  /** How many requests on it have no complete answer yet. */
  requests: number;
  /** How much waits for the client to read it, and since when it has read nothing. */
  waiting: { readonly bytes: number; readonly since: number };
}

/** Clients wait for an answer before they send the next request. Answers to a thousand at once would fill memory. */
const REQUESTS_MAX = 16;

/**
 * The open connections. Anybody can open as many as the server accepts, so beyond the limit a new one takes the place
 * of one that has shown less than the owner's token. The owner always finds room.
 */
export class Connections {
  readonly #max: number;
  /** The oldest first. */
  readonly #open = new Map<Socket, Connection>();

  constructor(max: number) {
    this.#max = max;
  }

  add(socket: Socket): void {
    if (this.#open.size >= this.#max && !this.#closeOne()) {
      socket.destroy();
      return;
    }
    this.#open.set(socket, {
      address: socket.remoteAddress ?? "",
      access: "none",
      requests: 0,
      waiting: { bytes: 0, since: 0 },
    });
    socket.once("close", () => this.#open.delete(socket));
  }

  /** A request has arrived. Call the returned function when it is answered, or never will be. */
  begin(socket: Socket): () => void {
    const connection = this.#open.get(socket);
    if (!connection) return () => {};
    connection.requests++;
    if (connection.requests > REQUESTS_MAX) socket.destroy();
    return () => {
      connection.requests--;
    };
  }

  /** Some request has no complete answer yet. */
  get areAsking(): boolean {
    return [...this.#open.values()].some(({ requests }) => requests > 0);
  }

  /** A request on it came with this access. */
  admit(socket: Socket, access: Caller["access"]): void {
    const connection = this.#open.get(socket);
    if (connection && connection.access !== "owner") connection.access = access;
  }

  /** Closes the connections whose clients have read nothing of an answer for this long. */
  closeStuck(stuckMs: number, now: number = performance.now()): void {
    for (const [socket, connection] of this.#open) {
      const bytes = waitingBytes(socket);
      const { waiting } = connection;
      if (bytes === 0 || bytes < waiting.bytes || waiting.bytes === 0) connection.waiting = { bytes, since: now };
      else if (now - waiting.since >= stuckMs) socket.destroy();
    }
  }

  /** Closes the oldest connection of the address that has most of them. False if all are the owner's. */
  #closeOne(): boolean {
    for (const access of ["none", "read"] as const) {
      const all = [...this.#open].filter(([, connection]) => connection.access === access);
      if (all.length === 0) continue;
      const counts = new Map<string, number>();
      for (const [, { address }] of all) counts.set(address, (counts.get(address) ?? 0) + 1);
      const most = Math.max(...counts.values());
      const [socket] = all.find(([, { address }]) => counts.get(address) === most)!;
      this.#open.delete(socket);
      socket.destroy();
      return true;
    }
    return false;
  }
}

/** Node counts a piece as written when all of it is; its handle knows how much of a large one is left. */
function waitingBytes(socket: Socket): number {
  const { _handle: handle } = socket as { readonly _handle?: { readonly writeQueueSize?: number } | null };
  return socket.writableLength === 0 ? 0 : handle?.writeQueueSize || socket.writableLength;
}

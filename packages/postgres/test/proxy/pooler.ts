import { once } from "node:events";
import { connect, createServer, type Server as NetServer, type Socket } from "node:net";

const SSL_REQUEST = 80877103;
const READY = 0x5a; // 'Z'
const IDLE = 0x49; // 'I'
const SYNC = 0x53; // 'S'
const SIMPLE_QUERY = 0x51; // 'Q'

interface Backend {
  readonly socket: Socket;
  /** Who it works for. */
  client: Socket | null;
  pending: Buffer;
}

/**
 * A pooler in transaction mode, as small as one can be: every transaction goes to another backend than the one before.
 * The server must trust whoever comes (`pg_hba.conf`).
 */
export class Pooler {
  readonly #listening: NetServer;
  readonly #clients = new Set<Socket>();
  #idle: Backend[] = [];
  readonly #all: Backend[] = [];
  readonly #queue: { readonly client: Socket; readonly chunk: Buffer }[] = [];
  readonly #serving = new Map<Socket, Backend>();
  /** How many transactions were served, by backend. */
  readonly served = new Map<number, number>();

  private constructor() {
    this.#listening = createServer((client) => this.#accept(client));
  }

  static async open(serverPort: number, backends: number): Promise<Pooler> {
    const pooler = new Pooler();
    for (let i = 0; i < backends; i++) await pooler.#addBackend(serverPort);
    pooler.#listening.listen(0, "127.0.0.1");
    await once(pooler.#listening, "listening");
    return pooler;
  }

  get url(): string {
    return `postgres://postgres:secret@127.0.0.1:${(this.#listening.address() as { port: number }).port}/postgres`;
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.destroy();
    for (const { socket } of this.#all) socket.destroy();
    this.#listening.close();
    await once(this.#listening, "close");
  }

  async #addBackend(port: number): Promise<void> {
    const socket = connect({ port, host: "127.0.0.1" });
    socket.on("error", () => undefined);
    await once(socket, "connect");
    const text = Buffer.from("user\0postgres\0database\0postgres\0client_encoding\0UTF8\0application_name\0pooler\0\0");
    const head = Buffer.alloc(8);
    head.writeInt32BE(8 + text.length, 0);
    head.writeInt32BE(196608, 4);
    socket.write(Buffer.concat([head, text]));
    const backend: Backend = { socket, client: null, pending: Buffer.alloc(0) };
    const number = this.#all.push(backend);
    await new Promise<void>((resolve) => {
      socket.on("data", (chunk) => {
        if (backend.client?.writable) backend.client.write(chunk);
        backend.pending = Buffer.concat([backend.pending, chunk]);
        while (backend.pending.length >= 5 && backend.pending.length >= 1 + backend.pending.readInt32BE(1)) {
          const type = backend.pending[0];
          const status = backend.pending[5];
          backend.pending = backend.pending.subarray(1 + backend.pending.readInt32BE(1));
          if (type !== READY || status !== IDLE) continue;
          if (backend.client) this.served.set(number, (this.served.get(number) ?? 0) + 1);
          this.#release(backend);
          resolve();
        }
      });
    });
  }

  #release(backend: Backend): void {
    if (backend.client) this.#serving.delete(backend.client);
    backend.client = null;
    const next = this.#queue.shift();
    // At the end: the one that has been idle for longest is next.
    if (!next) this.#idle.push(backend);
    else this.#serve(next.client, backend, next.chunk);
  }

  #serve(client: Socket, backend: Backend, chunk: Buffer): void {
    backend.client = client;
    this.#serving.set(client, backend);
    backend.socket.write(chunk);
  }

  #accept(client: Socket): void {
    this.#clients.add(client);
    client.on("error", () => undefined);
    client.on("close", () => this.#clients.delete(client));
    let isStarted = false;
    let request = Buffer.alloc(0);
    client.on("data", (chunk) => {
      request = Buffer.concat([request, chunk]);
      if (!isStarted) {
        if (request.length < 8 || request.length < request.readInt32BE(0)) return;
        const isSsl = request.readInt32BE(4) === SSL_REQUEST;
        request = request.subarray(request.readInt32BE(0));
        if (isSsl) client.write("N");
        else {
          isStarted = true;
          client.write(welcome());
        }
      }
      // Whole messages, up to one that ends what is asked.
      for (let end = 0; request.length >= end + 5; ) {
        const length = 1 + request.readInt32BE(end + 1);
        if (request.length < end + length) return;
        const type = request[end];
        end += length;
        if (type !== SYNC && type !== SIMPLE_QUERY) {
          if (type === 0x58) return void client.destroy(); // 'X'
          continue;
        }
        const asked = request.subarray(0, end);
        request = request.subarray(end);
        end = 0;
        const backend = this.#serving.get(client) ?? this.#idle.shift();
        if (backend) this.#serve(client, backend, asked);
        else this.#queue.push({ client, chunk: asked });
      }
    });
  }
}

function welcome(): Buffer {
  const message = (type: string, body: Buffer): Buffer => {
    const head = Buffer.alloc(5);
    head.write(type);
    head.writeInt32BE(4 + body.length, 1);
    return Buffer.concat([head, body]);
  };
  return Buffer.concat([
    message("R", Buffer.alloc(4)),
    message("S", Buffer.from("client_encoding\0UTF8\0")),
    message("S", Buffer.from("server_version\x0018.0\0")),
    message("S", Buffer.from("standard_conforming_strings\0on\0")),
    message("K", Buffer.alloc(8)),
    message("Z", Buffer.from("I")),
  ]);
}

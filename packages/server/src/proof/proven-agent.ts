import { randomBytes } from "node:crypto";
import { Agent, type ClientRequestArgs, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps, Agent as TlsAgent } from "node:https";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { clientProof, digestOf, isSameProof, PROOF_HEADER, PROOF_PATH, serverProof } from "./proof.ts";

/** How long a server may take to prove itself. It answers at once. */
const PROOF_MS = 10_000;
const HEAD_BYTES_MAX = 16 * 1024;

/** What listens at an address did not prove that it knows the token. */
export class UnprovenError extends Error {
  override readonly name = "UnprovenError";
  /** Of its answer; 0 if it claimed to prove itself, and did not. */
  readonly status: number;

  constructor(status: number) {
    super(`not proven (status ${status})`);
    this.status = status;
  }
}

export interface ProvenRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/** Sends requests with a token: over HTTPS, where the certificate is the proof, or to a server that proves itself. */
export class ProvenSender {
  readonly #token: string;
  readonly #plain: ProvenAgent;
  readonly #tls = new TlsAgent({ keepAlive: true });

  constructor(token: string) {
    this.#token = token;
    this.#plain = new ProvenAgent(token);
  }

  /** Redirects are not followed. Throws UnprovenError, and errors of the connection. */
  send(url: string, request: ProvenRequest): Promise<IncomingMessage> {
    const { method, headers, body, signal } = request;
    const isTls = /^https:/i.test(url);
    const all = {
      ...headers,
      authorization: `Bearer ${this.#token}`,
      ...(body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) }),
    };
    return new Promise((resolve, reject) => {
      const options = { method, headers: all, signal, agent: isTls ? this.#tls : this.#plain };
      const sent = (isTls ? requestHttps : requestHttp)(url, options, resolve);
      sent.on("error", (error: NodeJS.ErrnoException) => {
        // The server closed a connection that was kept, before it noticed the request. Reading again changes nothing.
        const isStale = sent.reusedSocket && (error.code === "ECONNRESET" || error.code === "EPIPE");
        if (isStale && method === "GET" && !signal.aborted) this.send(url, request).then(resolve, reject);
        else reject(error);
      });
      sent.end(body);
    });
  }
}

/**
 * The URL of a server, without a slash at its end. The name `localhost` may lead to two addresses, and a server proves
 * itself at one.
 */
export function plainAddress(url: string): string {
  return url.replace(/\/+$/, "").replace(/^http:\/\/localhost(?=$|:)/i, "http://127.0.0.1");
}

/** Connections whose other end has proven that it knows the token. */
class ProvenAgent extends Agent {
  readonly #token: string;

  constructor(token: string) {
    super({ keepAlive: true });
    this.#token = token;
  }

  override createConnection(
    { host, port }: ClientRequestArgs,
    callback: (error: Error | null, connection: Duplex) => void,
  ): undefined {
    const name = host ?? "127.0.0.1";
    const socket = connect(Number(port), name);
    const address = URL.parse(`http://${name.includes(":") ? `[${name}]` : name}:${port}`)!.host;
    prove(socket, this.#token, address).then(
      () => callback(null, socket),
      (error: Error) => {
        socket.destroy();
        callback(error, socket);
      },
    );
  }
}

async function prove(socket: Socket, token: string, address: string): Promise<void> {
  const [digest, nonce] = [digestOf(token), randomBytes(32).toString("base64url")];
  const path = `${PROOF_PATH}?nonce=${nonce}&client=${clientProof(digest, nonce)}`;
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${address}\r\n\r\n`);
  const head = await readHead(socket);
  const [, status] = /^HTTP\/1\.1 (\d{3}) /.exec(head) ?? [];
  if (status !== "204") throw new UnprovenError(Number(status ?? 0));
  const [, given = ""] = new RegExp(`^${PROOF_HEADER}: *(\\S+)\\r?$`, "im").exec(head) ?? [];
  if (!isSameProof(given, serverProof(digest, nonce, address))) throw new UnprovenError(0);
}

/** The head of an answer without a body. */
function readHead(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let head = "";
    const settle = (act: () => void): void => {
      clearTimeout(patience);
      socket.off("data", read).off("error", fail).off("close", close);
      act();
    };
    const fail = (error: Error): void => settle(() => reject(error));
    const close = (): void => fail(Object.assign(new Error("The connection was closed."), { code: "ECONNRESET" }));
    const read = (bytes: Buffer): void => {
      head += bytes.toString("latin1");
      if (head.includes("\r\n\r\n")) settle(() => resolve(head));
      else if (head.length > HEAD_BYTES_MAX) settle(() => reject(new UnprovenError(0)));
    };
    const patience = setTimeout(() => fail(Object.assign(new Error("No answer."), { code: "ETIMEDOUT" })), PROOF_MS);
    socket.on("data", read).on("error", fail).on("close", close);
  });
}

import * as fs from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";

/**
 * When the agent is killed: before its charge reaches the service; when the service has charged and has not answered;
 * when the tool has returned and the model is asked for its next answer.
 */
export type Instant = "before" | "charged" | "returned";

export interface Charge {
  readonly amount: number;
  readonly to: string;
  readonly key: string | null;
}

/** What an agent under test says when it is done. */
export interface Ended {
  readonly text?: string;
  readonly error?: string;
}

/**
 * The world outside of the agent, which survives it: a payment service that appends every charge to a log and can be
 * asked by key, and a scripted model. Loopback only. What is killed waits for an answer from here, so that every run
 * dies at the same instant.
 */
export class Loopback {
  readonly charges: Charge[] = [];
  /** The messages of every request to the model. */
  readonly requests: unknown[] = [];
  readonly #log: string;
  readonly #server: Server;
  #kill: { readonly at: Instant; readonly now: () => void } | null = null;
  #ended = Promise.withResolvers<Ended>();

  private constructor(folder: string) {
    this.#log = join(folder, "charges.jsonl");
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch((error: unknown) => {
        response.writeHead(500).end(String(error));
      });
    });
  }

  static async open(folder: string): Promise<Loopback> {
    const loopback = new Loopback(folder);
    await new Promise<void>((resolve) => loopback.#server.listen(0, "127.0.0.1", resolve));
    return loopback;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Resolves when the agent says that it is done. */
  get ended(): Promise<Ended> {
    return this.#ended.promise;
  }

  /** Calls `now` once, at that instant. Who asked for something then gets no answer. */
  killAt(at: Instant, now: () => void): void {
    this.#kill = { at, now };
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url!;
    const body = request.method === "POST" ? JSON.parse((await text(request)) || "{}") : null;
    const send = (value: unknown): void => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(value));
    };
    if (path === "/before") {
      if (!this.#killed("before")) send({});
    } else if (path === "/charges") {
      const charged = this.#charge(body as Charge);
      if (!this.#killed("charged")) send(charged);
    } else if (path.startsWith("/charges/")) {
      const index = this.charges.findIndex(({ key }) => key === decodeURIComponent(path.slice("/charges/".length)));
      send(index < 0 ? null : { charge: `ch_${index + 1}` });
    } else if (path === "/model") {
      const { messages } = body as { messages: unknown };
      this.requests.push(messages);
      const answer = script(messages);
      if (answer.call || !this.#killed("returned")) send(answer);
    } else if (path === "/ended") {
      send({});
      this.#ended.resolve(body as Ended);
    } else response.writeHead(404).end();
  }

  #charge({ amount, to, key }: Charge): { charge: string } {
    const known = key ? this.charges.findIndex((charge) => charge.key === key) : -1;
    if (known >= 0) return { charge: `ch_${known + 1}` };
    const charge = { amount, to, key: key ?? null };
    this.charges.push(charge);
    fs.appendFileSync(this.#log, `${JSON.stringify(charge)}\n`);
    return { charge: `ch_${this.charges.length}` };
  }

  #killed(at: Instant): boolean {
    if (this.#kill?.at !== at) return false;
    const { now } = this.#kill;
    this.#kill = null;
    now();
    return true;
  }
}

/** Asks for the charge until it sees the call in what it is sent. It never repeats a call that it sees. */
function script(messages: unknown): { call?: object; text?: string } {
  if (JSON.stringify(messages).includes("call_charge_1")) return { text: "That is all." };
  return { call: { id: "call_charge_1", name: "charge", input: { amount: 42, to: "ACME" } } };
}

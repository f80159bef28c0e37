import { once } from "node:events";
import { connect, createServer, type Server as NetServer, type Socket } from "node:net";

/** One connection through the proxy. */
interface Link {
  readonly client: Socket;
  readonly server: Socket;
  /** What the client said, and the server has not been given yet; null: nothing is held back. */
  held: Buffer[] | null;
  swallows: boolean;
}

/** Stands between workers and their server, and does what networks do. */
export class Network {
  /** Where new connections go. */
  target: number;
  /** How long everything takes on its way, in each direction. */
  delayMs = 0;
  readonly #links = new Set<Link>();
  readonly #listening: NetServer;
  #refuses = false;
  #wanted: { readonly text: string; readonly found: (link: Link) => void } | null = null;
  /** New connections are held as these are. */
  #heldToo: Set<Link> | null = null;

  private constructor(target: number) {
    this.target = target;
    this.#listening = createServer((client) => this.#accept(client));
  }

  static async open(target: number): Promise<Network> {
    const proxy = new Network(target);
    proxy.#listening.listen(0, "127.0.0.1");
    await once(proxy.#listening, "listening");
    return proxy;
  }

  get port(): number {
    return (this.#listening.address() as { port: number }).port;
  }

  /** An address with the proxy in the way. */
  through(url: string): string {
    const through = new URL(url);
    through.port = String(this.port);
    return through.href;
  }

  get connections(): number {
    return this.#links.size;
  }

  /** All connections end, on both sides. */
  cut(): void {
    for (const { client, server } of this.#links) {
      client.destroy();
      server.destroy();
    }
  }

  /** Nobody gets through any more. */
  refuse(refuses: boolean): void {
    this.#refuses = refuses;
    if (refuses) this.cut();
  }

  /** From now on the connections that are there get no answer; what they ask is done. */
  loseAnswers(): void {
    for (const link of this.#links) link.swallows = true;
  }

  /**
   * From now on what these connections ask (`all`: and what new ones do) is kept on its way. What is returned lets it
   * go on to the server, when whoever asked may be gone: a statement that comes late, a second time.
   */
  holdRequests(all = false): () => void {
    const held = new Set(this.#links);
    for (const link of held) link.held ??= [];
    this.#heldToo = all ? held : null;
    return () => {
      this.#heldToo = null;
      void this.#letGo(held);
    };
  }

  /** Resolves when the server has ended the connections whose client is gone. */
  async #letGo(links: ReadonlySet<Link>): Promise<void> {
    const ended: Promise<unknown>[] = [];
    for (const link of links) {
      for (const chunk of link.held ?? []) if (link.server.writable) link.server.write(chunk);
      link.held = null;
      if (!link.client.destroyed || link.server.destroyed) continue;
      // What the client did last arrives last.
      ended.push(once(link.server, "close"));
      link.server.end();
    }
    await Promise.all(ended);
  }

  /**
   * The next statement with this text in it, and what follows it on its connection, is kept on its way until `goOn` is
   * called. `held` resolves when there is one.
   */
  holdStatement(text: string): { readonly held: Promise<void>; readonly goOn: () => Promise<void> } {
    const { promise: held, resolve } = Promise.withResolvers<void>();
    const links = new Set<Link>();
    this.#wanted = {
      text,
      found: (link) => {
        this.#wanted = null;
        link.held ??= [];
        links.add(link);
        resolve();
      },
    };
    return { held, goOn: () => this.#letGo(links) };
  }

  async close(): Promise<void> {
    this.cut();
    this.#listening.close();
    await once(this.#listening, "close");
  }

  #accept(client: Socket): void {
    client.on("error", () => undefined);
    if (this.#refuses) {
      client.destroy();
      return;
    }
    const server = connect({ port: this.target, host: "127.0.0.1" });
    const link: Link = { client, server, held: this.#heldToo ? [] : null, swallows: false };
    this.#links.add(link);
    this.#heldToo?.add(link);
    server.on("error", () => client.destroy());
    client.on("data", (chunk) => {
      if (this.#wanted && chunk.includes(this.#wanted.text)) this.#wanted.found(link);
      if (link.held) link.held.push(chunk);
      else this.#later(() => server.writable && server.write(chunk));
    });
    server.on("data", (chunk) => {
      if (!link.swallows) this.#later(() => client.writable && client.write(chunk));
    });
    // A client that has gone is not seen by the server while what it asked is on its way.
    client.on("close", () => {
      if (!link.held) server.destroy();
      this.#links.delete(link);
    });
    server.on("close", () => {
      client.destroy();
      this.#links.delete(link);
    });
  }

  #later(send: () => unknown): void {
    if (this.delayMs === 0) send();
    else setTimeout(send, this.delayMs);
  }
}

import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** What happens to a connection: cut off after so many bytes of the answer, or silent from there on (half-open). */
export interface Cut {
  readonly afterBytes: number;
  readonly how: "reset" | "end" | "silent";
}

/** A network between a client and a server: every connection is cut, at any byte. */
export class CuttingProxy implements AsyncDisposable {
  readonly #server;
  readonly #sockets = new Set<Socket>();
  cuts = 0;

  private constructor(target: number, next: () => Cut | null) {
    this.#server = createServer((client) => {
      const server = connect(target, "127.0.0.1");
      const cut = next();
      let passed = 0;
      let isSilent = false;
      const end = (): void => {
        client.destroy();
        server.destroy();
      };
      for (const socket of [client, server]) {
        this.#sockets.add(socket);
        socket.on("error", end);
        socket.on("close", () => {
          this.#sockets.delete(socket);
          if (!isSilent) end();
        });
      }
      client.pipe(server);
      server.on("data", (bytes: Buffer) => {
        if (isSilent) return;
        const left = cut === null ? bytes.length : Math.max(0, cut.afterBytes - passed);
        passed += bytes.length;
        client.write(bytes.subarray(0, left));
        if (left >= bytes.length || cut === null) return;
        this.cuts++;
        if (cut.how === "silent") isSilent = true;
        else if (cut.how === "reset") client.resetAndDestroy();
        else client.end(end);
      });
    });
    void target;
  }

  static async start(target: number, next: () => Cut | null): Promise<CuttingProxy> {
    const proxy = new CuttingProxy(target, next);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", () => resolve()));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Cuts every connection now. */
  cutAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cutAll();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** What the service has charged, one line of JSON for each. */
export interface Charge {
  readonly receipt: string;
  readonly order: string;
  readonly cents: number;
  readonly key: string | null;
}

export interface ServiceOptions {
  /** The file that it keeps its charges in. */
  readonly ledger: string;
  /** Whether it charges only once for each idempotency key. Default: true. */
  readonly keys?: boolean;
  /** Called on the way, and waited for: a test kills its client there. */
  readonly at?: (point: "asked to charge" | "charged" | "asked what happened") => unknown;
}

/**
 * A stand-in for a payment service, on loopback. `POST /charges` charges; `GET /charges?key=…` or `?order=…` says what
 * was charged. Like a real service, it finishes what it was asked for even if the client is gone by then.
 */
export async function paymentService({ ledger, keys = true, at }: ServiceOptions) {
  const charges = (): Charge[] =>
    existsSync(ledger)
      ? readFileSync(ledger, "utf8")
          .split("\n")
          .filter(Boolean)
          .map((line) => JSON.parse(line) as Charge)
      : [];
  const charge = async (request: IncomingMessage): Promise<Charge> => {
    let body = "";
    for await (const piece of request) body += piece;
    await at?.("asked to charge");
    const { order, cents } = JSON.parse(body) as Charge;
    const key = keys ? String(request.headers["idempotency-key"]) : null;
    const known = key === null ? undefined : charges().find((one) => one.key === key);
    const made = known ?? { receipt: `R-${charges().length + 1}`, order, cents, key };
    if (!known) appendFileSync(ledger, `${JSON.stringify(made)}\n`);
    await at?.("charged");
    return made;
  };
  const find = async ({ searchParams }: URL): Promise<Charge | null> => {
    await at?.("asked what happened");
    const [key, order] = [searchParams.get("key"), searchParams.get("order")];
    return charges().find((one) => (keys ? one.key === key : one.order === order)) ?? null;
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url!, "http://127.0.0.1");
    const said = request.method === "POST" ? await charge(request) : await find(url);
    response.setHeader("content-type", "application/json").end(JSON.stringify(said));
  };
  const server = createServer((request, response) => void answer(request, response).catch(() => response.destroy()));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  server.unref();
  const { port } = server.address() as AddressInfo;
  return {
    address: `http://127.0.0.1:${port}`,
    charges,
    close: (): void => {
      server.close();
      server.closeAllConnections();
    },
  };
}

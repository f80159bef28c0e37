import { join } from "node:path";
import { newToken, startServer } from "@holdfast/server";
import { loadConfig } from "../../../cli/src/config.ts";
import { openLocalHost } from "../../../cli/src/host/local/local-host.ts";
import { serveHost } from "../../../cli/src/serve/served-host.ts";

/** A server in a process of its own, so that a test can kill it: `node served.ts <store> <token or ""> <port> <delay>`. */
const [store, token, port, delay] = process.argv.slice(2) as [string, string, string, string];
const config = { ...loadConfig({ store, model: "offline" } as never), offlineDelayMs: Number(delay) };
const host = await openLocalHost({ config, asks: "person" });
const given = token || newToken();
const server = await startServer({
  host: serveHost(host),
  token: given,
  version: "0.1.0",
  port: Number(port),
  page: join(import.meta.dirname, "../../dist"),
  limits: { idleMs: 600_000 },
});
console.log(JSON.stringify({ url: server.url, token: given }));

import { once } from "node:events";
import { isHoldfastError } from "holdfast";
import { shownAddress } from "holdfast/address";
import { loadConfig } from "../config.ts";
import { failureLines, failureOf } from "../failure.ts";
import { placeWithoutStore } from "../store/address.ts";
import { addressOf } from "../store/open.ts";
import { plainLine } from "../terminal/plain.ts";
import { typedCommand } from "../typed-command.ts";
import { SharedStore } from "./shared-store.ts";

export interface ServeOptions {
  readonly store?: string;
  readonly transport: "stdio" | "http";
  readonly port: number;
  readonly redact: boolean;
}

/** `holdfast mcp serve`. Standard output belongs to the protocol, so people are told on standard error. */
export async function serve({ store: given, transport, port, redact }: ServeOptions): Promise<void> {
  const config = loadConfig(given === undefined ? {} : { store: given });
  const source = new SharedStore(config);
  const address = await addressOf(config);
  // The store may come later. A server that does not start would only be a red cross in somebody's client.
  if (placeWithoutStore(address) === null) await source.use(async () => undefined).catch(tell);
  const place = plainLine(shownAddress(address));
  if (transport === "stdio") {
    const { serveStdio } = await import("./stdio.ts");
    if (process.stdin.isTTY)
      process.stderr.write(
        `Serving the sessions in ${place} on standard input and output, for an MCP client. To add it to Claude Code:\n  claude mcp add holdfast -- ${typedCommand("mcp serve")}\nCtrl+D ends it.\n`,
      );
    return serveStdio(source, { redact });
  }
  const { findToken } = await import("./token.ts");
  const { serveHttp } = await import("./http.ts");
  const token = findToken();
  const listening = await serveHttp(source, { port, token: token.value, cleaning: { redact } });
  process.stdout.write(`${listening.url}\n`);
  process.stderr.write(
    `Serving the sessions in ${place} to MCP clients on this machine. The token is in ${plainLine(token.from)}. Ctrl+C ends it.\n`,
  );
  // Until a signal ends the process. Nothing is written, so nothing has to be finished.
  await once(process, "beforeExit");
}

/** Each call will report it to the client. Only an address that can never work is an error of this command. */
function tell(error: unknown): void {
  if (isHoldfastError(error, "STORE_URL_INVALID")) throw error;
  process.stderr.write(`${failureLines(failureOf(error), process.stderr.columns).join("\n")}\n`);
}

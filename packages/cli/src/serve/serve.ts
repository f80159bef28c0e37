import { spawn } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { type RequestLine, type RunningServer, startServer } from "@holdfast/server";
import type { Config } from "../config.ts";
import { CommandError, EXIT } from "../exit.ts";
import { failureOf } from "../failure.ts";
import { type LocalHost, openLocalHost } from "../host/local/local-host.ts";
import { plainLine } from "../terminal/plain.ts";
import { typedCommand } from "../typed-command.ts";
import { version } from "../version.ts";
import { serveHost } from "./served-host.ts";
import { announce, makePageLink, serverToken, shareFile } from "./server-files.ts";

export interface ServeOptions {
  readonly port: number;
  readonly address: string;
  readonly allowHost: readonly string[];
  readonly allowOrigin: readonly string[];
  /** Other servers on the same store. */
  readonly peer: readonly string[];
  /** How long a running turn may take to come to rest, in seconds. */
  readonly grace: number;
  readonly open?: true;
  readonly log?: true;
}

/** After the grace, tools are ended and everything is synced. A machine that cannot do that in this time is stuck. */
const CLOSING_MS = 10_000;

/** `holdfast serve`: runs until it is told to end. */
export async function serve(options: ServeOptions, config: Config): Promise<void> {
  const token = serverToken();
  const host = await openLocalHost({ config, asks: "person", handlesSignals: true });
  try {
    const page = pageFolder();
    const server = await listen(options, config, host, token, page);
    const url = urlHere(server.url);
    const forget = announce(url, host.sessions.url);
    const link = options.open && page !== null ? makePageLink(url, token) : null;
    try {
      await greet(server, { ...options, hasPage: page !== null }, token, host);
      if (link !== null) openBrowser(link);
      await ended(server, options.grace);
    } finally {
      forget();
      if (link !== null) rmSync(link, { force: true });
    }
  } finally {
    await host.close();
  }
}

/** Where clients on this machine reach it, also if it listens on all addresses: it proves itself at one. */
function urlHere(url: string): string {
  return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
}

async function listen(
  { port, address, allowHost, allowOrigin, peer, log }: ServeOptions,
  { model }: Config,
  host: LocalHost,
  token: string,
  page: string | null,
): Promise<RunningServer> {
  const shares = shareFile(host.sessions.url);
  try {
    return await startServer({
      host: serveHost(host),
      token,
      version,
      port,
      address,
      model,
      allowed: { hosts: allowHost, origins: allowOrigin },
      peers: peer,
      log: (line) => writeLog(line, log === true),
      ...(page === null ? {} : { page }),
      ...(shares === null ? {} : { shares }),
    });
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (syscall !== "listen") throw error;
    const what =
      code === "EADDRINUSE"
        ? `Port ${port} at ${address} is in use, perhaps by another "holdfast serve". Choose another one with --port.`
        : `The server cannot listen at ${address}, port ${port} (${code}).`;
    throw new CommandError(EXIT.failed, "ADDRESS_UNUSABLE", `${what} Nothing was touched.`, error);
  }
}

/** The token is shown to a person at a terminal, and never written to a log. */
async function greet(
  { url, address }: RunningServer,
  { open, hasPage }: ServeOptions & { readonly hasPage: boolean },
  token: string,
  host: LocalHost,
): Promise<void> {
  const isSeen = process.stdout.isTTY;
  const secret = isSeen && hasPage ? `/#token=${token}` : "";
  const lines = [`Holdfast serves ${plainLine(host.store)} at ${url}${secret}`];
  if (secret === "") lines.push('"holdfast serve --show-token" shows the token.');
  if (open && !hasPage) lines.push("The web page is not installed (@holdfast/web).");
  if (!["127.0.0.1", "::1", "localhost"].includes(address))
    lines.push("Other machines can reach it, without encryption: put it behind a proxy that speaks HTTPS.");
  const { sessions } = await host.list({ status: "interrupted", limit: 100 });
  const mine = sessions.filter(({ parent, unreadable }) => !parent && !unreadable);
  if (mine.length > 0)
    lines.push(
      `${mine.length === 1 ? "1 session has" : `${mine.length} sessions have`} an interrupted turn: ${typedCommand("ls --status interrupted")}`,
    );
  if (isSeen) lines.push("Ctrl+C stops it.");
  process.stdout.write(`${lines.join("\n")}\n`);
}

/** Resolves when the server was told to end, and has. */
async function ended(server: RunningServer, graceSeconds: number): Promise<void> {
  const told = Promise.withResolvers<void>();
  const hurry = new AbortController();
  let isTold = false;
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const listener = (): void => {
    if (isTold) hurry.abort();
    isTold = true;
    told.resolve();
  };
  for (const signal of signals) process.on(signal, listener);
  await told.promise;
  const running = server.hosting.running;
  if (running > 0)
    process.stderr.write(
      `holdfast: stopping. The next start continues ${running === 1 ? "the running turn" : `${running} running turns`}. Waiting up to ${graceSeconds} s for tools and answers; Ctrl+C again aborts ${running === 1 ? "the turn" : "the turns"} instead.\n`,
    );
  const stuck = setTimeout(
    () => {
      process.stderr.write(
        "holdfast: the server did not stop in time. Everything acknowledged is safe; the next start shows what was interrupted.\n",
      );
      process.exit(EXIT.failed);
    },
    graceSeconds * 1000 + CLOSING_MS,
  );
  stuck.unref();
  await server.stop(graceSeconds * 1000, hurry.signal);
  for (const signal of signals) process.off(signal, listener);
}

/** A longer path is no path of ours, and anybody can send one. */
const PATH_CHARS_MAX = 200;

/** Without queries, headers and bodies: nothing secret is in it. */
function writeLog({ method, path, status, ms, access, code, error }: RequestLine, isAll: boolean): void {
  if (!isAll && error === undefined) return;
  const at = new Date().toISOString();
  process.stderr.write(
    `${at} ${method} ${plainLine(path.slice(0, PATH_CHARS_MAX))} ${status} ${ms} ms ${access}${code ? ` ${code}` : ""}\n`,
  );
  if (error !== undefined) process.stderr.write(`${at} ${plainLine(failureOf(error).message)}\n`);
}

/** The built files of the web page; null if they are not installed. */
function pageFolder(): string | null {
  try {
    const manifest = createRequire(import.meta.url).resolve("@holdfast/web/package.json");
    const folder = join(dirname(manifest), "dist");
    return existsSync(join(folder, "index.html")) ? folder : null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "MODULE_NOT_FOUND") return null;
    throw error;
  }
}

/** Best effort: the address is on the screen as well. */
function openBrowser(file: string): void {
  const url = pathToFileURL(file).href;
  const [program, ...args] =
    process.platform === "darwin"
      ? ["open", url]
      : process.platform === "win32"
        ? ["rundll32", "url.dll,FileProtocolHandler", url]
        : ["xdg-open", url];
  spawn(program!, args, { stdio: "ignore", detached: true })
    .on("error", () => process.stderr.write("holdfast: no browser could be opened. Open the address yourself.\n"))
    .unref();
}

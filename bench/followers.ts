import { once } from "node:events";
import { createServer, get, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { openStore } from "holdfast";
import { LocalHost } from "../packages/cli/src/host/local/local-host.ts";
import { serveHost } from "../packages/cli/src/serve/served-host.ts";
import { config } from "../packages/cli/test/unit/host/host-stage.ts";
import { newToken } from "../packages/server/src/access/credentials.ts";
import { startServer } from "../packages/server/src/index.ts";
import { quantile } from "./statistics.ts";

/** The processes of the row `serve`: a server that publishes events, and the clients that follow it. */

/** How many sessions are live, who follows them, and for how long. */
export interface Load {
  readonly sessions: number;
  readonly followersEach: number;
  readonly perSecond: number;
  readonly seconds: number;
  /** Before that: the code is compiled, and the sessions' locks are taken (a child process each, milliseconds). */
  readonly warmSeconds: number;
}

export interface Publisher {
  readonly port: number;
  readonly token: string;
  readonly paths: readonly string[];
}

export interface Published {
  readonly cpuMs: number;
  readonly bytesPerFollower: number;
}

export interface Received {
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly events: number;
  readonly lost: number;
  readonly doubled: number;
}

const PAYLOAD = "x".repeat(200);

/** The server of Holdfast: each event is a record of a session that it has open. */
export async function serveSessions(root: string, load: Load): Promise<unknown> {
  const store = await openStore(root, { durability: "process" });
  const host = new LocalHost(store, config, "person", null, true);
  const token = newToken();
  const server = await startServer({ host: serveHost(host), token, version: "0.0.0", port: 0 });
  const sessions = await Promise.all(
    Array.from({ length: load.sessions }, () => store.create({ dialect: "ai-sdk", cwd: "/" })),
  );
  const paths = sessions.map(({ id }) => `/sessions/${id}/events?after=end`);
  const found = await publish({ port: server.port, token, paths }, load, (index, event) => {
    void sessions[index]!.note("tick", event);
  });
  await server.stop(0);
  await host.close();
  return found;
}

/** What anybody would write: one string for each event, written to each client. */
export async function serveBare(load: Load): Promise<unknown> {
  const followers = Array.from({ length: load.sessions }, () => new Set<ServerResponse>());
  const server = createServer((request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(":\n\n");
    const set = followers[Number(request.url!.slice(1))]!;
    set.add(response);
    response.on("close", () => set.delete(response));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const paths = followers.map((_, index) => `/${index}`);
  const { port } = server.address() as AddressInfo;
  const found = await publish({ port, token: "none", paths }, load, (index, event) => {
    const text = `id: ${event.n}\nevent: record\ndata: ${JSON.stringify(event)}\n\n`;
    for (const follower of followers[index]!) follower.write(text);
  });
  server.closeAllConnections();
  server.close();
  return found;
}

/** Says where it is, waits for the clients, and sends each session's events at their times. */
async function publish(
  publisher: Publisher,
  { sessions, followersEach, perSecond, seconds, warmSeconds }: Load,
  send: (session: number, event: { n: number; sentNs: string; text: string }) => void,
): Promise<Published> {
  const memory = (): number => {
    globalThis.gc?.();
    return process.memoryUsage.rss();
  };
  const before = memory();
  process.stdout.write(`${JSON.stringify(publisher)}\n`);
  await new Promise((resolve) => process.stdin.once("data", resolve));
  const bytesPerFollower = (memory() - before) / (sessions * followersEach);
  let cpu = process.cpuUsage();
  const warm = sessions * perSecond * warmSeconds;
  const total = warm + sessions * perSecond * seconds;
  const startMs = performance.now();
  for (let sent = 0; sent < total; await sleep(1)) {
    const due = Math.min(total, ((performance.now() - startMs) / 1000) * sessions * perSecond);
    for (; sent < due; sent++) {
      if (sent === warm) cpu = process.cpuUsage();
      const event = { n: Math.floor(sent / sessions), sentNs: String(process.hrtime.bigint()), text: PAYLOAD };
      send(sent % sessions, event);
    }
  }
  const { user, system } = process.cpuUsage(cpu);
  // The clients say when they have everything.
  await new Promise((resolve) => process.stdin.once("data", resolve));
  process.stdin.destroy();
  return { cpuMs: (user + system) / 1000, bytesPerFollower };
}

const PATIENCE_MS = 20_000;

/** Follows every path as often as asked, and reports how late the events came. */
export async function followMany({ port, token, paths }: Publisher, load: Load): Promise<Received> {
  const warm = load.perSecond * load.warmSeconds;
  const count = warm + load.perSecond * load.seconds;
  const delaysMs: number[] = [];
  let [lost, doubled] = [0, 0];
  const done: Promise<void>[] = [];
  const connected: Promise<unknown>[] = [];
  for (const path of paths) {
    for (let follower = 0; follower < load.followersEach; follower++) {
      const request = get({ port, path, agent: false, headers: { authorization: `Bearer ${token}` } });
      const response = once(request, "response").then(([one]) => one as import("node:http").IncomingMessage);
      const isThere = Promise.withResolvers<void>();
      connected.push(isThere.promise);
      done.push(
        response.then(async (stream) => {
          let [buffer, next] = ["", 0];
          stream.setEncoding("utf8");
          const timer = setTimeout(() => request.destroy(), PATIENCE_MS + (load.warmSeconds + load.seconds) * 1000);
          for await (const piece of stream) {
            isThere.resolve();
            buffer += piece as string;
            const end = buffer.lastIndexOf("\n\n");
            if (end < 0) continue;
            const now = process.hrtime.bigint();
            for (const [, n, sentNs] of buffer.slice(0, end).matchAll(/"n":(\d+),"sentNs":"(\d+)"/g)) {
              if (Number(n) >= warm) delaysMs.push(Number(now - BigInt(sentNs!)) / 1e6);
              if (Number(n) < next) doubled++;
              else lost += Number(n) - next;
              next = Math.max(next, Number(n) + 1);
            }
            buffer = buffer.slice(end + 2);
            if (next === count) break;
          }
          clearTimeout(timer);
          lost += count - next;
          request.destroy();
        }),
      );
    }
  }
  await Promise.all(connected);
  process.stdout.write("ready\n");
  await Promise.all(done);
  return { p50Ms: quantile(delaysMs, 0.5), p95Ms: quantile(delaysMs, 0.95), events: delaysMs.length, lost, doubled };
}

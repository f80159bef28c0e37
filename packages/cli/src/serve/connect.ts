import { HoldfastClient, RemoteHost } from "@holdfast/server/client";
import { CommandError, EXIT } from "../exit.ts";
import type { SessionList } from "../store/session-id.ts";
import { knownToken, runningServers } from "./server-files.ts";

const TOKEN_VARIABLE = "HOLDFAST_SERVER_TOKEN";

/**
 * Connects to a server. The token is in the address's fragment, in HOLDFAST_SERVER_TOKEN, or, for a server of this user
 * on this machine, in the user's state folder.
 */
export async function connect(address: string, env: NodeJS.ProcessEnv = process.env): Promise<RemoteHost> {
  const url = URL.parse(/^https?:\/\//i.test(address) ? address : `http://${address}`);
  if (!url || (url.pathname !== "/" && url.pathname !== "") || url.search !== "")
    throw new CommandError(
      EXIT.usage,
      "USAGE",
      `"${address.slice(0, 80)}" is not the address of a server, such as http://127.0.0.1:4040. Nothing was touched.`,
    );
  const given = new URLSearchParams(url.hash.slice(1)).get("token");
  const token = given ?? (env[TOKEN_VARIABLE] || null) ?? (isLoopback(url.hostname) ? knownToken() : null);
  if (token === null)
    throw new CommandError(
      EXIT.usage,
      "TOKEN_MISSING",
      `The server at ${url.origin} needs its token. Set ${TOKEN_VARIABLE} to what "holdfast serve --show-token" prints on that machine. Nothing was touched.`,
    );
  const client = new HoldfastClient({ url: url.origin, token, locate: () => locateAgain(store) });
  // A server of this user may come back on another port: it is the same one if it has the same store.
  const store = runningServers().find((server) => server.url === client.url)?.store ?? null;
  return await RemoteHost.connect(client);
}

function locateAgain(store: string | null): string | null {
  return store === null ? null : (runningServers().find((server) => server.store === store)?.url ?? null);
}

/** The sessions of a server, for finding one of them. */
export function sessionsOf(host: RemoteHost): SessionList {
  return {
    url: host.store,
    list: async (query) => {
      const { sessions, next } = await host.list(query);
      return { sessions: [...sessions], ...(next === undefined ? {} : { next }) };
    },
    has: async (id) => {
      await host.client.call("getSession", { params: { id } });
      return true;
    },
    isLive: async (id) => {
      try {
        const { state, holder } = await host.client.call("getSession", { params: { id } });
        return state !== null || holder !== null;
      } catch (error) {
        // An empty session goes when the last one leaves it.
        if ((error as { readonly code?: unknown }).code === "SESSION_NOT_FOUND") return false;
        throw error;
      }
    },
  };
}

/** The address of the only server of this user on this machine. */
export function onlyServer(): string {
  const running = runningServers();
  const [first] = running;
  if (running.length === 1) return first!.url;
  const message =
    running.length === 0
      ? 'No server of yours runs on this machine. Start one with "holdfast serve", or name one with --server.'
      : `Several servers of yours run on this machine: ${running.map(({ url }) => url).join(", ")}. Name one with --server.`;
  throw new CommandError(EXIT.notFound, "SERVER_UNKNOWN", `${message} Nothing was touched.`);
}

export function isLoopback(name: string): boolean {
  return name === "localhost" || name === "[::1]" || /^127\./.test(name);
}

import { isIP } from "node:net";
import { refuse } from "./request-error.ts";

export interface AllowedNames {
  /**
   * Host names that this server answers to, besides loopback names and plain addresses. A name or an address that
   * leads to it through a proxy or a tunnel, with its port or for all ports: clients over HTTP then accept that it
   * proves itself there.
   */
  readonly hosts: readonly string[];
  /** Origins of other web pages that may call this server, such as `https://tools.example`. None by default. */
  readonly origins: readonly string[];
}

interface RequestFacts {
  readonly method: string;
  readonly host: string | undefined;
  readonly origin: string | undefined;
  readonly fetchSite: string | undefined;
  /** A browser sends cookies by itself, so a request that relies on one must come from our own page. */
  readonly byCookie: boolean;
}

/**
 * Refuses what a foreign web page could make a browser send. By DNS rebinding: the Host header names the page's own
 * domain. By CSRF: the Origin header names it, or Sec-Fetch-Site says that the request came from elsewhere.
 */
export function checkRequest({ method, host, origin, fetchSite, byCookie }: RequestFacts, allowed: AllowedNames): void {
  const name = host === undefined ? null : hostName(host);
  if (name === null || !answersTo(name, allowed.hosts))
    throw refuse(
      "HOST_REFUSED",
      "The server does not answer to the name in the Host header. Nothing was touched. If it is a name of this server, start it with --allow-host.",
    );
  const isForeign = origin !== undefined && !isOwn(origin, host!) && !allowed.origins.includes(origin);
  if (isForeign)
    throw refuse("ORIGIN_REFUSED", "Web pages from elsewhere may not call this server. Nothing was touched.");
  if (!byCookie) return;
  if (fetchSite !== undefined && fetchSite !== "same-origin" && fetchSite !== "none" && origin === undefined)
    throw refuse("ORIGIN_REFUSED", "Web pages from elsewhere may not call this server. Nothing was touched.");
  if (method !== "GET" && method !== "HEAD" && origin === undefined && fetchSite !== "same-origin")
    throw refuse(
      "ORIGIN_REFUSED",
      "A request that relies on the cookie must come from the server's own page, and this one does not say where it comes from. Nothing was touched. Programs send the token instead.",
    );
}

/** The name in a Host header, without the port; null if it is malformed. */
function hostName(host: string): string | null {
  const url = URL.parse(`http://${host}`);
  if (url?.pathname !== "/" || url.username !== "" || url.search !== "" || url.hash !== "") return null;
  return url.hostname;
}

/**
 * Whether a client that wants to reach this address can mean this server: its end of the connection has it, or the
 * person who runs the server says so.
 */
export function isOwnAddress(
  address: string,
  socket: { readonly localAddress?: string | undefined; readonly localPort?: number | undefined },
  hosts: readonly string[],
): boolean {
  const url = URL.parse(`http://${address}`);
  if (!url) return false;
  if (hosts.some((host) => [url.host, url.hostname].includes(host.toLowerCase()))) return true;
  const local = socket.localAddress?.replace(/^::ffff:/, "") ?? "";
  const own = URL.parse(`http://${local.includes(":") ? `[${local}]` : local}:${socket.localPort}`);
  return url.host === own?.host;
}

/** No name server can make a plain address lead elsewhere. */
function answersTo(name: string, hosts: readonly string[]): boolean {
  const bare = name.startsWith("[") ? name.slice(1, -1) : name;
  if (isIP(bare) !== 0) return true;
  return name === "localhost" || name.endsWith(".localhost") || hosts.some((host) => hostName(host) === name);
}

/** Behind a proxy the page may be served over HTTPS, so only the host and port are compared. */
function isOwn(origin: string, host: string): boolean {
  const url = URL.parse(origin);
  return url !== null && (url.protocol === "http:" || url.protocol === "https:") && url.host === hostOf(url, host);
}

function hostOf({ protocol }: URL, host: string): string | null {
  return URL.parse(`${protocol}//${host}`)?.host ?? null;
}

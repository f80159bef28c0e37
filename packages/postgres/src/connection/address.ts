import { HoldfastError } from "holdfast";
import { readPassword } from "./pgpass.ts";
import { readService, serviceFiles } from "./service.ts";

/** A database address, with the parts that the driver does not read. */
export interface Address {
  /** For the driver: without our own parameters. */
  readonly url: string;
  /** Without the password. */
  readonly name: string;
  /** Quoted. */
  readonly schema: string;
  /**
   * The address of the server itself, for the worker's direct connection: the same address, changed by `?direct=`.
   * Null: there is no direct route.
   */
  readonly direct: string | null;
}

const SCHEMA = "holdfast";

/** Names that differ between a service file and an address. */
const OF_SERVICE = new Set(["dbname", "service"]);

/**
 * Adds the settings of a service (`?service=name`, or `PGSERVICE` for an address without a host), as `psql` does. The
 * address takes precedence, then the service, then the environment (`PGHOST`, `PGUSER`, `PGPASSWORD`, …), which the
 * driver reads itself, then `~/.pgpass`. Throws STORE_URL_INVALID.
 */
export async function resolveAddress(
  text: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
): Promise<string> {
  const url = urlOf(text);
  const name =
    url.searchParams.get("service") ??
    (url.hostname === "" && !url.searchParams.has("host") ? env["PGSERVICE"] : undefined);
  url.searchParams.delete("service");
  if (name !== undefined) await addService(url, name, env);
  const hasPassword = url.password !== "" || url.searchParams.has("password") || (env["PGPASSWORD"] ?? "") !== "";
  const password = hasPassword ? null : await readPassword(url, env);
  if (password !== null) url.searchParams.set("password", password);
  return url.href;
}

async function addService(url: URL, name: string, env: Readonly<Record<string, string | undefined>>): Promise<void> {
  const settings = await readService(name, env);
  if (!settings) throw invalid(`service "${name.slice(0, 80)}" not found in ${serviceFiles(env).join(", ")}`);
  const isInAddress: Readonly<Record<string, boolean>> = {
    host: url.hostname !== "",
    port: url.port !== "",
    user: url.username !== "",
    password: url.password !== "",
  };
  for (const [key, value] of settings) {
    if (OF_SERVICE.has(key) || isInAddress[key] || url.searchParams.has(key)) continue;
    url.searchParams.set(key, value);
  }
  const database = settings.get("dbname");
  if (url.pathname.length <= 1 && database !== undefined) url.pathname = `/${encodeURIComponent(database)}`;
}

/**
 * `postgres://user@host/database?schema=name&direct=host:port`; other parameters are for the driver (sslmode,
 * application_name). Throws STORE_URL_INVALID.
 */
export function parseAddress(text: string): Address {
  const url = urlOf(text);
  const schema = url.searchParams.get("schema") ?? SCHEMA;
  url.searchParams.delete("schema");
  // The meaning in `psql`: `require` encrypts, `verify-ca` and `verify-full` also verify the server. The driver treats
  // all three as `verify-full`, and announces that this will change.
  const sslmode = url.searchParams.get("sslmode");
  if (sslmode !== null && sslmode !== "no-verify" && !url.searchParams.has("uselibpqcompat"))
    url.searchParams.set("uselibpqcompat", "true");
  const direct = url.searchParams.get("direct");
  url.searchParams.delete("direct");
  const name = nameOf(url, schema);
  url.pathname = pathFor(url.pathname);
  return { url: url.href, name, schema: quoteName(schema), direct: directOf(url, direct) };
}

/**
 * The driver does not decode `%40`, or the escape of any other character that a path may contain unescaped, in the name
 * of a database.
 */
function pathFor(pathname: string): string {
  const name = decodeURIComponent(pathname);
  if (/[?#]/.test(name)) throw invalid('the driver does not support a database with "?" or "#" in its name');
  return encodeURI(name);
}

/** Behind a pooler, the server has another host or port; everything else is the same. */
function directOf(url: URL, direct: string | null): string | null {
  if (direct === null) return url.href;
  if (direct === "none") return null;
  const [, host, port] = /^([^\s:/@]+|\[[0-9a-f:]+\]|)(?::(\d{1,5}))?$/i.exec(direct) ?? [];
  if (host === undefined || (host === "" && port === undefined)) throw invalid('"direct" is not a host and port');
  const server = new URL(url);
  const query = server.searchParams;
  const named = query.get("host");
  // The query takes precedence. Without a host before it, there cannot be a port either.
  if (host === "" && (named !== null || server.hostname === "")) {
    query.set("port", port!);
    return server.href;
  }
  if (host !== "") server.hostname = host;
  server.port = port ?? query.get("port") ?? server.port;
  for (const name of ["host", "port"]) query.delete(name);
  return server.href;
}

/** Without the password and the connection parameters. */
function nameOf(url: URL, schema: string): string {
  const shown = new URL(url);
  const query = url.searchParams;
  shown.search = "";
  shown.password = "";
  const [host, port, user] = ["host", "port", "user"].map((key) => query.get(key));
  if (shown.hostname === "" && host && !host.includes("/")) shown.host = host;
  if (shown.port === "" && port) shown.port = port;
  if (shown.username === "" && user) shown.username = user;
  return schema === SCHEMA ? shown.href : `${shown.href}?schema=${encodeURIComponent(schema)}`;
}

function urlOf(text: string): URL {
  let url: URL;
  try {
    url = new URL(text);
  } catch (error) {
    // The original error quotes the password.
    throw invalid("it is not a URL", error instanceof Error ? new Error(error.message) : undefined);
  }
  if (url.protocol !== "postgres:" && url.protocol !== "postgresql:") throw invalid(`it begins with "${url.protocol}"`);
  // An unescaped "/", "?" or "#" in a password ends the host. The rest would be taken for a database name, and the part
  // before it for a port, and both would be shown.
  if (url.hash !== "" || url.pathname.includes("@") || [...url.searchParams.keys()].some((key) => key.includes("@")))
    throw invalid('a name or a password contains "#", "/", "?" or "@": write "%23", "%2F", "%3F", "%40"');
  // One invalid escape makes the driver misread the others, too.
  if (![url.username, url.password, url.hostname, url.pathname].every(isDecodable))
    throw invalid('a name or a password contains "%": write "%25"');
  return url;
}

function isDecodable(part: string): boolean {
  try {
    return typeof decodeURIComponent(part) === "string";
  } catch {
    return false;
  }
}

export function quoteName(schema: string): string {
  if (schema === "" || schema.includes("\0") || Buffer.byteLength(schema) > 63)
    throw invalid(`"${schema.slice(0, 80)}" is not a valid schema name`);
  return `"${schema.replaceAll('"', '""')}"`;
}

function invalid(why: string, cause?: unknown): HoldfastError {
  const message = `Not a PostgreSQL store address: ${why}. Nothing was touched. Use "postgres://user@host/database".`;
  return new HoldfastError("STORE_URL_INVALID", message, { why }, cause);
}

import { HoldfastError } from "holdfast";
import { readPassword } from "./pgpass.ts";
import { readService, serviceFiles } from "./service.ts";

/** What an address of a database says beyond what the driver reads in it. */
export interface Address {
  /** For the driver: without what is ours. */
  readonly url: string;
  /** Without the password. */
  readonly name: string;
  /** Quoted. */
  readonly schema: string;
  /** The address of the server itself, for the one connection of a worker that must be its own: the same, but for what `?direct=` says. Null: there is no way to it. */
  readonly direct: string | null;
}

const SCHEMA = "holdfast";

/** What a service file calls otherwise than an address. */
const OF_SERVICE = new Set(["dbname", "service"]);

/**
 * Puts in what a service says (`?service=name`, or `PGSERVICE` for an address without a host), as `psql` does: what stands in the address counts first, then the service, then the environment (`PGHOST`, `PGUSER`, `PGPASSWORD`, …), which the driver reads by
 * itself, then `~/.pgpass`. Throws STORE_URL_INVALID.
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
  if (!settings)
    throw invalid(`no service "${name.slice(0, 80)}" was found (looked for in ${serviceFiles(env).join(", ")})`);
  const stands: Readonly<Record<string, boolean>> = {
    host: url.hostname !== "",
    port: url.port !== "",
    user: url.username !== "",
    password: url.password !== "",
  };
  for (const [key, value] of settings) {
    if (OF_SERVICE.has(key) || stands[key] || url.searchParams.has(key)) continue;
    url.searchParams.set(key, value);
  }
  const database = settings.get("dbname");
  if (url.pathname.length <= 1 && database !== undefined) url.pathname = `/${encodeURIComponent(database)}`;
}

/** `postgres://user@host/database?schema=name&direct=host:port`; the rest of the query is the driver's (sslmode, application_name). Throws STORE_URL_INVALID. */
export function parseAddress(text: string): Address {
  const url = urlOf(text);
  const schema = url.searchParams.get("schema") ?? SCHEMA;
  url.searchParams.delete("schema");
  // The words of `psql`: `require` encrypts, `verify-ca` and `verify-full` also look who is there. The driver would take all three for the last one, and says that it will not.
  const sslmode = url.searchParams.get("sslmode");
  if (sslmode !== null && sslmode !== "no-verify" && !url.searchParams.has("uselibpqcompat"))
    url.searchParams.set("uselibpqcompat", "true");
  const direct = url.searchParams.get("direct");
  url.searchParams.delete("direct");
  const name = nameOf(url, schema);
  url.pathname = pathFor(url.pathname);
  return { url: url.href, name, schema: quoted(schema), direct: directOf(url, direct) };
}

/** The driver takes `%40` in the name of a database, and what else may stand in a path as it is, for three characters. */
function pathFor(pathname: string): string {
  const name = decodeURIComponent(pathname);
  if (/[?#]/.test(name)) throw invalid('the driver cannot be told of a database with "?" or "#" in its name');
  return encodeURI(name);
}

/** Behind a pooler the server has another host or port, and all else is the same. */
function directOf(url: URL, direct: string | null): string | null {
  if (direct === null) return url.href;
  if (direct === "none") return null;
  const [, host, port] = /^([^\s:/@]+|\[[0-9a-f:]+\]|)(?::(\d{1,5}))?$/i.exec(direct) ?? [];
  if (host === undefined || (host === "" && port === undefined)) throw invalid('"direct" is no host and port');
  const server = new URL(url);
  const query = server.searchParams;
  const named = query.get("host");
  // Whatever stands in the query counts first; and where no host stands in front of it, there cannot be a port either.
  if (host === "" && (named !== null || server.hostname === "")) {
    query.set("port", port!);
    return server.href;
  }
  if (host !== "") server.hostname = host;
  server.port = port ?? query.get("port") ?? server.port;
  for (const name of ["host", "port"]) query.delete(name);
  return server.href;
}

/** Without the password, and what says how to get there. */
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
    // The driver's words would name the password.
    throw invalid("it is not a URL", error instanceof Error ? new Error(error.message) : undefined);
  }
  if (url.protocol !== "postgres:" && url.protocol !== "postgresql:") throw invalid(`it begins with "${url.protocol}"`);
  // A "/", "?" or "#" in a password ends the host: what is behind it would be taken for the name of a database, and what is before it for a port, and shown.
  if (url.hash !== "" || url.pathname.includes("@") || [...url.searchParams.keys()].some((key) => key.includes("@")))
    throw invalid(
      'it has a "#", "/", "?" or "@" that is part of a name or a password: write "%23", "%2F", "%3F", "%40"',
    );
  // With one that is wrong, the driver would take the others for something else, too.
  if (![url.username, url.password, url.hostname, url.pathname].every(isDecodable))
    throw invalid('it has a "%" that is part of a name or a password: write "%25"');
  return url;
}

function isDecodable(part: string): boolean {
  try {
    return typeof decodeURIComponent(part) === "string";
  } catch {
    return false;
  }
}

export function quoted(schema: string): string {
  if (schema === "" || schema.includes("\0") || Buffer.byteLength(schema) > 63)
    throw invalid(`"${schema.slice(0, 80)}" is no name of a schema`);
  return `"${schema.replaceAll('"', '""')}"`;
}

function invalid(why: string, cause?: unknown): HoldfastError {
  const message = `This is not the address of a PostgreSQL store: ${why}. Nothing was touched. Give "postgres://user@host/database".`;
  return new HoldfastError("STORE_URL_INVALID", message, { why }, cause);
}

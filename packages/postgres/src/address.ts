import { HoldfastError } from "holdfast";

/** What an address of a database says beyond what the driver reads in it. */
export interface Address {
  /** For the driver: without what is ours. */
  readonly url: string;
  /** Without the password. */
  readonly name: string;
  /** Quoted. */
  readonly schema: string;
}

const SCHEMA = "holdfast";

/** `postgres://user@host/database?schema=name`; the rest of the query is the driver's (sslmode, application_name). Throws STORE_URL_INVALID. */
export function parseAddress(text: string): Address {
  let url: URL;
  try {
    url = new URL(text);
  } catch (error) {
    throw invalid("it is not a URL", error);
  }
  if (url.protocol !== "postgres:" && url.protocol !== "postgresql:") throw invalid(`it begins with "${url.protocol}"`);
  const schema = url.searchParams.get("schema") ?? SCHEMA;
  url.searchParams.delete("schema");
  const shown = new URL(url);
  shown.password = "";
  shown.search = "";
  const name = schema === SCHEMA ? shown.href : `${shown.href}?schema=${encodeURIComponent(schema)}`;
  return { url: url.href, name, schema: quoted(schema) };
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

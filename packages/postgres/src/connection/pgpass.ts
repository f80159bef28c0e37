import { readFile, stat } from "node:fs/promises";
import { homedir, userInfo } from "node:os";
import { join } from "node:path";
import { codeOf } from "../failure.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** The login that needs a password. */
export interface Login {
  readonly host: string;
  readonly port: string;
  readonly database: string;
  readonly user: string;
}

/** Permissions of group and others: if any is set, `psql` ignores the password file, and so do we. */
const OTHERS = 0o077;

/**
 * Reads the password from `PGPASSFILE` or `~/.pgpass`; the driver is about to drop this. Null: there is none for this
 * login.
 */
export async function readPassword(url: URL, env: Environment): Promise<string | null> {
  const path = env["PGPASSFILE"] ?? join(homedir(), ".pgpass");
  try {
    const found = await stat(path);
    const { mode } = found;
    // `psql` ignores it too, and reading a pipe could block.
    if (!found.isFile()) return null;
    if (process.platform !== "win32" && (mode & OTHERS) !== 0) return null;
    return passwordFor(await readFile(path, "utf8"), loginOf(url, env));
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT" || code === "ENOTDIR" || code === "EACCES") return null;
    throw error;
  }
}

const FIELD = String.raw`((?:\\.|[^:\\]|\\$)*)`;
const LINE = new RegExp(`^${Array(5).fill(FIELD).join(":")}`);

/**
 * The first line that matches, `host:port:database:user:password`. `*` matches everything, and `\` escapes `:` and `\`.
 * Pure.
 */
export function passwordFor(text: string, login: Login): string | null {
  const wanted = [login.host, login.port, login.database, login.user];
  for (const line of text.split(/\r?\n/)) {
    if (line === "" || line.startsWith("#")) continue;
    const [, ...fields] = LINE.exec(line) ?? [];
    const plain = (field = ""): string => field.replace(/\\(.)/g, "$1");
    const fits = wanted.every((value, i) => fields[i] === "*" || plain(fields[i]) === value);
    if (fits && fields[4] !== undefined) return plain(fields[4]);
  }
  return null;
}

function loginOf(url: URL, env: Environment): Login {
  const given = (key: string, standing: string, variable: string): string | undefined =>
    url.searchParams.get(key) || standing || env[variable] || undefined;
  const user = given("user", decodeURIComponent(url.username), "PGUSER") ?? userInfo().username;
  return {
    host: given("host", decodeURIComponent(url.hostname).replace(/^\[(.*)\]$/, "$1"), "PGHOST") ?? "localhost",
    port: given("port", url.port, "PGPORT") ?? "5432",
    database: given("database", decodeURIComponent(url.pathname.slice(1)), "PGDATABASE") ?? user,
    user,
  };
}
